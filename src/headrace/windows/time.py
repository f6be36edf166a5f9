"""Tumbling and hopping windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.arguments.durations import to_ms
from headrace.arguments.values import not_negative, whole_number
from headrace.errors import TopologyError
from headrace.windows.factories import Factories, made_by_factories
from headrace.windows.window import TimeWindow


@made_by_factories
@dataclass(frozen=True, slots=True)
class TimeWindows(metaclass=Factories):
    """Windows of a fixed size, aligned to the epoch: tumbling, or hopping after ``advance_by``.

    A record belongs to every window with ``start <= timestamp < start + size``. A window takes late records until
    stream time reaches its end plus the grace period.

    >>> minute = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
    >>> minute.windows_for(61_000)
    [60000]
    >>> minute.advance_by(timedelta(seconds=30)).windows_for(61_000)
    [30000, 60000]
    """

    size_ms: int
    """Length of a window."""
    advance_ms: int
    """Distance between the starts of two windows; the size for tumbling windows."""
    grace_ms: int
    """How long after its end a window takes late records."""

    def __post_init__(self) -> None:
        for name in ("size_ms", "advance_ms", "grace_ms"):
            whole_number(getattr(self, name), f"TimeWindows: {name}")
        if self.size_ms <= 0:
            message = f"TimeWindows: the size must be at least 1 ms, got {self.size_ms} ms"
            raise TopologyError(message)
        if not 0 < self.advance_ms <= self.size_ms:
            message = (
                f"TimeWindows: the advance must be at least 1 ms and at most the size, which is {self.size_ms} ms, "
                f"got {self.advance_ms} ms; with a longer advance some records would be in no window"
            )
            raise TopologyError(message)
        not_negative(self.grace_ms, "TimeWindows: the grace period")

    @classmethod
    def of_size_with_no_grace(cls, size: timedelta) -> TimeWindows:
        """Tumbling windows that close as soon as stream time reaches their end.

        >>> TimeWindows.of_size_with_no_grace(timedelta(seconds=10))
        TimeWindows(size_ms=10000, advance_ms=10000, grace_ms=0)
        """
        return cls.of_size_and_grace(size, timedelta(0))

    @classmethod
    def of_size_and_grace(cls, size: timedelta, grace: timedelta) -> TimeWindows:
        """Tumbling windows that still take records that come up to ``grace`` late.

        >>> TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(seconds=2)).grace_ms
        2000
        """
        size_ms = to_ms(size, "TimeWindows: the size")
        return cls(size_ms, size_ms, to_ms(grace, "TimeWindows: the grace period"))

    def advance_by(self, advance: timedelta) -> TimeWindows:
        """Hopping windows: the same size, but a new window every ``advance``.

        >>> TimeWindows(size_ms=10, advance_ms=10, grace_ms=0).advance_by(timedelta(milliseconds=5)).windows_for(12)
        [5, 10]
        """
        return TimeWindows(self.size_ms, to_ms(advance, "TimeWindows: the advance"), self.grace_ms)

    def windows_for(self, timestamp_ms: int) -> list[int]:
        """Returns the starts of the windows that a record belongs to, in ascending order; none is negative.

        >>> TimeWindows(size_ms=10, advance_ms=4, grace_ms=0).windows_for(9)
        [0, 4, 8]
        """
        advance_ms = self.advance_ms
        if advance_ms == self.size_ms and timestamp_ms >= 0:
            return [timestamp_ms - timestamp_ms % advance_ms]
        first = max(0, timestamp_ms - self.size_ms + advance_ms) // advance_ms * advance_ms
        return list(range(first, timestamp_ms + 1, advance_ms))

    def window_at(self, start_ms: int) -> TimeWindow:
        """Returns the window that starts then.

        >>> TimeWindows(size_ms=10, advance_ms=5, grace_ms=0).window_at(5)
        TimeWindow(start_ms=5, end_ms=15)
        """
        return TimeWindow(start_ms, start_ms + self.size_ms)
