"""COLLECT_LIST, COLLECT_SET, HISTOGRAM and ATTR: the values of a group themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.sql.functions.definitions import Aggregate, AggregateFunction, AggregateOverload, ListAggregate
from headrace.sql.functions.signatures import signature
from headrace.sql.types import ARRAY, BIGINT, MAP, STRING, STRUCT, SqlType, StructField

CATEGORY = "Aggregate"
_NO_LIMIT = 2**31 - 1
_MOST_ENTRIES = 1000
_COUNTS = MAP(STRING, BIGINT)


@dataclass(frozen=True)
class CollectList(ListAggregate):
    """All values, NULL too, in the order of their rows."""

    state_type: SqlType
    limit: int
    can_undo: ClassVar[bool] = True

    def aggregate(self, state: list[Any], *values: Any) -> list[Any]:
        return [*state, values[0]] if len(state) < self.limit else state

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [*left, *right][: self.limit]

    def undo(self, state: list[Any], *values: Any) -> list[Any]:
        # The last one: a row that was just added is the one that is taken back.
        for index in range(len(state) - 1, -1, -1):
            if state[index] == values[0]:
                return state[:index] + state[index + 1 :]
        return state


@dataclass(frozen=True)
class CollectSet(ListAggregate):
    """All different values, NULL too, in the order of their first rows."""

    state_type: SqlType
    limit: int

    def aggregate(self, state: list[Any], *values: Any) -> list[Any]:
        if len(state) >= self.limit or values[0] in state:
            return state
        return [*state, values[0]]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [*left, *(value for value in right if value not in left)][: self.limit]


@dataclass(frozen=True)
class Histogram(Aggregate):
    """How often each text occurs; texts beyond the first thousand are not counted."""

    state_type: SqlType = _COUNTS
    result_type: SqlType = _COUNTS
    can_undo: ClassVar[bool] = True

    def initialize(self) -> dict[str, int]:
        return {}

    def aggregate(self, state: dict[str, int], *values: Any) -> dict[str, int]:
        value = values[0]
        if value in state or len(state) < _MOST_ENTRIES:
            return {**state, value: state.get(value, 0) + 1}
        return state

    def undo(self, state: dict[str, int], *values: Any) -> dict[str, int]:
        count = state.get(values[0], 0) - 1
        if count > 0:
            return {**state, values[0]: count}
        return {text: number for text, number in state.items() if text != values[0]}

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        result = dict(left)
        for text, count in right.items():
            if text in result or len(result) < _MOST_ENTRIES:
                result[text] = result.get(text, 0) + count
        return result


@dataclass(frozen=True)
class Attribute(Aggregate):
    """The one value of a group, NULL as soon as there are different ones: the state counts each."""

    result_type: SqlType
    can_undo: ClassVar[bool] = True

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return ARRAY(STRUCT((StructField("VALUE", self.result_type), StructField("COUNT", BIGINT))))

    def initialize(self) -> list[dict[str, Any]]:
        return []

    def aggregate(self, state: list[dict[str, Any]], *values: Any) -> list[dict[str, Any]]:
        return self._counted(state, values[0], 1)

    def undo(self, state: list[dict[str, Any]], *values: Any) -> list[dict[str, Any]]:
        return self._counted(state, values[0], -1)

    def merge(self, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for entry in right:
            left = self._counted(left, entry["VALUE"], entry["COUNT"])
        return left

    def map(self, state: list[dict[str, Any]]) -> Any:
        return state[0]["VALUE"] if len(state) == 1 else None

    def _counted(self, state: list[dict[str, Any]], value: Any, change: int) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = []
        found = False
        for entry in state:
            if not found and entry["VALUE"] == value:
                found = True
                entry = {"VALUE": value, "COUNT": entry["COUNT"] + change}
            if entry["COUNT"] > 0:
                result.append(entry)
        return result if found or change < 0 else [*result, {"VALUE": value, "COUNT": change}]


def _limit(settings: Mapping[str, object], name: str) -> int:
    found = settings.get(f"ksql.functions.{name}.limit")
    if found is None:
        return _NO_LIMIT
    limit = int(str(found))
    return limit if limit >= 0 else _NO_LIMIT


def _listed(types: Sequence[SqlType | None], constants: Sequence[Any], settings: Mapping[str, object]) -> Aggregate:
    return CollectList(ARRAY(types[0] or STRING), _limit(settings, "collect_list"))


def _set(types: Sequence[SqlType | None], constants: Sequence[Any], settings: Mapping[str, object]) -> Aggregate:
    return CollectSet(ARRAY(types[0] or STRING), _limit(settings, "collect_set"))


FUNCTIONS = (
    AggregateFunction(
        "COLLECT_LIST",
        "Returns all values of a column as an array, in the order of the rows; "
        "the setting ksql.functions.collect_list.limit bounds its length.",
        CATEGORY,
        (),
        (AggregateOverload(signature("(value T) ARRAY<T>"), _listed),),
    ),
    AggregateFunction(
        "COLLECT_SET",
        "Returns the different values of a column as an array, in the order of their first rows; "
        "the setting ksql.functions.collect_set.limit bounds its length.",
        CATEGORY,
        (),
        (AggregateOverload(signature("(value T) ARRAY<T>"), _set),),
    ),
    AggregateFunction(
        "HISTOGRAM",
        "Returns a map from each text of a column to how often it occurs, for up to 1000 texts.",
        CATEGORY,
        (),
        (
            AggregateOverload(
                signature("(value STRING) MAP<STRING, BIGINT>"), lambda types, constants, settings: Histogram()
            ),
        ),
    ),
    AggregateFunction(
        "ATTR",
        "Returns the value of a column that is the same in all rows of a group, NULL if there are several.",
        CATEGORY,
        (),
        (
            AggregateOverload(
                signature("(value T) T"), lambda types, constants, settings: Attribute(types[0] or STRING)
            ),
        ),
    ),
)
