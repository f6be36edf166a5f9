"""Samples of the late records of a micro-batch, for display."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from headrace.windows.window import Window

_PER_NODE = 5
_LONGEST = 300

# node, key, value, timestamp, window, close time, origin, offset
_Kept = tuple[str, Any, Any, int, Window | None, int, tuple[str, int] | None, int]


@dataclass(frozen=True, slots=True)
class LateSample:
    """A record that came after its window had closed, as text."""

    node: str
    """Name of the node that dropped it."""
    # Users' data stays out of logs, as in LateRecord.
    key: str = field(repr=False)
    """Its key, cut if it is long."""
    value: str = field(repr=False)
    """Its value, likewise."""
    timestamp_ms: int
    """Its timestamp."""
    window: tuple[int, int] | None
    """Start and end of the window that was closed; None where an operation has no windows."""
    close_time_ms: int
    """Windows that ended before this time were closed."""
    topic: str | None
    """Topic of the input record."""
    partition: int
    """Its partition."""
    offset: int
    """Its offset."""


class LateSamples:
    """The last late records of each node since they were asked for."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, deque[_Kept]] = {}

    def add(self, kept: _Kept) -> None:
        several = self._kept.get(kept[0])
        if several is None:
            several = self._kept[kept[0]] = deque(maxlen=_PER_NODE)
        several.append(kept)

    def take(self) -> tuple[LateSample, ...]:
        """Returns them, and begins anew. Only now are keys and values made text: most records never get here."""
        if not self._kept:
            return ()
        found = tuple(_sample(kept) for several in self._kept.values() for kept in several)
        self._kept.clear()
        return found


def _sample(kept: _Kept) -> LateSample:
    node, key, value, timestamp_ms, window, close_time_ms, origin, offset = kept
    topic, partition = origin or (None, -1)
    span = None if window is None else (window.start_ms, window.end_ms)
    return LateSample(node, _text(key), _text(value), timestamp_ms, span, close_time_ms, topic, partition, offset)


def _text(value: Any) -> str:
    """Returns a key or value as JSON, or else as Python prints it."""
    if isinstance(value, str):
        return _cut(value)
    try:
        return _cut(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return _cut(repr(value))
    except Exception:
        # The user's own; a sample must not stop the task.
        return f"a {type(value).__name__}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
