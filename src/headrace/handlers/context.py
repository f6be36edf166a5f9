"""Context of a failure, as handlers get it: the record, the node, the task."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headrace.record import EMPTY_HEADERS, Headers
from headrace.windows.window import Window


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """Context of a failure: the input record that was being processed, the node and the task.

    >>> ErrorContext(topic="orders", partition=0, offset=41, node="parse", task_id="0_0")
    ErrorContext(topic='orders', partition=0, offset=41, node='parse', task_id='0_0', timestamp_ms=-1)
    """

    topic: str | None = None
    """Topic of the input record; None in a punctuation."""
    partition: int = -1
    """Its partition; -1 in a punctuation."""
    offset: int = -1
    """Its offset; -1 in a punctuation."""
    # Users' data stays out of logs: neither headers nor bytes are printed.
    headers: Headers = field(default=EMPTY_HEADERS, repr=False)
    """Headers of the input record."""
    key: bytes | None = field(default=None, repr=False)
    """Raw key of the input record; None in a punctuation, and for a change that a cache or buffer has held back."""
    value: bytes | None = field(default=None, repr=False)
    """Raw value of the input record, likewise."""
    node: str = ""
    """Name of the node that failed."""
    task_id: str = ""
    """The task, such as ``0_3``."""
    timestamp_ms: int = -1
    """Timestamp of the record."""
    dead_letter_topic: str | None = field(default=None, repr=False)
    """The application's ``errors_dead_letter_queue_topic_name``, if it has one."""


class Origin(Enum):
    """The step of writing an output record that failed.

    >>> Origin("key")
    <Origin.KEY: 'key'>
    """

    KEY = "key"
    """The serde of the key."""
    VALUE = "value"
    """The serde of the value."""
    SEND = "send"
    """The log did not take the record."""


@dataclass(frozen=True, slots=True)
class FailedOutput:
    """A record that could not be written to its topic.

    >>> FailedOutput("totals", "alice", 5, 1000, origin=Origin.VALUE).origin.value
    'value'
    """

    topic: str
    """Where it was to go."""
    key: Any
    """The key: the object if a serde failed, the bytes if sending failed."""
    value: Any
    """The value, likewise."""
    timestamp_ms: int
    """Its timestamp."""
    headers: Headers = EMPTY_HEADERS
    """Its headers."""
    partition: int | None = None
    """Where a partitioner had put it, if it had."""
    origin: Origin = Origin.SEND
    """What failed."""


@dataclass(frozen=True, slots=True)
class LateRecord:
    """A record that came after its window had closed and was dropped; given to ``on_late``.

    It has the ``node`` that dropped it, its ``key``, ``value``, ``timestamp_ms`` and ``headers``, the ``window`` that
    was closed, ``close_time_ms``, and ``topic``, ``partition`` and ``offset`` of the input record. Key, value and
    headers are not printed.

    >>> from headrace.windows import TimeWindow
    >>> LateRecord("count", "alice", 1, 5_000, window=TimeWindow(0, 10_000), close_time_ms=12_000, topic="clicks")
    LateRecord(node='count', timestamp_ms=5000, window=TimeWindow(start_ms=0, end_ms=10000), close_time_ms=12000, \
topic='clicks', partition=-1, offset=-1)
    """

    node: str
    """Name of the node that dropped it."""
    # Users' data stays out of logs, as in ErrorContext.
    key: Any = field(repr=False)
    """Its key."""
    value: Any = field(repr=False)
    """Its value."""
    timestamp_ms: int
    """Its timestamp."""
    headers: Headers = field(default=EMPTY_HEADERS, repr=False)
    """Its headers."""
    window: Window | None = None
    """The window that was closed; None where an operation has no windows."""
    close_time_ms: int = -1
    """Windows that ended before this time were closed: stream time less the grace period."""
    topic: str | None = None
    """Topic of the input record."""
    partition: int = -1
    """Its partition."""
    offset: int = -1
    """Its offset."""
