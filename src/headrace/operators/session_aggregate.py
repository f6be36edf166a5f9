"""Aggregations by session windows: a record extends the sessions it touches and merges them into one."""

from __future__ import annotations

from typing import Any

from headrace.errors import SerializationError
from headrace.operators.aggregate_rows import forward_flushes
from headrace.operators.base import Edge, HeldBack, Node, ValueGetter, getter, operator
from headrace.operators.emit import NEVER, Emit, on_close
from headrace.topics.log import Headers
from headrace.topology.operations import SessionAggregate
from headrace.windows import EmitStrategy, SessionWindow, Windowed


@operator.register
def _session_aggregate(operation: SessionAggregate, node: Node) -> Edge:
    store, send_old = node.store(operation.store), operation.send_old
    initializer, aggregator, merger = operation.initializer, operation.aggregator, operation.merger
    gap_ms, grace_ms = operation.windows.gap_ms, operation.windows.grace_ms
    find, put, remove, forward = store.find, store.put_session, store.remove_session, node.forward
    drop, late, fail = node.drop, node.late, node.fail
    time = node.cell(operation.store, "stream-time", NEVER)
    final = operation.emit is EmitStrategy.ON_WINDOW_CLOSE
    close = on_close(node, operation.store, _closed_between, _results(store, node)) if final else None
    if store.cached and not final:
        forward_flushes(store, node, send_old=send_old)
    forwards = not store.cached and not final

    def aggregate(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        if timestamp_ms > time.value:
            time.value = timestamp_ms
        close_time_ms = time.value - grace_ms - gap_ms
        start_ms = end_ms = timestamp_ms
        try:
            found = find(key, timestamp_ms - gap_ms, timestamp_ms + gap_ms)
            merged = initializer()
            for session_start_ms, session_end_ms, session in found:
                merged = merger(key, merged, session)
                start_ms = min(start_ms, session_start_ms)
                end_ms = max(end_ms, session_end_ms)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if end_ms < close_time_ms:
            window = SessionWindow(start_ms, end_ms)
            late(key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)
        else:
            # A session of just this moment keeps its window, so its row is overwritten; any other gets a tombstone.
            if start_ms != end_ms:
                for session_start_ms, session_end_ms, session in found:
                    remove(key, session_start_ms, session_end_ms, headers)
                    if forwards:
                        gone = Windowed(key, SessionWindow(session_start_ms, session_end_ms))
                        forward(gone, None, session if send_old else None, session_end_ms, (), True)
            try:
                merged = aggregator(key, value, merged)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            try:
                put(key, start_ms, end_ms, merged, headers)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
            if forwards:
                forward(Windowed(key, SessionWindow(start_ms, end_ms)), merged, None, end_ms, (), True)
        if close is not None:
            close(close_time_ms, headers)
        return None

    return aggregate


@getter.register
def _session_rows(operation: SessionAggregate, node: Node) -> ValueGetter:
    store = node.store(operation.store)
    get_session, holds_back, told_session = store.get_session, store.holds_back, store.told_session

    def get(key: Windowed[Any]) -> tuple[Any, int] | None:
        window = key.window
        aggregate = get_session(key.key, window.start_ms, window.end_ms)
        return None if aggregate is None else (aggregate, window.end_ms)

    def holds(key: Windowed[Any]) -> bool:
        return bool(holds_back(key.key, key.window.start_ms, key.window.end_ms))

    def told(key: Windowed[Any]) -> tuple[Any, int] | None:
        window = key.window
        aggregate = told_session(key.key, window.start_ms, window.end_ms)
        return None if aggregate is None else (aggregate, window.end_ms)

    return ValueGetter(get, held_back=HeldBack(holds, told, store.flush_cache) if store.cached else None)


def _closed_between(last_ms: int, close_time_ms: int) -> tuple[int, int] | None:
    # Sessions are found by their ends, which are inclusive: one that ends at the close time still takes records.
    lower_ms, upper_ms = max(0, last_ms), close_time_ms - 1
    return (lower_ms, upper_ms) if upper_ms >= lower_ms else None


def _results(store: Any, node: Node) -> Emit:
    find_closed, forward = store.find_closed, node.forward

    def emit(first_ms: int, last_ms: int, headers: Headers) -> None:
        for start_ms, end_ms, key, aggregate in find_closed(first_ms, last_ms):
            forward(Windowed(key, SessionWindow(start_ms, end_ms)), aggregate, None, end_ms, headers, True)

    return emit
