"""The window within which records of two streams join."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

from headrace.arguments.durations import to_ms
from headrace.arguments.values import not_negative, whole_number
from headrace.errors import TopologyError
from headrace.windows.factories import Factories, made_by_factories


@made_by_factories
@dataclass(frozen=True, slots=True)
class JoinWindows(metaclass=Factories):
    """How far apart two records of a stream-stream join may be.

    A record of the right stream joins one of the left if ``left - before <= right <= left + after``, by timestamps.
    ``before`` and ``after`` may be negative, as long as their sum is not: ``after`` -1 s means "at least 1 s earlier".

    >>> JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=10)).before(timedelta(0))
    JoinWindows(before_ms=0, after_ms=10000, grace_ms=0)
    """

    before_ms: int
    """How much earlier than the left record the right one may be."""
    after_ms: int
    """How much later than the left record the right one may be."""
    grace_ms: int
    """How long late records are taken, and unmatched ones wait, after the window's end."""
    eager: bool = field(default=False, repr=False)
    """Whether unmatched records of a left or outer join come out at once, and again with a partner that comes later."""

    def __post_init__(self) -> None:
        for name in ("before_ms", "after_ms", "grace_ms"):
            whole_number(getattr(self, name), f"JoinWindows: {name}")
        if self.before_ms + self.after_ms < 0:
            message = (
                "JoinWindows: before + after must not be negative, "
                f"got before {self.before_ms} ms and after {self.after_ms} ms; no two records could join"
            )
            raise TopologyError(message)
        not_negative(self.grace_ms, "JoinWindows: the grace period")

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: timedelta) -> JoinWindows:
        """Joins records at most ``difference`` apart, in either order; takes no late records.

        >>> JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=10)).size_ms
        20000
        """
        return cls.of_time_difference_and_grace(difference, timedelta(0))

    @classmethod
    def of_time_difference_and_grace(cls, difference: timedelta, grace: timedelta) -> JoinWindows:
        """Joins records at most ``difference`` apart, in either order, that come up to ``grace`` late.

        >>> JoinWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=1)).grace_ms
        1000
        """
        difference_ms = to_ms(difference, "JoinWindows: the time difference")
        return cls(difference_ms, difference_ms, to_ms(grace, "JoinWindows: the grace period"))

    def before(self, difference: timedelta) -> JoinWindows:
        """The same window, with another limit for right records that are earlier than the left one.

        >>> JoinWindows(before_ms=5, after_ms=5, grace_ms=0).before(timedelta(milliseconds=1)).before_ms
        1
        """
        return replace(self, before_ms=to_ms(difference, "JoinWindows: before"))

    def after(self, difference: timedelta) -> JoinWindows:
        """The same window, with another limit for right records that are later than the left one.

        >>> JoinWindows(before_ms=5, after_ms=5, grace_ms=0).after(timedelta(milliseconds=1)).after_ms
        1
        """
        return replace(self, after_ms=to_ms(difference, "JoinWindows: after"))

    def with_eager_results(self) -> JoinWindows:
        """The same window, but what a left or outer join finds unmatched does not wait for the window's end.

        A record without a partner comes out at once, joined with None, and once more with each partner that comes
        later: the results that Kafka Streams gave before 3.1, and that ksqlDB gives without GRACE PERIOD.

        >>> JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=1)).with_eager_results().eager
        True
        """
        return replace(self, eager=True)

    @property
    def size_ms(self) -> int:
        """Length of the window, ``before + after``.

        >>> JoinWindows(before_ms=2, after_ms=3, grace_ms=0).size_ms
        5
        """
        return self.before_ms + self.after_ms

    def joins(self, left_ms: int, right_ms: int) -> bool:
        """Tells whether a left and a right record of these timestamps join.

        >>> JoinWindows(before_ms=0, after_ms=5, grace_ms=0).joins(10, 15)
        True
        """
        return left_ms - self.before_ms <= right_ms <= left_ms + self.after_ms
