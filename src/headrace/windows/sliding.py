"""Sliding windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.arguments.durations import to_ms
from headrace.arguments.values import not_negative, whole_number
from headrace.windows.factories import Factories, made_by_factories


@made_by_factories
@dataclass(frozen=True, slots=True)
class SlidingWindows(metaclass=Factories):
    """Windows that group all records whose timestamps differ by at most ``difference``, both ends inclusive.

    The windows follow the records instead of the epoch: a record at ``t`` makes the window ``[t - difference, t]`` and,
    if later records fall into it, ``[t + 1, t + 1 + difference]``.

    >>> SlidingWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=1))
    SlidingWindows(difference_ms=10000, grace_ms=1000)
    """

    difference_ms: int
    """Largest difference of two timestamps in one window."""
    grace_ms: int
    """How long after its end a window takes late records."""

    def __post_init__(self) -> None:
        for name in ("difference_ms", "grace_ms"):
            whole_number(getattr(self, name), f"SlidingWindows: {name}")
        not_negative(self.difference_ms, "SlidingWindows: the time difference")
        not_negative(self.grace_ms, "SlidingWindows: the grace period")

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: timedelta) -> SlidingWindows:
        """Sliding windows that take no late records.

        >>> SlidingWindows.of_time_difference_with_no_grace(timedelta(seconds=10)).grace_ms
        0
        """
        return cls.of_time_difference_and_grace(difference, timedelta(0))

    @classmethod
    def of_time_difference_and_grace(cls, difference: timedelta, grace: timedelta) -> SlidingWindows:
        """Sliding windows that still take records that come up to ``grace`` late.

        >>> SlidingWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=1)).difference_ms
        10000
        """
        return cls(
            to_ms(difference, "SlidingWindows: the time difference"),
            to_ms(grace, "SlidingWindows: the grace period"),
        )

    def windows_for(self, timestamp_ms: int) -> list[int]:
        """Returns the starts of the two windows that a record defines by itself: the one it ends, the one it precedes.

        A record earlier than ``difference`` defines the window at 0, because no window starts before the epoch. The
        second window holds later records only, so it exists only if one comes.

        >>> SlidingWindows(difference_ms=10, grace_ms=0).windows_for(25)
        [15, 26]
        >>> SlidingWindows(difference_ms=10, grace_ms=0).windows_for(4)
        [0, 5]
        """
        return [max(0, timestamp_ms - self.difference_ms), timestamp_ms + 1]
