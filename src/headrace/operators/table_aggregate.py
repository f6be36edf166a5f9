"""Aggregations of a grouped table: a changed row is taken out of its old group and added to its new one.

``aggregate`` and ``reduce`` are written out each: they call the user's functions directly, with different arguments.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import StreamsError
from headrace.operators.aggregate_rows import keeper, rows, saver
from headrace.operators.base import Edge, Node, ValueGetter, getter, operator
from headrace.operators.mapper_results import not_a_pair, pair_of
from headrace.record import Change
from headrace.topics.log import Headers
from headrace.topology.operations import TableAggregate, TableGroupBy, TableReduce


@operator.register
def _group_by(operation: TableGroupBy, node: Node) -> Edge:
    selector, versioned = operation.selector, operation.versioned
    name, forward, fail = node.name, node.forward, node.fail

    def group_by(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        if key is None:
            return fail(_no_key(name), key, new, timestamp_ms, headers)
        if versioned and not latest:
            return None
        try:
            new_pair = None if new is None else selector(key, new)
            old_pair = None if old is None else selector(key, old)
        except Exception as error:
            return fail(error, key, new, timestamp_ms, headers)
        pair = new_pair
        try:
            new_key, new_value = (None, None) if pair is None else pair_of(pair)
            pair = old_pair
            old_key, old_value = (None, None) if pair is None else pair_of(pair)
        except (TypeError, ValueError):
            return fail(not_a_pair("group_by", selector, pair), key, new, timestamp_ms, headers)
        adds = new_key is not None and new_value is not None
        subtracts = old_key is not None and old_value is not None
        # One record per group, so that a row that stays in its group never shows the group without it.
        if adds and subtracts and old_key == new_key:
            return forward(old_key, Change(new_value, old_value, latest), timestamp_ms, headers)
        if subtracts:
            forward(old_key, Change(None, old_value, latest), timestamp_ms, headers)
        if adds:
            forward(new_key, Change(new_value, None, latest), timestamp_ms, headers)
        return None

    return group_by


@operator.register
def _aggregate(operation: TableAggregate, node: Node) -> Edge:
    store = node.store(operation.store)
    initializer, adder, subtractor = operation.initializer, operation.adder, operation.subtractor
    send_old, keep, fail, name = operation.send_old, keeper(store), node.fail, node.name
    get, save = rows(store).get, saver(store, node, send_old=send_old)

    def aggregate(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return fail(_no_key(name), key, change, timestamp_ms, headers)
        try:
            row = get(key)
            after, row_ms = (None, timestamp_ms) if row is None else row
            latest_ms = timestamp_ms if timestamp_ms > row_ms else row_ms
            newest_ms = timestamp_ms
            before = keep(after) if send_old else None
            if change.old is not None and after is not None:
                after = subtractor(key, change.old, after)
                newest_ms = latest_ms
            if change.new is not None:
                after = adder(key, change.new, initializer() if after is None else after)
                newest_ms = latest_ms
        except Exception as error:
            return fail(error, key, change, timestamp_ms, headers)
        return save(key, after, before, newest_ms, timestamp_ms, headers)

    return aggregate


@operator.register
def _reduce(operation: TableReduce, node: Node) -> Edge:
    store = node.store(operation.store)
    adder, subtractor = operation.adder, operation.subtractor
    send_old, keep, fail, name = operation.send_old, keeper(store), node.fail, node.name
    get, save = rows(store).get, saver(store, node, send_old=send_old)

    def reduce(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return fail(_no_key(name), key, change, timestamp_ms, headers)
        try:
            row = get(key)
            after, row_ms = (None, timestamp_ms) if row is None else row
            latest_ms = timestamp_ms if timestamp_ms > row_ms else row_ms
            newest_ms = timestamp_ms
            before = keep(after) if send_old else None
            if change.old is not None and after is not None:
                after = subtractor(after, change.old)
                newest_ms = latest_ms
            if change.new is not None:
                if after is None:
                    after = change.new
                else:
                    after = adder(after, change.new)
                    newest_ms = latest_ms
        except Exception as error:
            return fail(error, key, change, timestamp_ms, headers)
        return save(key, after, before, newest_ms, timestamp_ms, headers)

    return reduce


@getter.register(TableAggregate)
@getter.register(TableReduce)
def _rows(operation: TableAggregate | TableReduce, node: Node) -> ValueGetter:
    return rows(node.store(operation.store))


def _no_key(name: str) -> StreamsError:
    message = f"node '{name}': a table that is grouped must have keys; found a change without one; drop it upstream"
    return StreamsError(message)
