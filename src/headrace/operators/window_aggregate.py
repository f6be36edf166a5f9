"""Aggregations by tumbling, hopping and unlimited windows: one row per key and window.

Tumbling windows have code of their own, of which some is the same as for the others: a shared function would cost a
call per record.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import SerializationError, TopologyError
from headrace.operators.aggregate_rows import forward_flushes, keeper
from headrace.operators.base import Edge, HeldBack, Node, ValueGetter, getter, operator
from headrace.operators.custom_window_aggregate import aggregate_own_windows
from headrace.operators.emit import NEVER, Close, Span, on_close, window_results
from headrace.topics.log import Headers
from headrace.topology.operations import SlidingAggregate, WindowAggregate
from headrace.windows import EmitStrategy, TimeWindow, TimeWindows, UnlimitedWindow, Window, Windowed, custom_windows


@operator.register
def _window_aggregate(operation: WindowAggregate, node: Node) -> Edge:
    windows, store = operation.windows, node.store(operation.store)
    if custom_windows(windows) is not None:
        return aggregate_own_windows(operation, node)
    if operation.emit is EmitStrategy.ON_WINDOW_CLOSE:
        if not isinstance(windows, TimeWindows):
            message = f"node '{node.name}': only windows that end can emit when they close, got {windows}"
            raise TopologyError(message)
        results = window_results(store, node, windows.size_ms)
        return _aggregate(operation, node, on_close(node, operation.store, _closed_between(windows), results))
    if store.cached:
        forward_flushes(store, node, send_old=operation.send_old)
    if isinstance(windows, TimeWindows) and windows.advance_ms == windows.size_ms:
        return _tumbling(operation, windows, node)
    return _aggregate(operation, node, None)


@getter.register(WindowAggregate)
@getter.register(SlidingAggregate)
def _window_rows(operation: WindowAggregate | SlidingAggregate, node: Node) -> ValueGetter:
    store = node.store(operation.store)
    get_pair, holds_back, told_pair = store.get_pair, store.holds_back, store.told_pair

    def get(key: Windowed[Any]) -> tuple[Any, int] | None:
        row: tuple[Any, int] | None = get_pair(key.key, key.window.start_ms)
        return row

    def holds(key: Windowed[Any]) -> bool:
        return bool(holds_back(key.key, key.window.start_ms))

    def told(key: Windowed[Any]) -> tuple[Any, int] | None:
        row: tuple[Any, int] | None = told_pair(key.key, key.window.start_ms)
        return row

    return ValueGetter(get, held_back=HeldBack(holds, told, store.flush_cache) if store.cached else None)


def _tumbling(operation: WindowAggregate, windows: TimeWindows, node: Node) -> Edge:
    """The common case in one piece: a record has one window, most often the one of the record before."""
    store, send_old = node.store(operation.store), operation.send_old
    initializer, aggregator = operation.initializer, operation.aggregator
    size_ms, grace_ms, cached = windows.size_ms, windows.grace_ms, store.cached
    get, put, forward, keep = store.get_pair, store.put_pair, node.forward, keeper(store)
    drop, late, fail = node.drop, node.late, node.fail
    time = node.cell(operation.store, "stream-time", NEVER)
    window, start_ms, end_ms, closes_ms = TimeWindow(0, size_ms), 0, size_ms, size_ms + grace_ms

    inline, task = cached and store.inline, node.task
    next_number = store.next_number if inline else None
    no_rows: dict[Any, Any] = {}
    rows_of = store.dirty.get

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        nonlocal window, start_ms, end_ms, closes_ms
        if key is None:
            return drop()
        stream_time_ms = time.value
        if timestamp_ms > stream_time_ms:
            time.value = stream_time_ms = timestamp_ms
        if timestamp_ms < start_ms or timestamp_ms >= end_ms:
            start_ms = timestamp_ms - timestamp_ms % size_ms
            end_ms = start_ms + size_ms
            closes_ms = end_ms + grace_ms
            window = TimeWindow(start_ms, end_ms)
        if stream_time_ms >= closes_ms:
            close_time_ms = stream_time_ms - grace_ms
            return late(key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)
        if next_number is not None:
            rows = rows_of(start_ms, no_rows)
            entry = rows.get(key)
            # A row that was changed since the last flush is the common case: it is replaced in place.
            if entry is not None and (aggregate := entry[0]) is not None:
                newest_ms = entry[1]
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
                try:
                    new = aggregator(key, value, aggregate)
                except Exception as error:
                    return fail(error, key, value, timestamp_ms, headers)
                # ``put`` checks types; here the type is that of a value that it has checked.
                if type(new) is type(aggregate):
                    rows[key] = (new, newest_ms, headers, task.origin, task.offset, next_number())
                    return None
                try:
                    return put(key, start_ms, new, timestamp_ms if new is None else newest_ms, headers)  # type: ignore[no-any-return]
                except SerializationError as error:
                    return fail(error, key, value, timestamp_ms, headers)
        try:
            row = get(key, start_ms)
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
        try:
            if cached:
                put(key, start_ms, new, timestamp_ms if new is None else newest_ms, headers)
                return None
            put(key, start_ms, new, newest_ms, headers)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(Windowed(key, window), new, old, newest_ms, headers, True)

    return process


def _aggregate(operation: WindowAggregate, node: Node, close: Close | None) -> Edge:
    windows, store, send_old = operation.windows, node.store(operation.store), operation.send_old
    initializer, aggregator = operation.initializer, operation.aggregator
    windows_for, size_ms, grace_ms = windows.windows_for, windows.size_ms, windows.grace_ms
    limited, cached = isinstance(windows, TimeWindows), store.cached
    get, put, forward, keep = store.get_pair, store.put_pair, node.forward, keeper(store)
    drop, late, fail = node.drop, node.late, node.fail
    time = node.cell(operation.store, "stream-time", NEVER)

    def process(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        if timestamp_ms > time.value:
            time.value = timestamp_ms
        close_time_ms = time.value - grace_ms
        for start_ms in windows_for(timestamp_ms):
            if limited and start_ms + size_ms <= close_time_ms:
                window = TimeWindow(start_ms, start_ms + size_ms)
                late(key, value, timestamp_ms, headers, window=window, close_time_ms=close_time_ms)
                continue
            try:
                row = get(key, start_ms)
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
            try:
                put(key, start_ms, new, timestamp_ms if cached and new is None else newest_ms, headers)
            except SerializationError as error:
                return fail(error, key, value, timestamp_ms, headers)
            if close is None and not cached:
                span: Window = TimeWindow(start_ms, start_ms + size_ms) if limited else UnlimitedWindow(start_ms)
                forward(Windowed(key, span), new, old, newest_ms, headers, True)
        if close is not None:
            close(close_time_ms, headers)
        return None

    return process


def _closed_between(windows: TimeWindows) -> Span:
    size_ms, windows_for = windows.size_ms, windows.windows_for

    def span(last_ms: int, close_time_ms: int) -> tuple[int, int] | None:
        upper_ms = close_time_ms - size_ms
        if upper_ms < 0:
            return None
        if last_ms == NEVER:
            return 0, upper_ms
        lower_ms = max(0, last_ms - size_ms)
        # No window has closed since the last emission, which must not count as one: its close time stays.
        if windows_for(upper_ms) == windows_for(lower_ms):
            return None
        return lower_ms + 1, upper_ms

    return span
