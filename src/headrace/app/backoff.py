"""Backoff after failures: waits that double with every failure in a row."""

from __future__ import annotations

FIRST = 0.1
LONGEST = 10.0


class Backoff:
    """Waits that double with every failure in a row.

    >>> backoff = Backoff()
    >>> [backoff.next() for _ in range(9)]
    [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    >>> backoff.reset()
    >>> backoff.next()
    0.1
    """

    def __init__(self) -> None:
        self._seconds = FIRST

    def next(self) -> float:
        """Returns the seconds to wait now."""
        seconds = self._seconds
        self._seconds = min(seconds * 2, LONGEST)
        return seconds

    def reset(self) -> None:
        """Begins anew, after a success."""
        self._seconds = FIRST
