"""The wall clock of the task that runs, for functions that are given values only.

Processors ask their context for the time. A function in an expression has none; it asks here, and gets what the host
of its task calls now: with micro-batches the time for which the batch was planned, so that a batch that is repeated,
perhaps by another machine, gives the same results.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar

R = TypeVar("R")


class _Running(threading.local):
    clock: Callable[[], int] | None = None


_running = _Running()


class HasClock(Protocol):
    """Protocol of objects that run by a clock of their own."""

    def wall_clock_ms(self) -> int: ...


T = TypeVar("T", bound=HasClock)


def task_clock_ms() -> int:
    """Returns the time of the task that this thread runs; outside of tasks the time of the machine."""
    clock = _running.clock
    return time.time_ns() // 1_000_000 if clock is None else clock()


def by_own_clock(method: Callable[[T], R]) -> Callable[[T], R]:
    """Returns the method such that what it calls finds the clock of its object."""

    @wraps(method)
    def timed(self: T) -> R:
        before = _running.clock
        _running.clock = self.wall_clock_ms
        try:
            return method(self)
        finally:
            _running.clock = before

    return timed
