"""Inner join and left join of a stream with a table: only the stream's records make results.

The table's changes are silent. The joins look alike on purpose: each calls its own look-up and joiner directly, without
another function per record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import SerializationError, TopologyError
from headrace.operators.aggregate_rows import rows
from headrace.operators.base import Edge, Node, ValueGetter, operator
from headrace.operators.joiners import keyed
from headrace.record import WithKey
from headrace.topics.log import Headers
from headrace.topology.operations import Function, StreamGlobalJoin, StreamTableJoin

# (key, timestamp_ms) -> the row as it was then.
LookUp = Callable[[Any, int], tuple[Any, int] | None]


@operator.register
def _table_join(operation: StreamTableJoin, node: Node) -> Edge:
    table = node.getter(operation.table)
    if operation.grace_ms is not None:
        return _buffered(operation, node, table)
    if table.get_as_of is not None:
        return _join_as_of(node, table.get_as_of, operation.joiner, left=operation.left)
    if isinstance(operation.joiner, WithKey):
        return _join_with_key(node, table.get, operation.joiner.function, left=operation.left)
    if operation.left:
        return _left_join(node, table.get, operation.joiner)
    return _inner_join(node, table.get, operation.joiner)


def _inner_join(node: Node, get: Callable[[Any], Any], joiner: Function) -> Edge:
    forward, drop, fail = node.forward, node.drop, node.fail

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            row = get(key)
            if row is None:
                return None
            result = joiner(value, row[0])
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    return join


def _left_join(node: Node, get: Callable[[Any], Any], joiner: Function) -> Edge:
    forward, drop, fail = node.forward, node.drop, node.fail

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None:
            return drop()
        try:
            row = None if key is None else get(key)
            result = joiner(value, None if row is None else row[0])
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    return join


def _join_with_key(node: Node, get: Callable[[Any], Any], joiner: Function, *, left: bool) -> Edge:
    forward, drop, fail = node.forward, node.drop, node.fail

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None or (key is None and not left):
            return drop()
        try:
            row = None if key is None else get(key)
            if row is not None:
                result = joiner(key, value, row[0])
            elif left:
                result = joiner(key, value, None)
            else:
                return None
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    return join


def _join_as_of(node: Node, get_as_of: LookUp, joiner: Function | WithKey[Any], *, left: bool) -> Edge:
    forward, drop, fail = node.forward, node.drop, node.fail
    combine = keyed(joiner)

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None or (key is None and not left):
            return drop()
        try:
            row = None if key is None else get_as_of(key, timestamp_ms)
            if row is not None:
                result = combine(key, value, row[0])
            elif left:
                result = combine(key, value, None)
            else:
                return None
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    return join


def _buffered(operation: StreamTableJoin, node: Node, table: ValueGetter) -> Edge:
    if table.get_as_of is None or operation.buffer_store is None:
        message = (
            f"join '{node.name}': a grace period needs the table as it was at the record's time; "
            f"table '{operation.table}' has no history; materialize it with a versioned store"
        )
        raise TopologyError(message)
    join = _join_as_of(node, table.get_as_of, operation.joiner, left=operation.left)
    buffer, task = node.store(operation.buffer_store), node.task
    put, evict, drop, fail, left, name = buffer.put, buffer.evict, node.drop, node.fail, operation.left, node.name

    def wait(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None or (key is None and not left):
            return drop()
        if key is None:
            # Kafka Streams fails here, too: only without a grace period does a left join take such records.
            message = f"join '{name}': with a grace period a record needs a key to wait under, its key is None"
            return fail(TypeError(message), key, value, timestamp_ms, headers)
        try:
            waits = put(key, value, timestamp_ms, headers)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        if not waits:
            return join(key, value, timestamp_ms, headers)
        origin, offset = task.origin, task.offset
        try:
            for waiting in evict():
                task.origin, task.offset = waiting.origin, waiting.offset
                join(waiting.key, waiting.value, waiting.timestamp_ms, waiting.headers)
        finally:
            task.origin, task.offset = origin, offset
        return None

    return wait


@operator.register
def _global_join(operation: StreamGlobalJoin, node: Node) -> Edge:
    get, selector = rows(node.store(operation.store)).get, operation.key_selector
    combine, left = keyed(operation.joiner), operation.left
    forward, drop, fail = node.forward, node.drop, node.fail

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            table_key = selector(key, value)
            if value is None or (table_key is None and not left):
                return drop()
            row = None if table_key is None else get(table_key)
            if row is not None:
                result = combine(key, value, row[0])
            elif left:
                result = combine(key, value, None)
            else:
                return None
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    return join
