"""Punctuations: user callbacks that follow stream time or the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.arguments.durations import to_ms
from headrace.arguments.signatures import deferred, describe_function, parameters_of, takes
from headrace.errors import StreamsError
from headrace.processor import PunctuationType
from headrace.runtime.tie_heap import TieHeap

NEVER = 1 << 63


@dataclass(slots=True)
class Schedule:
    """One punctuation of one node; ``key`` names it across restarts, None for one that is not there after a restart."""

    key: str | None
    node: str
    interval_ms: int
    deadline_ms: int
    callback: Callable[[int], None]
    cancelled: bool = False

    def cancel(self) -> None:
        """Stops all further calls."""
        self.cancelled = True

    def next_deadline(self, now_ms: int) -> int:
        """Returns the next point of the grid after ``now_ms``: missed calls collapse into the one just made."""
        following = self.deadline_ms + self.interval_ms
        if now_ms >= following:
            missed = (now_ms - self.deadline_ms) // self.interval_ms
            following = self.deadline_ms + (missed + 1) * self.interval_ms
        return following


class PunctuationQueue:
    """The schedules of one clock, due ones first."""

    __slots__ = ("_heap", "next_ms", "schedules")

    def __init__(self) -> None:
        self._heap = TieHeap[Schedule]()
        self.schedules: dict[str, Schedule] = {}
        self.next_ms = NEVER
        """No schedule is due before this time: what the record loop compares with."""

    def add(self, schedule: Schedule) -> None:
        """Adds a schedule, or puts one back at its next deadline."""
        if schedule.key is not None:
            self.schedules[schedule.key] = schedule
        self._heap.offer(schedule.deadline_ms, schedule)
        self.next_ms = self._heap.smallest

    def punctuate(self, now_ms: int, call: Callable[[Schedule, int], None]) -> bool:
        """Calls every schedule that is due once, in the order of deadlines; returns whether any was called."""
        called = False
        while self._heap and self._heap.smallest <= now_ms:
            schedule = self._heap.poll()
            if schedule.cancelled:
                continue
            called = True
            call(schedule, now_ms)
            if not schedule.cancelled:
                schedule.deadline_ms = schedule.next_deadline(now_ms)
                self.add(schedule)
        self.next_ms = self._heap.smallest if self._heap else NEVER
        return called

    def snapshot(self) -> dict[str, tuple[int, bool]]:
        """Returns deadline and cancellation of every schedule, by key: what a restarted task goes on from."""
        return {key: (schedule.deadline_ms, schedule.cancelled) for key, schedule in self.schedules.items()}


def checked_interval_ms(where: str, interval: timedelta, clock: Any, callback: Any) -> int:
    """Returns the interval of a punctuation in milliseconds, if all arguments of ``schedule`` are right.

    >>> checked_interval_ms("processor 'p'", timedelta(seconds=1), PunctuationType.STREAM_TIME, str.swapcase)
    1000
    """
    interval_ms = to_ms(interval, f"{where}: interval")
    if interval_ms < 1:
        message = f"{where}: a punctuation's interval must be at least 1 ms; found {interval!r}"
        raise StreamsError(message)
    if not isinstance(clock, PunctuationType) or not callable(callback):
        message = (
            f"{where}: schedule(interval, PunctuationType, callback) is required; found {clock!r} and {callback!r}"
        )
        raise StreamsError(message)
    why = deferred(callback)
    if why is not None or not takes(callback, 1):
        found = why or f"which takes {parameters_of(callback)}"
        message = (
            f"{where}: the callback of a punctuation must be a function (now_ms); "
            f"found {describe_function(callback)}, {found}"
        )
        raise StreamsError(message)
    return interval_ms


def first_deadline(*, now_ms: int, interval_ms: int, start_ms: int | None, stream_time: bool) -> int:
    """Returns when a new schedule is due first.

    >>> first_deadline(now_ms=250, interval_ms=100, start_ms=None, stream_time=False)
    350
    >>> first_deadline(now_ms=250, interval_ms=100, start_ms=10, stream_time=False)
    310
    >>> first_deadline(now_ms=-1, interval_ms=100, start_ms=None, stream_time=True)
    0
    """
    if start_ms is None:
        # Stream time is aligned to 0, so the first record already fires.
        return 0 if stream_time else now_ms + interval_ms
    if start_ms > now_ms:
        return start_ms
    return start_ms + ((now_ms - start_ms) // interval_ms + 1) * interval_ms
