"""COUNT, COUNT_DISTINCT, SUM, SUM_LIST and AVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from headrace.sql.functions.definitions import Aggregate, AggregateFunction, AggregateOverload
from headrace.sql.functions.signatures import signature
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    DOUBLE,
    INTEGER,
    STRING,
    STRUCT,
    SqlArray,
    SqlDecimal,
    SqlType,
    StructField,
)
from headrace.sql.types.conversions import boolean_text
from headrace.sql.types.java_arithmetic import CONTEXT, fitted, negated, unit, wrap_bigint, wrap_integer

CATEGORY = "Aggregate"
_TEXTS = ARRAY(STRING)


@dataclass(frozen=True)
class Count(Aggregate):
    """Counts rows, or those whose argument is not NULL."""

    state_type: SqlType = BIGINT
    result_type: SqlType = BIGINT
    can_undo: ClassVar[bool] = True

    def initialize(self) -> int:
        return 0

    def aggregate(self, state: int, *values: Any) -> int:
        return state if values and values[0] is None else state + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def undo(self, state: int, *values: Any) -> int:
        return state if values and values[0] is None else state - 1


@dataclass(frozen=True)
class CountDistinct(Aggregate):
    """Counts different values, exactly: the state is the text of each of them, in the order of appearance."""

    argument: SqlType
    state_type: SqlType = _TEXTS
    result_type: SqlType = BIGINT

    def initialize(self) -> list[str]:
        return []

    def aggregate(self, state: list[str], *values: Any) -> list[str]:
        if values[0] is None:
            return state
        text = distinct_text(values[0])
        return state if text in state else [*state, text]

    def merge(self, left: list[str], right: list[str]) -> list[str]:
        return [*left, *(text for text in right if text not in left)]

    def map(self, state: list[str]) -> int:
        return len(state)


def distinct_text(value: Any) -> str:
    """Returns a text that equal values have in common, and others have not."""
    if isinstance(value, bool):
        return boolean_text(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str) else repr(value)


@dataclass(frozen=True)
class Sum(Aggregate):
    """Adds numbers; NULL adds nothing."""

    result_type: SqlType
    can_undo: ClassVar[bool] = True

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # the sum is its own state
        return self.result_type

    def initialize(self) -> Any:
        if self.result_type == DOUBLE:
            return 0.0
        return unit(self.result_type.scale) * 0 if isinstance(self.result_type, SqlDecimal) else 0

    @property
    def _decimal(self) -> bool:
        return isinstance(self.result_type, SqlDecimal)

    def aggregate(self, state: Any, *values: Any) -> Any:
        return state if values[0] is None else self._added(state, values[0])

    def undo(self, state: Any, *values: Any) -> Any:
        if values[0] is None:
            return state
        return self._added(state, negated(values[0]) if self._decimal else -values[0])

    def merge(self, left: Any, right: Any) -> Any:
        return self._added(left, right)

    def _added(self, state: Any, value: Any) -> Any:
        if isinstance(self.result_type, SqlDecimal):
            return fitted(CONTEXT.add(state, value), self.result_type.precision, self.result_type.scale)
        if self.result_type == INTEGER:
            return wrap_integer(state + value)
        return state + value if self.result_type == DOUBLE else wrap_bigint(state + value)


@dataclass(frozen=True)
class SumList(Sum):
    """Adds the items of lists."""

    def aggregate(self, state: Any, *values: Any) -> Any:
        for item in values[0] or ():
            state = super().aggregate(state, item)
        return state

    def undo(self, state: Any, *values: Any) -> Any:
        for item in values[0] or ():
            state = super().undo(state, item)
        return state


@dataclass(frozen=True)
class Average(Aggregate):
    """The sum divided by the count; NULL without values."""

    argument: SqlType
    result_type: SqlType = DOUBLE
    can_undo: ClassVar[bool] = True

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return STRUCT((StructField("SUM", self.argument), StructField("COUNT", BIGINT)))

    def initialize(self) -> dict[str, Any]:
        return {"SUM": 0.0 if self.argument == DOUBLE else 0, "COUNT": 0}

    def aggregate(self, state: dict[str, Any], *values: Any) -> dict[str, Any]:
        if values[0] is None:
            return state
        return {"SUM": self._wrapped(state["SUM"] + values[0]), "COUNT": state["COUNT"] + 1}

    def undo(self, state: dict[str, Any], *values: Any) -> dict[str, Any]:
        if values[0] is None:
            return state
        return {"SUM": self._wrapped(state["SUM"] - values[0]), "COUNT": state["COUNT"] - 1}

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {"SUM": self._wrapped(left["SUM"] + right["SUM"]), "COUNT": left["COUNT"] + right["COUNT"]}

    def map(self, state: dict[str, Any]) -> float:
        return float(state["SUM"]) / state["COUNT"] if state["COUNT"] else 0.0

    def _wrapped(self, total: Any) -> Any:
        if self.argument == DOUBLE:
            return total
        return wrap_integer(total) if self.argument == INTEGER else wrap_bigint(total)


def _of_argument(
    kind: Callable[[Any], Aggregate],
) -> Callable[[Sequence[SqlType | None], Sequence[Any], Any], Aggregate]:
    return lambda types, constants, settings: kind(types[0])


def _of_item(types: Sequence[SqlType | None], constants: Sequence[Any], settings: Any) -> Aggregate:
    assert isinstance(types[0], SqlArray)
    return SumList(types[0].item)


FUNCTIONS = (
    AggregateFunction(
        "COUNT",
        "Counts the rows of a group, or with an argument those in which it is not NULL.",
        CATEGORY,
        (),
        (
            AggregateOverload(signature("() BIGINT"), lambda types, constants, settings: Count()),
            AggregateOverload(signature("(value T) BIGINT"), lambda types, constants, settings: Count()),
        ),
    ),
    AggregateFunction(
        "COUNT_DISTINCT",
        "Counts the different values of a column, NULL aside; the count is exact.",
        CATEGORY,
        (),
        (AggregateOverload(signature("(value T) BIGINT"), _of_argument(CountDistinct)),),
    ),
    AggregateFunction(
        "SUM",
        "Adds the values of a column; integers wrap around, a DECIMAL that grows too large stops the query.",
        CATEGORY,
        (),
        tuple(
            AggregateOverload(signature(f"(value {name}) {name}"), _of_argument(Sum))
            for name in ("DECIMAL", "DOUBLE", "BIGINT", "INT")
        ),
    ),
    AggregateFunction(
        "SUM_LIST",
        "Adds the items of all arrays of a column.",
        CATEGORY,
        (),
        tuple(
            AggregateOverload(signature(f"(values ARRAY<{name}>) {name}"), _of_item)
            for name in ("DOUBLE", "INT", "BIGINT")
        ),
    ),
    AggregateFunction(
        "AVG",
        "Returns the average of a column, NULL values aside.",
        CATEGORY,
        (),
        tuple(
            AggregateOverload(signature(f"(value {name}) DOUBLE"), _of_argument(Average))
            for name in ("BIGINT", "INT", "DOUBLE")
        ),
    ),
)
