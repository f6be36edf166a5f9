"""Measurements of a task besides its counters, accumulated until the end of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Measure(NamedTuple):
    """Something that was measured several times.

    >>> Measure(4, 10.0, 1.0, 5.0).mean
    2.5
    """

    times: int
    total: float
    least: float
    most: float

    @property
    def mean(self) -> float:
        return self.total / self.times

    @classmethod
    def merged(cls, several: Iterable[Measure]) -> Measure | None:
        """Returns the measure of all of them together, None if nothing was measured.

        >>> Measure.merged([Measure(1, 5.0, 5.0, 5.0), Measure(0, 0.0, 0.0, 0.0), Measure(1, 9.0, 9.0, 9.0)])
        Measure(times=2, total=14.0, least=5.0, most=9.0)
        """
        found = [each for each in several if each.times]
        if not found:
            return None
        times, total = sum(each.times for each in found), sum(each.total for each in found)
        return cls(times, total, min(each.least for each in found), max(each.most for each in found))


class Readings:
    """Values since they were asked for last.

    >>> readings = Readings()
    >>> readings.add(2); readings.add(4)
    >>> readings.take(), readings.take()
    (Measure(times=2, total=6.0, least=2, most=4), None)
    """

    __slots__ = ("_least", "_most", "_times", "_total")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._times, self._total, self._least, self._most = 0, 0.0, float("inf"), float("-inf")

    def add(self, value: float) -> None:
        self._times += 1
        self._total += value
        self._least = min(self._least, value)
        self._most = max(self._most, value)

    def take(self) -> Measure | None:
        """Returns what was measured since it was asked last, None if nothing was."""
        if not self._times:
            return None
        found = Measure(self._times, self._total, self._least, self._most)
        self._clear()
        return found
