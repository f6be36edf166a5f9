"""Aggregations of a grouped stream without windows: one row per key.

What runs per record is written out for each case on purpose: a function shared by two of them costs a call per record.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import SerializationError
from headrace.operators.aggregate_rows import expiring, forward_flushes, keeper, rows, saver, warner
from headrace.operators.base import Edge, Node, ValueGetter, getter, operator
from headrace.topics.log import Headers
from headrace.topology.operations import StreamAggregate, StreamCount, StreamReduce


@operator.register
def _aggregate(operation: StreamAggregate, node: Node) -> Edge:
    store, send_old = node.store(operation.store), operation.send_old
    if store.kind != "versioned" and store.inline and (store.cached or not send_old):
        return _aggregate_cached(operation, node) if store.cached else _aggregate_inline(operation, node)
    initializer, aggregator, drop, fail = operation.initializer, operation.aggregator, node.drop, node.fail
    get, save, keep = rows(store).get, saver(store, node, send_old=send_old), keeper(store)
    warn = warner(node, aggregator)

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            row = get(key)
            if row is None:
                aggregate, newest_ms = initializer(), timestamp_ms
            else:
                aggregate, newest_ms = row
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
            old = keep(aggregate) if send_old else None
            new = aggregator(key, value, aggregate)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if new is None and row is None:
            warn()
        return save(key, new, old, newest_ms, timestamp_ms, headers)

    return expiring(process, store, node, send_old=send_old)


def _aggregate_inline(operation: StreamAggregate, node: Node) -> Edge:
    """The common case: rows of the batch are read and written in the store's dictionary, without a call."""
    initializer, aggregator, drop, fail = operation.initializer, operation.aggregator, node.drop, node.fail
    store, forward = node.store(operation.store), node.forward
    get_pair, put_pair, dirty = store.get_pair, store.put_pair, store.dirty
    get_dirty, warn = dirty.get, warner(node, aggregator)

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            dirty_row = get_dirty(key)
            row = dirty_row or get_pair(key)
            if row is None:
                old, newest_ms = initializer(), timestamp_ms
            else:
                old, newest_ms = row
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
            new = aggregator(key, value, old)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        # ``put_pair`` checks types; here key and type are those of a row that it has checked.
        if dirty_row is not None and type(new) is type(old):
            dirty[key] = (new, newest_ms)
        else:
            if new is None and row is None:
                warn()
            try:
                put_pair(key, new, newest_ms, headers)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
        return forward(key, new, None, newest_ms, headers, True)

    return process


def _aggregate_cached(operation: StreamAggregate, node: Node) -> Edge:
    initializer, aggregator, drop, fail = operation.initializer, operation.aggregator, node.drop, node.fail
    store, task = node.store(operation.store), node.task
    get_pair, put_pair, dirty = store.get_pair, store.put_pair, store.dirty
    get_dirty, warn = store.look, warner(node, aggregator)
    forward_flushes(store, node, send_old=operation.send_old)

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            entry = get_dirty(key)
            row = get_pair(key) if entry is None else entry
            if row is None or row[0] is None:
                old, newest_ms = initializer(), timestamp_ms
            else:
                old, newest_ms = row[0], row[1]
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
            new = aggregator(key, value, old)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        # ``put_pair`` checks types; here key and type are those of an entry that it has checked.
        if entry is not None and entry[0] is not None and type(new) is type(old):
            # The cache is flushed in the order of the last updates.
            del dirty[key]
            dirty[key] = (new, newest_ms, headers, task.origin, task.offset)
        else:
            if new is None and row is None:
                warn()
            # A deleted row has no time of its own: the cache sends it on with the time of the record that deleted it.
            try:
                put_pair(key, new, timestamp_ms if new is None else newest_ms, headers)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
        return None

    return process


@operator.register
def _reduce(operation: StreamReduce, node: Node) -> Edge:
    store, send_old = node.store(operation.store), operation.send_old
    reducer, drop, fail = operation.reducer, node.drop, node.fail
    get, save, keep = rows(store).get, saver(store, node, send_old=send_old), keeper(store)

    def reduce(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            row = get(key)
            if row is not None:
                aggregate, newest_ms = row
                old = keep(aggregate) if send_old else None
                new = reducer(aggregate, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if row is None:
            return save(key, value, None, timestamp_ms, timestamp_ms, headers)
        return save(key, new, old, timestamp_ms if timestamp_ms > newest_ms else newest_ms, timestamp_ms, headers)

    return expiring(reduce, store, node, send_old=send_old)


@operator.register
def _count(operation: StreamCount, node: Node) -> Edge:
    store, send_old = node.store(operation.store), operation.send_old
    if store.kind != "versioned" and store.inline:
        return _count_cached(operation, node) if store.cached else _count_inline(operation, node)
    get, save, drop, fail = rows(store).get, saver(store, node, send_old=send_old), node.drop, node.fail

    def count(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            old, newest_ms = get(key) or (0, timestamp_ms)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return save(key, old + 1, old, max(newest_ms, timestamp_ms), timestamp_ms, headers)

    return expiring(count, store, node, send_old=send_old)


def _count_inline(operation: StreamCount, node: Node) -> Edge:
    store, forward, drop, send_old = node.store(operation.store), node.forward, node.drop, operation.send_old
    get_pair, put_pair, dirty, fail = store.get_pair, store.put_pair, store.dirty, node.fail
    get_dirty = dirty.get

    def count(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        row = get_dirty(key)
        if row is not None:
            old, newest_ms = row
            if timestamp_ms > newest_ms:
                newest_ms = timestamp_ms
            dirty[key] = (old + 1, newest_ms)
        else:
            try:
                old, newest_ms = get_pair(key) or (0, timestamp_ms)
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
                put_pair(key, old + 1, newest_ms, headers)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
        return forward(key, old + 1, old if send_old else None, newest_ms, headers, True)

    return count


def _count_cached(operation: StreamCount, node: Node) -> Edge:
    store, drop, fail, task = node.store(operation.store), node.drop, node.fail, node.task
    get_pair, put_pair, dirty = store.get_pair, store.put_pair, store.dirty
    get_dirty = store.look
    forward_flushes(store, node, send_old=operation.send_old)

    def count(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        row = get_dirty(key)
        if row is not None and (old := row[0]) is not None:
            newest_ms = row[1]
            # The cache is flushed in the order of the last updates.
            del dirty[key]
            dirty[key] = (
                old + 1,
                timestamp_ms if timestamp_ms > newest_ms else newest_ms,
                headers,
                task.origin,
                task.offset,
            )
            return None
        try:
            old, newest_ms = get_pair(key) or (0, timestamp_ms)
            return put_pair(key, old + 1, timestamp_ms if timestamp_ms > newest_ms else newest_ms, headers)  # type: ignore[no-any-return]
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)

    return count


@getter.register(StreamAggregate)
@getter.register(StreamReduce)
@getter.register(StreamCount)
def _rows(operation: StreamAggregate | StreamReduce | StreamCount, node: Node) -> ValueGetter:
    return rows(node.store(operation.store))
