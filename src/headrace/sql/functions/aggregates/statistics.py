"""STDDEV_SAMPLE, STDDEV_SAMP and CORRELATION."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.sql.functions.definitions import Aggregate, AggregateFunction, AggregateOverload
from headrace.sql.functions.signatures import signature
from headrace.sql.types import BIGINT, DOUBLE, INTEGER, STRUCT, SqlType, StructField
from headrace.sql.types.java_arithmetic import double_quotient, wrap_bigint, wrap_integer

_SUMS = ("X_SUM", "Y_SUM", "X_SQUARED_SUM", "Y_SQUARED_SUM", "XY_SUM")


@dataclass(frozen=True)
class Deviation(Aggregate):
    """The spread of a sample, from the sum of squared distances, which is updated row by row."""

    argument: SqlType
    root: bool
    result_type: SqlType = DOUBLE
    can_undo: ClassVar[bool] = True

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # depends on the argument
        return STRUCT((StructField("SUM", self.argument), StructField("COUNT", BIGINT), StructField("M2", DOUBLE)))

    def initialize(self) -> dict[str, Any]:
        return {"SUM": 0.0 if self.argument == DOUBLE else 0, "COUNT": 0, "M2": 0.0}

    def aggregate(self, state: dict[str, Any], *values: Any) -> dict[str, Any]:
        value = values[0]
        if value is None:
            return state
        total, count, squares = self._total(state["SUM"] + value), state["COUNT"] + 1, state["M2"]
        if count > 1:
            distance = count * value - total
            squares += (distance * distance) / (count * (count - 1))
        return {"SUM": total, "COUNT": count, "M2": squares}

    def undo(self, state: dict[str, Any], *values: Any) -> dict[str, Any]:
        value = values[0]
        if value is None:
            return state
        total, count, squares = self._total(state["SUM"] - value), state["COUNT"] - 1, state["M2"]
        if count > 0:
            distance = count * value - total
            squares -= (distance * distance) / (count * (count + 1))
        return {"SUM": total, "COUNT": count, "M2": squares}

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        if not left["COUNT"] or not right["COUNT"]:
            return right if not left["COUNT"] else left
        count = left["COUNT"] + right["COUNT"]
        distance = right["SUM"] / right["COUNT"] - left["SUM"] / left["COUNT"]
        squares = left["M2"] + right["M2"] + distance * distance * left["COUNT"] * right["COUNT"] / count
        return {"SUM": self._total(left["SUM"] + right["SUM"]), "COUNT": count, "M2": squares}

    def map(self, state: dict[str, Any]) -> float:
        if state["COUNT"] < 2:
            return 0.0
        variance = float(state["M2"]) / (state["COUNT"] - 1)
        return math.sqrt(variance) if self.root else variance

    def _total(self, value: Any) -> Any:
        if self.argument == DOUBLE:
            return value
        return wrap_integer(value) if self.argument == INTEGER else wrap_bigint(value)


@dataclass(frozen=True)
class Correlation(Aggregate):
    """How far two columns grow together, from -1 to 1; NaN where it is not defined."""

    result_type: SqlType = DOUBLE
    can_undo: ClassVar[bool] = True

    @property
    def state_type(self) -> SqlType:  # type: ignore[override]  # built of the names of its sums
        return STRUCT((*(StructField(name, DOUBLE) for name in _SUMS), StructField("COUNT", BIGINT)))

    def initialize(self) -> dict[str, Any]:
        return {**dict.fromkeys(_SUMS, 0.0), "COUNT": 0}

    def aggregate(self, state: dict[str, Any], *values: Any) -> dict[str, Any]:
        return self._changed(state, values, 1)

    def undo(self, state: dict[str, Any], *values: Any) -> dict[str, Any]:
        return self._changed(state, values, -1)

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {name: left[name] + right[name] for name in (*_SUMS, "COUNT")}

    def map(self, state: dict[str, Any]) -> float:
        x, y, xx, yy, xy = (state[name] for name in _SUMS)
        count = state["COUNT"]
        spread = (count * xx - x * x) * (count * yy - y * y)
        return double_quotient(count * xy - x * y, math.sqrt(spread) if spread >= 0 else math.nan)

    def _changed(self, state: dict[str, Any], values: Sequence[Any], sign: int) -> dict[str, Any]:
        if values[0] is None or values[1] is None:
            return state
        x, y = float(values[0]), float(values[1])
        changes = dict(zip(_SUMS, (x, y, x * x, y * y, x * y), strict=True))
        result = {name: state[name] + sign * change for name, change in changes.items()}
        return {**result, "COUNT": state["COUNT"] + sign}


def _deviation(*, root: bool) -> Callable[[Sequence[SqlType | None], Sequence[Any], Any], Aggregate]:
    return lambda types, constants, settings: Deviation(types[0] or DOUBLE, root)


FUNCTIONS = (
    *(
        AggregateFunction(
            name,
            description,
            "Aggregate",
            (),
            tuple(
                AggregateOverload(signature(f"(value {one}) DOUBLE"), _deviation(root=root))
                for one in ("BIGINT", "INT", "DOUBLE")
            ),
        )
        for name, description, root in (
            ("STDDEV_SAMPLE", "Returns the sample standard deviation of a column.", True),
            ("STDDEV_SAMP", "Returns the sample variance of a column; STDDEV_SAMPLE is its square root.", False),
        )
    ),
    AggregateFunction(
        "CORRELATION",
        "Returns Pearson's correlation coefficient of two columns; rows in which one of them is NULL do not count.",
        "Aggregate",
        (),
        tuple(
            AggregateOverload(signature(f"(x {one}, y {one}) DOUBLE"), lambda types, constants, settings: Correlation())
            for one in ("DOUBLE", "INT", "BIGINT")
        ),
    ),
)
