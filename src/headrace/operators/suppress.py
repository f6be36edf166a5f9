"""Suppression: holds the changes of a table back, one per key, until their time has come or the buffer is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headrace.errors import SerializationError, StreamsError
from headrace.operators.base import Edge, Node, ValueGetter, getter, operator
from headrace.operators.emit import END_MS, NEVER
from headrace.topics.log import Headers
from headrace.topology.operations import Suppress


@operator.register
def _suppress(operation: Suppress, node: Node) -> Edge:
    buffer, wait_ms, by_window_end = node.store(operation.store), operation.wait_ms, operation.by_window_end
    max_records, max_bytes, shut_down = operation.max_records, operation.max_bytes, operation.shut_down
    put, evict_while, forward, fail, name = buffer.put, buffer.evict_while, node.forward, node.fail, node.name
    time = node.cell(operation.store, "stream-time", NEVER)

    def emit(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers) -> None:
        # Nothing was emitted for the window before it closed, so there is nothing to take back.
        if new is not None or not by_window_end:
            forward(key, new, old, timestamp_ms, headers, True)

    def due() -> bool:
        return bool(buffer.min_time_ms <= time.value - wait_ms)

    def too_full() -> bool:
        return (max_records is not None and buffer.num_records > max_records) or (
            max_bytes is not None and buffer.size_bytes > max_bytes
        )

    bounded = max_records is not None or max_bytes is not None

    def suppress(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        if timestamp_ms > time.value:
            time.value = timestamp_ms
        try:
            put(key.window.end_ms if by_window_end else timestamp_ms, key, new, old, timestamp_ms, headers)
        except SerializationError as error:
            return fail(error, key, new, timestamp_ms, headers)
        if due():
            evict_while(due, emit)
        if bounded and too_full():
            if shut_down:
                message = (
                    f"node '{name}': the suppression buffer is full, with {buffer.num_records} records "
                    f"(at most {max_records}) and {buffer.size_bytes} bytes (at most {max_bytes}); allow more, "
                    "or emit early when it is full"
                )
                return fail(StreamsError(message), key, new, timestamp_ms, headers)
            evict_while(too_full, emit)
        return None

    def emit_all() -> None:
        time.value = END_MS
        evict_while(due, emit)

    node.on_end(emit_all)
    return suppress


@getter.register
def _suppressed_rows(operation: Suppress, node: Node) -> ValueGetter:
    """What was emitted last: for a key in the buffer, the row before it was buffered."""
    prior_pair, parent = node.store(operation.store).prior_pair, node.getter(operation.parent)
    held_back = parent.held_back
    if held_back is not None:
        holds = held_back.holds
        held_back = replace(
            held_back,
            holds=lambda key: not prior_pair(key)[0] and holds(key),
            told=_last_emitted(prior_pair, held_back.told),
        )
    return ValueGetter(_last_emitted(prior_pair, parent.get), held_back=held_back)


def _last_emitted(
    prior_pair: Callable[[Any], tuple[bool, Any]], parent: Callable[[Any], tuple[Any, int] | None]
) -> Callable[[Any], tuple[Any, int] | None]:
    def get(key: Any) -> tuple[Any, int] | None:
        buffered, row = prior_pair(key)
        return row if buffered else parent(key)

    return get
