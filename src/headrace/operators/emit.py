"""Emission of windows on close: each window is forwarded once, after stream time has passed its end and grace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from headrace.operators.base import Node
from headrace.topics.log import Headers
from headrace.windows import TimeWindow, Windowed

NEVER = -1
END_MS = 2**62
"""A time behind all others, at which every window has closed."""

Span: TypeAlias = Callable[[int, int], "tuple[int, int] | None"]
"""(close time of the last emission or NEVER, close time) -> first and last time to fetch, inclusive; None: nothing."""
Emit: TypeAlias = Callable[[int, int, Headers], None]
"""Sends the windows of a span on, with the headers of the record that closed them."""
Close: TypeAlias = Callable[[int, Headers], None]
"""(close time, headers): emits what has closed; to be called at the end of every record."""


def on_close(node: Node, store: str, span: Span, emit: Emit) -> Close:
    """Returns what emits each window of a store once, after it has closed.

    Looking for closed windows is a scan of the store, so it is tried only once per interval of the wall clock.
    """
    interval_ms, wall_clock_ms = node.config.emit_interval_ms, node.task.wall_clock_ms
    due, emitted = node.cell(store, "emit-due", 0), node.cell(store, "emitted", NEVER)

    def close(close_time_ms: int, headers: Headers) -> None:
        now_ms = wall_clock_ms()
        if now_ms < due.value:
            return
        due.value = now_ms + interval_ms
        last_ms = emitted.value
        if last_ms != NEVER and last_ms >= close_time_ms:
            return
        closed = span(last_ms, close_time_ms)
        if closed is not None:
            emit(*closed, headers)
            emitted.value = close_time_ms

    node.on_end(lambda: close(END_MS, ()))
    return close


def window_results(store: Any, node: Node, size_ms: int) -> Emit:
    """Returns what sends on the rows of a window store, by the starts of their windows."""
    fetch_closed, forward = store.fetch_closed, node.forward

    def emit(first_ms: int, last_ms: int, headers: Headers) -> None:
        for start_ms, key, value, timestamp_ms in fetch_closed(first_ms, last_ms):
            window = TimeWindow(start_ms, start_ms + size_ms)
            forward(Windowed(key, window), value, None, timestamp_ms, headers, True)

    return emit
