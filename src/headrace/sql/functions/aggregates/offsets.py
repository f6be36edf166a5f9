"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: the first and the last values of a group.

Each value is kept with a number that grows from row to row: when sessions merge, it tells which came first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.runtime.task_clock import task_clock_ms
from headrace.sql.functions.definitions import Aggregate, AggregateFunction, AggregateOverload
from headrace.sql.functions.signatures import signature
from headrace.sql.types import ARRAY, BIGINT, STRING, STRUCT, SqlType, StructField

_last_number = 0


def next_number() -> int:
    """Returns a number larger than all before, also than those of earlier processes: it starts at the clock.

    It is the clock of the query, which is the same for all processes that run its tasks.
    """
    global _last_number
    _last_number = max(_last_number + 1, task_clock_ms() * 1000)
    return _last_number


def _entry_type(argument: SqlType) -> SqlType:
    return STRUCT((StructField("SEQ", BIGINT), StructField("VAL", argument)))


@dataclass(frozen=True)
class ByOffset(Aggregate):
    """The first or the last value; NULL values count only if asked."""

    result_type: SqlType
    latest: bool
    ignore_nulls: bool

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return _entry_type(self.result_type)

    def initialize(self) -> Any:
        return None

    def aggregate(self, state: Any, *values: Any) -> Any:
        if (values[0] is None and self.ignore_nulls) or (state is not None and not self.latest):
            return state
        return {"SEQ": next_number(), "VAL": values[0]}

    def merge(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        first, last = sorted((left, right), key=_number)
        return last if self.latest else first

    def map(self, state: Any) -> Any:
        return None if state is None else state["VAL"]


@dataclass(frozen=True)
class SeveralByOffset(Aggregate):
    """The first or the last few values."""

    argument: SqlType
    count: int
    latest: bool
    ignore_nulls: bool

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return ARRAY(_entry_type(self.argument))

    @property
    def result_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return ARRAY(self.argument)

    def initialize(self) -> list[Any]:
        return []

    def aggregate(self, state: list[Any], *values: Any) -> list[Any]:
        if values[0] is None and self.ignore_nulls:
            return state
        if not self.latest and len(state) >= self.count:
            return state
        return self._kept([*state, {"SEQ": next_number(), "VAL": values[0]}])

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return self._kept(sorted([*left, *right], key=_number))

    def map(self, state: list[Any]) -> list[Any]:
        return [entry["VAL"] for entry in state]

    def _kept(self, entries: list[Any]) -> list[Any]:
        return entries[-self.count :] if self.latest else entries[: self.count]


def _number(entry: dict[str, Any]) -> int:
    return int(entry["SEQ"])


def _overloads(name: str, *, latest: bool) -> tuple[AggregateOverload, ...]:
    def one(types: Sequence[SqlType | None], constants: Sequence[Any], settings: Mapping[str, object]) -> Aggregate:
        return ByOffset(types[0] or STRING, latest, constants[0] if constants else True)

    def several(types: Sequence[SqlType | None], constants: Sequence[Any], settings: Mapping[str, object]) -> Aggregate:
        if constants[0] is None or constants[0] <= 0:
            message = f"{name.removesuffix('_BY_OFFSET').lower()}N must be 1 or greater"
            raise ValueError(message)
        return SeveralByOffset(types[0] or STRING, constants[0], latest, constants[1] if len(constants) > 1 else True)

    rules: tuple[tuple[str, Callable[..., Aggregate], int], ...] = (
        ("(value T) T", one, 0),
        ("(value T, ignoreNulls BOOLEAN) T", one, 1),
        ("(value T, count INT) ARRAY<T>", several, 1),
        ("(value T, count INT, ignoreNulls BOOLEAN) ARRAY<T>", several, 2),
    )
    return tuple(AggregateOverload(signature(text), make, constants) for text, make, constants in rules)


FUNCTIONS = tuple(
    AggregateFunction(
        name,
        f"Returns the {words} value of a column in the order of the rows, or with a count an array of that many; "
        "NULL values are left out unless the last argument is false.",
        "Aggregate",
        (),
        _overloads(name, latest=latest),
    )
    for name, words, latest in (("EARLIEST_BY_OFFSET", "first", False), ("LATEST_BY_OFFSET", "last", True))
)
