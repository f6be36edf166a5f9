"""One window, and a key within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from headrace.arguments.durations import MAX_LONG
from headrace.arguments.hints import Hinting, each
from headrace.errors import WindowError

K = TypeVar("K")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# Every windowed result makes a window and a windowed key. The constructors are written out because those that a frozen
# dataclass generates take twice as long.
@dataclass(frozen=True, slots=True, init=False)
class Window(Hinting):
    """A span of time from ``start_ms`` to ``end_ms``; whether the end belongs to it depends on the kind of window.

    Windows of different kinds are never equal.

    >>> TimeWindow(0, 10) == TimeWindow(0, 10), TimeWindow(0, 10) == SessionWindow(0, 10)
    (True, False)
    >>> TimeWindow(10, 5)
    Traceback (most recent call last):
    ...
    headrace.errors.WindowError: a window cannot end before it starts, got start 10 and end 5
    """

    _HINTS: ClassVar[Mapping[str, str]] = {"start": "did you mean 'start_ms'?", "end": "did you mean 'end_ms'?"}

    start_ms: int
    """First millisecond of the window."""
    end_ms: int
    """End of the window: exclusive for time windows, inclusive for sessions and sliding windows."""

    def __init__(self, start_ms: int, end_ms: int) -> None:
        if not 0 <= start_ms <= end_ms:
            raise _invalid(start_ms, end_ms)
        _set_start(self, start_ms)
        _set_end(self, end_ms)

    @property
    def start_time(self) -> datetime:
        """Start as a time in UTC.

        >>> TimeWindow(60_000, 120_000).start_time.isoformat()
        '1970-01-01T00:01:00+00:00'
        """
        return _to_datetime(self.start_ms)

    @property
    def end_time(self) -> datetime:
        """End as a time in UTC; an end beyond year 9999 is given as the latest time Python knows.

        >>> UnlimitedWindow(0).end_time.year
        9999
        """
        return _to_datetime(self.end_ms)

    def overlap(self, other: Window) -> bool:
        """Tells whether two windows of one kind have a moment in common.

        >>> TimeWindow(0, 10).overlap(TimeWindow(10, 20)), SessionWindow(0, 10).overlap(SessionWindow(10, 20))
        (False, True)
        """
        if type(self) is not type(other):
            message = f"only windows of one kind can be compared, got {self} and {other}"
            raise WindowError(message)
        return self.start_ms <= other.end_ms and other.start_ms <= self.end_ms


@dataclass(frozen=True, slots=True, init=False)
class TimeWindow(Window):
    """A tumbling, hopping or sliding window; for tumbling and hopping ones the end is exclusive.

    >>> TimeWindow(0, 10)
    TimeWindow(start_ms=0, end_ms=10)
    """

    def __init__(self, start_ms: int, end_ms: int) -> None:
        if not 0 <= start_ms < end_ms:
            raise _invalid(start_ms, end_ms)
        _set_start(self, start_ms)
        _set_end(self, end_ms)

    def overlap(self, other: Window) -> bool:
        """Tells whether two time windows have a moment in common; their ends are exclusive.

        >>> TimeWindow(0, 10).overlap(TimeWindow(9, 19))
        True
        """
        return Window.overlap(self, other) and self.start_ms < other.end_ms and other.start_ms < self.end_ms


@dataclass(frozen=True, slots=True, init=False)
class SessionWindow(Window):
    """A session, from its first record to its last, both inclusive.

    >>> SessionWindow(5, 5)
    SessionWindow(start_ms=5, end_ms=5)
    """


@dataclass(frozen=True, slots=True, init=False)
class UnlimitedWindow(Window):
    """A window without end.

    >>> UnlimitedWindow(5).end_ms == 2**63 - 1
    True
    """

    def __init__(self, start_ms: int) -> None:
        Window.__init__(self, start_ms, MAX_LONG)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Windowed(Hinting, Generic[K]):
    """A key within a window: the key of every windowed result.

    >>> Windowed("alice", TimeWindow(0, 10))
    [alice@0/10]
    >>> Windowed("alice", TimeWindow(0, 10)) == Windowed("alice", TimeWindow(0, 10))
    True
    """

    _HINTS: ClassVar[Mapping[str, str]] = each(
        "it belongs to the window: window.{}", "start_ms", "end_ms", "start_time", "end_time"
    ) | {"start": "it belongs to the window: window.start_ms", "end": "it belongs to the window: window.end_ms"}

    key: K
    """The key without its window."""
    window: Window
    """The window."""

    def __init__(self, key: K, window: Window) -> None:
        _set_key(self, key)
        _set_window(self, window)

    def __repr__(self) -> str:
        return f"[{self.key}@{self.window.start_ms}/{self.window.end_ms}]"


_set_start: Callable[[Window, int], None] = Window.__dict__["start_ms"].__set__
_set_end: Callable[[Window, int], None] = Window.__dict__["end_ms"].__set__
_set_key: Callable[[Windowed[Any], Any], None] = Windowed.__dict__["key"].__set__
_set_window: Callable[[Windowed[Any], Window], None] = Windowed.__dict__["window"].__set__


def _invalid(start_ms: int, end_ms: int) -> WindowError:
    if start_ms < 0:
        message = f"a window cannot start before 0, got start {start_ms}"
    elif end_ms < start_ms:
        message = f"a window cannot end before it starts, got start {start_ms} and end {end_ms}"
    else:
        message = f"a time window must be longer than nothing, got start and end {start_ms}"
    return WindowError(message)


def _to_datetime(timestamp_ms: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
