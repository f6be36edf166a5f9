"""Aggregations by custom windows: as by hopping windows, but the windows themselves tell where they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import SerializationError, StreamsError
from headrace.operators.aggregate_rows import forward_flushes, keeper
from headrace.operators.base import Edge, Node
from headrace.operators.emit import NEVER, Emit, on_close
from headrace.topics.log import Headers
from headrace.topology.operations import WindowAggregate
from headrace.windows import EmitStrategy, Window, Windowed, Windows


def aggregate_own_windows(operation: WindowAggregate, node: Node) -> Edge:
    """Returns the code that aggregates by windows of one's own."""
    windows, store, send_old = operation.windows, node.store(operation.store), operation.send_old
    initializer, aggregator = operation.initializer, operation.aggregator
    windows_for, window_at, grace_ms, cached = windows.windows_for, _checked(windows), windows.grace_ms, store.cached
    get, put, forward, keep = store.get_pair, store.put_pair, node.forward, keeper(store)
    drop, late, fail = node.drop, node.late, node.fail
    time = node.cell(operation.store, "stream-time", NEVER)
    close = None
    if operation.emit is EmitStrategy.ON_WINDOW_CLOSE:
        close = on_close(node, operation.store, _ends_between, _results(store, node, windows))
    elif cached:
        forward_flushes(store, node, send_old=send_old)

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        if timestamp_ms > time.value:
            time.value = timestamp_ms
        close_time_ms = time.value - grace_ms
        try:
            found = [window_at(start_ms) for start_ms in windows_for(timestamp_ms)]
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        for window in found:
            if window.end_ms <= close_time_ms:
                late(key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)
                continue
            try:
                row = get(key, window.start_ms)
                aggregate, newest_ms = (initializer(), timestamp_ms) if row is None else row
                newest_ms = max(newest_ms, timestamp_ms)
                old = keep(aggregate) if send_old else None
                new = aggregator(key, value, aggregate)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            try:
                put(key, window.start_ms, new, timestamp_ms if cached and new is None else newest_ms, headers)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
            if close is None and not cached:
                forward(Windowed(key, window), new, old, newest_ms, headers, True)
        if close is not None:
            close(close_time_ms, headers)
        return None

    return process


def _checked(windows: Windows) -> Callable[[int], Window]:
    window_at, size_ms, kind = windows.window_at, windows.size_ms, type(windows).__name__

    def checked(start_ms: int) -> Window:
        window = window_at(start_ms)
        if window.start_ms != start_ms:
            message = f"{kind}.window_at({start_ms!r}) must return the window that starts then, got {window}"
            raise StreamsError(message)
        if window.end_ms - start_ms > size_ms:
            message = f"{kind}.size_ms must be the length of the longest window; it is {size_ms}, but there is {window}"
            raise StreamsError(message)
        return window

    return checked


def _ends_between(last_ms: int, close_time_ms: int) -> tuple[int, int] | None:
    return (last_ms + 1, close_time_ms) if close_time_ms > last_ms else None


def _results(store: Any, node: Node, windows: Windows) -> Emit:
    fetch_closed, forward, window_at, size_ms = store.fetch_closed, node.forward, windows.window_at, windows.size_ms

    def emit(first_ms: int, last_ms: int, headers: Headers) -> None:
        # Rows are found by their starts; shorter windows that start late may end before longer ones.
        for start_ms, key, value, timestamp_ms in fetch_closed(max(0, first_ms - size_ms), last_ms):
            window = window_at(start_ms)
            if first_ms <= window.end_ms <= last_ms:
                forward(Windowed(key, window), value, None, timestamp_ms, headers, True)

    return emit
