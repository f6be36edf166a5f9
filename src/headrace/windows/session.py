"""Session windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.arguments.durations import to_ms
from headrace.arguments.values import not_negative, whole_number
from headrace.windows.factories import Factories, made_by_factories


@made_by_factories
@dataclass(frozen=True, slots=True)
class SessionWindows(metaclass=Factories):
    """Windows of activity: records of a key that follow one another within ``gap`` are one session.

    A session reaches from its first record to its last, both inclusive. A record between two sessions joins them.

    >>> SessionWindows.of_inactivity_gap_with_no_grace(timedelta(minutes=5))
    SessionWindows(gap_ms=300000, grace_ms=0)
    """

    gap_ms: int
    """Longest pause within a session."""
    grace_ms: int
    """How long after its end a session takes late records, in addition to the gap."""

    def __post_init__(self) -> None:
        for name in ("gap_ms", "grace_ms"):
            whole_number(getattr(self, name), f"SessionWindows: {name}")
        not_negative(self.gap_ms, "SessionWindows: the inactivity gap")
        not_negative(self.grace_ms, "SessionWindows: the grace period")

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: timedelta) -> SessionWindows:
        """Sessions that close as soon as stream time passes their end by more than the gap.

        >>> SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=1)).gap_ms
        1000
        """
        return cls.of_inactivity_gap_and_grace(gap, timedelta(0))

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: timedelta, grace: timedelta) -> SessionWindows:
        """Sessions that still take records that come up to ``grace`` late.

        >>> SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=1), timedelta(seconds=2)).grace_ms
        2000
        """
        return cls(to_ms(gap, "SessionWindows: the inactivity gap"), to_ms(grace, "SessionWindows: the grace period"))
