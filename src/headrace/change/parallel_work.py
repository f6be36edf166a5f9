"""Seam to what runs independent parts of a change, and the one that runs them in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class ParallelMap(Protocol):
    """Calls a function with each of several values, at once where it can, and returns the results in their order.

    Function, values and results may be sent to other processes and back, so they pickle. If a process is lost, the
    function may be called once more with the same value.
    """

    def __call__(self, function: Callable[[A], B], values: Sequence[A], /) -> Iterable[B]: ...


def in_this_process(function: Callable[[A], B], values: Sequence[A], /) -> Iterable[B]:
    """Calls a function with each value, one after the other, as results are asked for.

    >>> list(in_this_process(len, ["a", "bc"]))
    [1, 2]
    """
    return map(function, values)
