"""Random columns: endless, in blocks, and each with a generator of its own.

A block is one call into C, several times as fast as a call per value. That each column has its own generator makes the
stream the same however it is cut into blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Column(Generic[T]):
    """Values picked at random from some, with weights if there are any.

    >>> column = Column("colour", ["red", "green"], seed=1)
    >>> column.take(3) + column.take(2) == Column("colour", ["red", "green"], seed=1).take(5)
    True
    """

    def __init__(self, name: str, values: Sequence[T], *, seed: int, weights: Sequence[int] | None = None) -> None:
        self._random = Random(f"{seed}/{name}")
        self._values = values
        self._weights = None if weights is None else _running(weights)

    def take(self, count: int) -> list[T]:
        return self._random.choices(self._values, cum_weights=self._weights, k=count)


def _running(weights: Sequence[int]) -> list[int]:
    total, sums = 0, []
    for weight in weights:
        total += weight
        sums.append(total)
    return sums


def dice(name: str, *, seed: int) -> Random:
    """Returns a generator for what is made once, before the stream."""
    return Random(f"{seed}/{name}")
