"""Functions of the guides, in Python."""

from __future__ import annotations

from headrace.sql.functions.python import udaf


def formula(v1: int, v2: int) -> int:
    """A custom formula for important business logic."""
    return v1 * v2


@udaf
class RollingSum:
    """The sum of the last three values."""

    def initialize(self) -> list[int]:
        return []

    def aggregate(self, state: list[int], value: int) -> list[int]:
        return [*state, value][-3:]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return [*left, *right][-3:]

    def map(self, state: list[int]) -> int:
        return sum(state)
