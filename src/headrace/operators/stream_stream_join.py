"""Windowed joins of two streams: each side keeps its records for a while and meets those of the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import SerializationError
from headrace.operators.base import Cell, Edge, Node, operator
from headrace.operators.emit import END_MS
from headrace.operators.joiners import keyed, seen_from
from headrace.record import WithKey
from headrace.topics.log import Headers
from headrace.topology.operations import Function, JoinWindowStore, Side, StreamSelfJoin, StreamStreamJoin

# Time of the oldest unmatched record while none is waiting.
NOTHING_WAITS = 2**63 - 1


@operator.register
def _window_store(operation: JoinWindowStore, node: Node) -> Edge:
    put, forward, fail = node.store(operation.store).put_pair, node.forward, node.fail

    def join_then_keep(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        forward(key, value, timestamp_ms, headers)
        if key is None or value is None:
            return None
        try:
            put(key, timestamp_ms, value, timestamp_ms, headers)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return None

    return join_then_keep


@operator.register
def _stream_join(operation: StreamStreamJoin, node: Node) -> Edge:
    if operation.unmatched_store is not None:
        return _join_keeping_unmatched(operation, node)
    if operation.outer:
        return _join_or_forward(operation, node)
    if isinstance(operation.joiner, WithKey):
        return _inner_join_with_key(operation, node)
    return _inner_join(operation, node, operation.joiner)


def _reach(operation: StreamStreamJoin) -> tuple[int, int]:
    """Returns how far before and after its own time a record of this side looks for partners."""
    windows = operation.windows
    if operation.side is Side.LEFT:
        return windows.before_ms, windows.after_ms
    return windows.after_ms, windows.before_ms


def _inner_join(operation: StreamStreamJoin, node: Node, joiner: Function) -> Edge:
    """The common case, written out for each side: the joiner is called directly, not through another function."""
    before_ms, after_ms = _reach(operation)
    fetch, forward, drop, fail = node.store(operation.other_store).fetch_pairs, node.forward, node.drop, node.fail

    def join_left(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        start_ms, end_ms = timestamp_ms - before_ms, timestamp_ms + after_ms
        try:
            matches = fetch(key, start_ms if start_ms > 0 else 0, end_ms if end_ms > 0 else 0)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        for other_ms, other, _ in matches:
            try:
                result = joiner(value, other)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            forward(key, result, timestamp_ms if timestamp_ms > other_ms else other_ms, headers)
        return None

    def join_right(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        start_ms, end_ms = timestamp_ms - before_ms, timestamp_ms + after_ms
        try:
            matches = fetch(key, start_ms if start_ms > 0 else 0, end_ms if end_ms > 0 else 0)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        for other_ms, other, _ in matches:
            try:
                result = joiner(other, value)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            forward(key, result, timestamp_ms if timestamp_ms > other_ms else other_ms, headers)
        return None

    return join_left if operation.side is Side.LEFT else join_right


def _inner_join_with_key(operation: StreamStreamJoin, node: Node) -> Edge:
    (before_ms, after_ms), combine = _reach(operation), seen_from(operation.side, operation.joiner)
    fetch, forward, drop, fail = node.store(operation.other_store).fetch_pairs, node.forward, node.drop, node.fail

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        try:
            matches = fetch(key, max(0, timestamp_ms - before_ms), max(0, timestamp_ms + after_ms))
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        for other_ms, other, _ in matches:
            try:
                result = combine(key, value, other)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            forward(key, result, max(timestamp_ms, other_ms), headers)
        return None

    return join


def _join_or_forward(operation: StreamStreamJoin, node: Node) -> Edge:
    """The older left and outer join: what finds no partner at once is forwarded at once, and may still join later."""
    (before_ms, after_ms), combine = _reach(operation), seen_from(operation.side, operation.joiner)
    fetch, forward, drop, fail = node.store(operation.other_store).fetch_pairs, node.forward, node.drop, node.fail

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if value is None:
            return drop()
        start_ms, end_ms = max(0, timestamp_ms - before_ms), max(0, timestamp_ms + after_ms)
        try:
            matches = () if key is None else fetch(key, start_ms, end_ms)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        for other_ms, other, _ in matches or ((timestamp_ms, None, timestamp_ms),):
            try:
                result = combine(key, value, other)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            forward(key, result, max(timestamp_ms, other_ms), headers)
        return None

    return join


def _join_keeping_unmatched(operation: StreamStreamJoin, node: Node) -> Edge:
    """One side of a left or outer join; the other side of a left join removes the records that it finds."""
    (before_ms, after_ms), combine, outer = (
        _reach(operation),
        seen_from(operation.side, operation.joiner),
        operation.outer,
    )
    is_left = operation.side is Side.LEFT
    fetch, unmatched = node.store(operation.other_store).fetch_pairs, node.store(str(operation.unmatched_store))
    put, remove = unmatched.put, unmatched.remove
    forward, drop, fail = node.forward, node.drop, node.fail
    time, oldest = _join_time(operation, node), _oldest_waiting(operation, node)
    emit_closed = _closed_unmatched(operation, node)
    wait_ms = after_ms + operation.windows.grace_ms
    # Kafka Streams adds the wait to its largest number while nothing waits: the sum turns negative, and it looks.
    looks_in_vain = wait_ms > 0

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        now_ms = time.value
        if timestamp_ms > now_ms:
            time.value = now_ms = timestamp_ms
        if value is None or (key is None and not outer):
            return drop()
        matches: Sequence[tuple[int, Any, int]] = ()
        start_ms, end_ms = timestamp_ms - before_ms, timestamp_ms + after_ms
        if key is not None:
            if timestamp_ms == now_ms:
                oldest_ms = oldest.value
                due = looks_in_vain if oldest_ms == NOTHING_WAITS else oldest_ms + wait_ms < now_ms
                if due and (error := emit_closed(now_ms, headers)):
                    return fail(error, key, value, timestamp_ms, headers)
            try:
                matches = fetch(key, start_ms if start_ms > 0 else 0, end_ms if end_ms > 0 else 0)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
        for other_ms, other, _ in matches:
            try:
                result = combine(key, value, other)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            remove(other_ms, not is_left, key)
            forward(key, result, timestamp_ms if timestamp_ms > other_ms else other_ms, headers)
        if matches or not outer:
            return None
        # What comes after its window has ended is not kept, although a partner may still come within the grace period.
        if key is not None and (end_ms if end_ms > 0 else 0) >= now_ms:
            if timestamp_ms < oldest.value:
                oldest.value = timestamp_ms
            try:
                put(timestamp_ms, is_left, key, value)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
            return None
        try:
            result = combine(key, value, None)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    def emit_all() -> None:
        time.value = END_MS
        if error := emit_closed(END_MS, ()):
            fail(error, None, None, END_MS, ())

    node.on_end(emit_all)
    return join


def _closed_unmatched(operation: StreamStreamJoin, node: Node) -> Callable[[int, Headers], Exception | None]:
    """Returns what forwards the records that can find no partner any more; it returns the joiner's error, if any."""
    unmatched, unite = node.store(str(operation.unmatched_store)), keyed(operation.joiner)
    entries, remove, forward, windows = unmatched.entries, unmatched.remove, node.forward, operation.windows
    left_wait_ms, right_wait_ms = windows.after_ms + windows.grace_ms, windows.before_ms + windows.grace_ms
    wall_clock_ms, interval_ms = node.task.wall_clock_ms, node.config.emit_interval_ms
    oldest = _oldest_waiting(operation, node)
    next_attempt = node.cell(operation.join, "next_emit_ms", 0, shared=True)

    def emit_closed(now_ms: int, headers: Headers) -> Exception | None:
        wall_ms = wall_clock_ms()
        if wall_ms < next_attempt.value:
            return None
        next_attempt.value = wall_ms + interval_ms
        last_seen_ms, left_open, right_open = NOTHING_WAITS, False, False
        try:
            for timestamp_ms, is_left, key, values in entries():
                # As in Kafka Streams this ends as the last record looked at, which decides about the next attempt.
                last_seen_ms = timestamp_ms
                if left_open and right_open:
                    break
                if timestamp_ms + (left_wait_ms if is_left else right_wait_ms) >= now_ms:
                    left_open, right_open = left_open or is_left, right_open or not is_left
                    # Kafka Streams looks at every value of a row: the next one would end this at the same time.
                    if left_open and right_open and len(values) > 1:
                        break
                    continue
                for value in values:
                    try:
                        result = unite(key, value, None) if is_left else unite(key, None, value)
                    except Exception as error:
                        return error
                    forward(key, result, timestamp_ms, headers)
                remove(timestamp_ms, is_left, key)
        finally:
            oldest.value = last_seen_ms
        return None

    return emit_closed


@operator.register
def _self_join(operation: StreamSelfJoin, node: Node) -> Edge:
    windows, unite, fetch = (
        operation.windows,
        keyed(operation.joiner),
        node.store(operation.store).fetch_pairs,
    )
    before_ms, after_ms = windows.before_ms, windows.after_ms
    retention_ms = windows.size_ms + windows.grace_ms
    forward, drop, fail = node.forward, node.drop, node.fail
    time = node.cell(operation.store, "stream_time_ms", -1)

    def join(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None or value is None:
            return drop()
        time.value = now_ms = max(time.value, timestamp_ms)
        with_itself = timestamp_ms > now_ms - retention_ms + 1
        try:
            as_left = fetch(key, max(0, timestamp_ms - before_ms), max(0, timestamp_ms + after_ms))
            as_right = fetch(key, max(0, timestamp_ms - after_ms), max(0, timestamp_ms + before_ms))
            results = [(max(timestamp_ms, other_ms), unite(key, value, other)) for other_ms, other, _ in as_left]
            for other_ms, other, _ in as_right:
                # A record meets itself after the earlier ones and before the later ones, as in a join of two streams.
                if with_itself and other_ms > timestamp_ms:
                    results.append((timestamp_ms, unite(key, value, value)))
                    with_itself = False
                results.append((max(timestamp_ms, other_ms), unite(key, other, value)))
            if with_itself:
                results.append((timestamp_ms, unite(key, value, value)))
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        for result_ms, result in results:
            forward(key, result, result_ms, headers)
        return None

    return join


def _join_time(operation: StreamStreamJoin, node: Node) -> Cell:
    return node.cell(operation.join, "stream_time_ms", -1, shared=True)


def _oldest_waiting(operation: StreamStreamJoin, node: Node) -> Cell:
    return node.cell(operation.join, "oldest_waiting_ms", NOTHING_WAITS, shared=True)
