"""TOPK and TOPKDISTINCT: the largest few values of a group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.sql.functions.definitions import Aggregate, AggregateFunction, AggregateOverload, ListAggregate
from headrace.sql.functions.signatures import signature
from headrace.sql.types import ARRAY, BIGINT, STRUCT, SqlArray, SqlType, StructField

_TYPES = ("INT", "BIGINT", "DOUBLE", "STRING")
_DISTINCT_TYPES = (*_TYPES, "DECIMAL", "DATE", "TIME", "TIMESTAMP", "BYTES")
_SORT = "sort_col"


@dataclass(frozen=True)
class Top(ListAggregate):
    """The largest few values, largest first; equal ones in the order of their rows."""

    argument: SqlType
    count: int
    distinct: bool

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return ARRAY(self.argument)

    def aggregate(self, state: list[Any], *values: Any) -> list[Any]:
        value = values[0]
        if value is None or (self.distinct and value in state):
            return state
        ordered = state[::-1]
        # From the smaller side: equal values stay in the order they came.
        ordered.insert(bisect_left(ordered, value), value)
        return ordered[::-1][: self.count]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        for value in right:
            left = self.aggregate(left, value)
        return left


@dataclass(frozen=True)
class TopRows(ListAggregate):
    """The rows with the largest values of a column, each as a struct of that column and others."""

    state_type: SqlType
    count: int

    def aggregate(self, state: list[Any], *values: Any) -> list[Any]:
        if values[0] is None:
            return state
        assert isinstance(self.state_type, SqlArray)
        names = [_SORT, *(f"col{index}" for index in range(len(values) - 1))]
        return self._with(state, dict(zip(names, values, strict=True)))

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        for row in right:
            left = self._with(left, row)
        return left

    def _with(self, state: list[Any], row: dict[str, Any]) -> list[Any]:
        place = next((index for index, one in enumerate(state) if one[_SORT] < row[_SORT]), len(state))
        return [*state[:place], row, *state[place:]][: self.count]


def _top(types: Sequence[SqlType | None], constants: Sequence[Any], settings: Mapping[str, object]) -> Aggregate:
    if len(types) == 1:
        return Top(types[0] or BIGINT, constants[0], distinct=False)
    fields = [StructField(_SORT, types[0] or BIGINT)]
    fields += [StructField(f"col{index}", one or BIGINT) for index, one in enumerate(types[1:])]
    return TopRows(ARRAY(STRUCT(tuple(fields))), constants[0])


FUNCTIONS = (
    AggregateFunction(
        "TOPK",
        "Returns the k largest values of a column, largest first; with further columns, the structs of those rows.",
        "Aggregate",
        (),
        tuple(
            AggregateOverload(signature(f"(value {one}, others ANY..., k INT) ARRAY<{one}>"), _top, 1) for one in _TYPES
        ),
    ),
    AggregateFunction(
        "TOPKDISTINCT",
        "Returns the k largest different values of a column, largest first.",
        "Aggregate",
        (),
        tuple(
            AggregateOverload(
                signature(f"(value {one}, k INT) ARRAY<{one}>"),
                lambda types, constants, settings: Top(types[0] or BIGINT, constants[0], distinct=True),
                1,
            )
            for one in _DISTINCT_TYPES
        ),
    ),
)
