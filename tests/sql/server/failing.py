"""Functions for SQL that raise."""

from __future__ import annotations

from headrace.sql.functions.python import udaf


@udaf
class Refuse:
    """Takes no value."""

    def initialize(self) -> int:
        return 0

    def aggregate(self, _state: int, value: int) -> int:
        message = f"{value} is too much"
        raise ValueError(message)

    def merge(self, left: int, right: int) -> int:
        return left + right
