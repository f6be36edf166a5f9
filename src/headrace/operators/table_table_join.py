"""Joins of two tables on their key: a change on one side meets the other side's row as it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.operators.aggregate_rows import expiring, rows, saver
from headrace.operators.base import DECIDED, Edge, HeldBack, Node, ValueGetter, getter, operator
from headrace.operators.joiners import keyed, seen_from
from headrace.topics.log import Headers
from headrace.topology.operations import JoinKind, Side, TableJoinMerge, TableTableJoin

# (key, this value, other value) -> the joined value; None is a row that is not there.
Combine = Callable[[Any, Any, Any], Any]
RowOf = Callable[[Any], tuple[Any, int] | None]


@operator.register
def _table_join(operation: TableTableJoin, node: Node) -> Edge:
    other_table, combine, skips = node.getter(operation.other), _combining(operation), _skipping(operation)
    get, former = other_table.for_joins(), _former(other_table) if operation.kind is JoinKind.INNER else None
    send_old, versioned = operation.send_old, operation.versioned
    forward, drop, fail = node.forward, node.drop, node.fail

    def join(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        if key is None or (versioned and not latest):
            return drop()
        try:
            row = get(key)
            if row is None and new is None and former is not None:
                row = former(key)
            if row is None:
                if skips(new, old):
                    return None
                other, result_ms = None, timestamp_ms
            else:
                other, other_ms = row
                result_ms = timestamp_ms if timestamp_ms > other_ms else other_ms
            joined = combine(key, new, other)
            before = combine(key, old, other) if send_old else None
        except DECIDED:
            raise
        except Exception as error:
            return fail(error, key, new, timestamp_ms, headers)
        return forward(key, joined, before, result_ms, headers, latest)

    return join


def _former(table: ValueGetter) -> RowOf | None:
    """Returns the way to rows that are gone, which nobody was told of yet: with them a result may still be there.

    If both rows go while caches hold that back, neither side meets the other's when it is told: Kafka Streams leaves
    the result.
    """
    if table.held_back is None:
        return None
    holds, told = table.held_back.holds, table.held_back.told
    return lambda key: told(key) if holds(key) else None


def _skipping(operation: TableTableJoin) -> Callable[[Any, Any], bool]:
    """Returns whether a change (new, old) that meets no other row leaves the result as it is."""
    if operation.kind is JoinKind.OUTER or (operation.kind is JoinKind.LEFT and operation.side is Side.LEFT):
        return lambda new, old: new is None and old is None
    return lambda new, old: True


def _combining(operation: TableTableJoin) -> Combine:
    unite = seen_from(operation.side, operation.joiner)
    if operation.kind is JoinKind.OUTER:
        return lambda key, this, other: None if this is None and other is None else unite(key, this, other)
    if operation.kind is JoinKind.LEFT and operation.side is Side.RIGHT:
        return unite
    return lambda key, this, other: None if this is None else unite(key, this, other)


@operator.register
def _merge(operation: TableJoinMerge, node: Node) -> Edge:
    forward, send_old = node.forward, operation.send_old
    if operation.store is None:
        return forward if send_old else _without_old(forward)
    store = node.store(operation.store)
    save = saver(store, node, send_old=send_old)

    def merge(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        save(key, new, old, timestamp_ms, timestamp_ms, headers)

    return expiring(merge, store, node, send_old=send_old)


def _without_old(forward: Edge) -> Edge:
    def merge(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        forward(key, new, None, timestamp_ms, headers, latest)

    return merge


@getter.register
def _merge_rows(operation: TableJoinMerge, node: Node) -> ValueGetter:
    return node.getter(operation.this) if operation.store is None else rows(node.store(operation.store))


@getter.register
def _table_join_rows(operation: TableTableJoin, node: Node) -> ValueGetter:
    """Rows of a join are never versioned, even if both tables are."""
    this, other = node.getter(operation.this), node.getter(operation.other)
    left, right = (this, other) if operation.side is Side.LEFT else (other, this)
    get = _joined_rows(operation, left.get, right.get)
    sides = [each.held_back for each in (left, right) if each.held_back is not None]
    if not sides:
        return ValueGetter(get)

    def release() -> None:
        for side in sides:
            side.release()

    told = _joined_rows(operation, _told(left), _told(right))
    held_back = HeldBack(lambda key: any(side.holds(key) for side in sides), told, release)
    return ValueGetter(get, held_back=held_back)


def _told(table: ValueGetter) -> RowOf:
    return table.get if table.held_back is None else table.held_back.told


def _joined_rows(operation: TableTableJoin, left: RowOf, right: RowOf) -> RowOf:
    unite, kind = keyed(operation.joiner), operation.kind

    def get(key: Any) -> tuple[Any, int] | None:
        left_row = left(key)
        if left_row is None and kind is not JoinKind.OUTER:
            return None
        right_row = right(key)
        if right_row is None and (kind is JoinKind.INNER or left_row is None):
            return None
        left_value, left_ms = (None, -1) if left_row is None else left_row
        right_value, right_ms = (None, -1) if right_row is None else right_row
        result = unite(key, left_value, right_value)
        return None if result is None else (result, max(left_ms, right_ms))

    return get
