"""The functions that cases call and that no product has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from headrace.sql.functions import (
    BUILTIN_FUNCTIONS,
    Aggregate,
    AggregateFunction,
    AggregateOverload,
    FunctionRegistry,
    ScalarFunction,
    TableFunction,
)
from headrace.sql.functions.definitions import overload
from headrace.sql.functions.signatures import signature
from headrace.sql.syntax.formatter import number_text
from headrace.sql.types import ARRAY, BIGINT, DOUBLE, INTEGER, STRING, STRUCT, SqlType, StructField

_STRUCT_A = STRUCT((StructField("A", STRING),))
_STRUCT_AB = STRUCT((StructField("A", INTEGER), StructField("B", INTEGER)))


def _struct_value(struct: dict[str, Any]) -> Any:
    return struct.get("A")


def _make_struct() -> dict[str, Any]:
    return {"A": "foo"}


def _int_string(number: int, text: str) -> str:
    return "doStuffIntString"


def _long_string(number: int, text: str) -> str:
    return "doStuffLongString"


def _long_long_string(first: int, second: int, text: str) -> str:
    return "doStuffLongLongString"


def _long_varargs(*numbers: int) -> str:
    return "doStuffLongVarargs"


def _lazily(value: Any, evaluated: bool) -> Any:  # noqa: FBT001  # called with the arguments of a statement
    if not evaluated:
        message = "a branch of CASE was evaluated that is not the result"
        raise ValueError(message)
    return value


def _blow_up(number: int) -> int:
    message = "boom!"
    raise RuntimeError(message)


def _might_throw(throws: bool) -> int:  # noqa: FBT001  # called with the arguments of a statement
    if throws:
        message = "You asked me to throw..."
        raise RuntimeError(message)
    return 0


def _null(text: str) -> None:
    return None


def _string(_: Sequence[SqlType | None]) -> SqlType:
    return STRING


def _struct_a(_: Sequence[SqlType | None]) -> SqlType:
    return _STRUCT_A


_SCALARS = (
    ScalarFunction(
        "test_udf",
        "Says which overload was called.",
        "Test",
        (),
        (
            overload("(struct STRUCT) STRING", _struct_value, returns=_string),
            overload("() STRUCT", _make_struct, returns=_struct_a),
            overload("(number INT, text STRING) STRING", _int_string),
            overload("(number BIGINT, text STRING) STRING", _long_string),
            overload("(first BIGINT, second BIGINT, text STRING) STRING", _long_long_string),
            overload("(numbers BIGINT...) STRING", _long_varargs),
        ),
    ),
    ScalarFunction(
        "WhenCondition",
        "Fails if it is evaluated needlessly.",
        "Test",
        (),
        (overload("(value BOOLEAN, evaluated BOOLEAN) BOOLEAN", _lazily),),
    ),
    ScalarFunction(
        "WhenResult",
        "Fails if it is evaluated needlessly.",
        "Test",
        (),
        (overload("(value INT, evaluated BOOLEAN) INT", _lazily),),
    ),
    ScalarFunction(
        "bad_udf",
        "Fails.",
        "Test",
        (),
        (
            overload("(number INT) INT", _blow_up),
            overload("(throws BOOLEAN) INT", _might_throw),
            overload("(text STRING) STRING", _null),
        ),
    ),
)


def _java_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float() | Decimal():
            return number_text(value)
        case dict():
            return "Struct{" + ",".join(f"{name}={_java_text(item)}" for name, item in value.items()) + "}"
        case _:
            return str(value)


def _each(*values: Any) -> list[str]:
    return [_java_text(value) for value in values]


def _firsts(*lists: list[Any]) -> list[str]:
    return [_java_text(items[0]) for items in lists]


def _map_values(*maps: dict[str, Any]) -> list[str]:
    return [_java_text(next(iter(items.values()))) for items in maps]


def _itself(value: Any) -> list[Any]:
    return [value]


def _throwing(throws: bool) -> list[bool]:  # noqa: FBT001  # called with the arguments of a statement
    _might_throw(throws)
    return [throws]


def _first_type(types: Sequence[SqlType | None]) -> SqlType | None:
    return types[0]


_SEVEN = ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL", "STRUCT")


def _seven(form: str) -> str:
    return "(" + ", ".join(f"p{number} {form.format(name)}" for number, name in enumerate(_SEVEN)) + ") STRING"


_TABLES = (
    TableFunction(
        "test_udtf",
        "One row for each argument.",
        "Test",
        (),
        (
            overload(_seven("{}"), _each, returns=_string),
            overload(_seven("ARRAY<{}>"), _firsts, returns=_string),
            overload(_seven("MAP<STRING, {}>"), _map_values, returns=_string),
            *(overload(f"(value {name}) {name}", _itself, returns=_first_type) for name in _SEVEN),
        ),
    ),
    TableFunction(
        "throwing_udtf", "Fails if asked to.", "Test", (), (overload("(throws BOOLEAN) BOOLEAN", _throwing),)
    ),
)


class _Sum(Aggregate):
    """The sum of what ``measure`` makes of the arguments."""

    can_undo = True

    def __init__(self, measure: Callable[..., Any], start: Any, result: SqlType) -> None:
        self.measure, self.start = measure, start
        self.state_type = self.result_type = result

    def initialize(self) -> Any:
        return self.start

    def aggregate(self, state: Any, *values: Any) -> Any:
        return state + self.measure(*values)

    def undo(self, state: Any, *values: Any) -> Any:
        return state - self.measure(*values)

    def merge(self, left: Any, right: Any) -> Any:
        return left + right


class _SumNoUndo(_Sum):
    can_undo = False


class _StructSum(Aggregate):
    """The sums of the fields of structs."""

    state_type = result_type = _STRUCT_AB

    def initialize(self) -> Any:
        return {"A": 0, "B": 0}

    def aggregate(self, state: Any, *values: Any) -> Any:
        (struct,) = values
        return {name: state[name] + (struct[name] or 0) for name in state}

    def merge(self, left: Any, right: Any) -> Any:
        return {name: left[name] + right[name] for name in left}


class _Firsts(Aggregate):
    """The first arguments of all rows without a null."""

    def __init__(self, item: SqlType) -> None:
        self.state_type = self.result_type = ARRAY(item)

    def initialize(self) -> Any:
        return []

    def aggregate(self, state: Any, *values: Any) -> Any:
        return state if any(value is None for value in values) else [*state, values[0]]

    def merge(self, left: Any, right: Any) -> Any:
        return left + right


def _measure(*values: Any) -> int:
    return sum(len(value) if isinstance(value, str) else value for value in values if value is not None)


def _start(constants: Sequence[Any]) -> int:
    return _measure(*constants)


Types = Sequence[SqlType | None]
Constants = Sequence[Any]
Settings = Mapping[str, object]


def _make_sum(types: Types, constants: Constants, settings: Settings) -> Aggregate:
    return _Sum(_measure, 0, BIGINT)


def _make_double_sum(types: Types, constants: Constants, settings: Settings) -> Aggregate:
    return _SumNoUndo(_measure, 0.0, DOUBLE)


def _make_started_sum(types: Types, constants: Constants, settings: Settings) -> Aggregate:
    return _SumNoUndo(_measure, _start(constants), BIGINT)


def _make_struct_sum(types: Types, constants: Constants, settings: Settings) -> Aggregate:
    return _StructSum()


def _make_firsts(types: Types, constants: Constants, settings: Settings) -> Aggregate:
    return _Firsts(types[0] or INTEGER)


def _aggregate(name: str, *overloads: AggregateOverload) -> AggregateFunction:
    return AggregateFunction(name, "Sums numbers and the lengths of texts.", "Test", (), overloads)


_AGGREGATES = (
    _aggregate(
        "test_udaf",
        AggregateOverload(signature("(value BIGINT) BIGINT"), _make_sum),
        AggregateOverload(signature("(value INT) BIGINT"), _make_sum),
        AggregateOverload(signature("(value DOUBLE) DOUBLE"), _make_double_sum),
        AggregateOverload(signature("(value STRING, start STRING) BIGINT"), _make_started_sum, constants=1),
        AggregateOverload(signature("(value STRUCT) STRUCT"), _make_struct_sum),
    ),
    _aggregate(
        "MULTI_ARG",
        AggregateOverload(
            signature("(first BIGINT, second STRING, start INT, more STRING...) BIGINT"), _make_started_sum, constants=2
        ),
    ),
    _aggregate(
        "FOUR_ARG",
        AggregateOverload(
            signature("(a BIGINT, b STRING, c STRING, d STRING, start INT, more STRING...) BIGINT"),
            _make_started_sum,
            constants=2,
        ),
    ),
    _aggregate(
        "FIVE_ARG",
        AggregateOverload(
            signature("(a BIGINT, b STRING, c STRING, d STRING, e INT, start INT, more STRING...) BIGINT"),
            _make_started_sum,
            constants=2,
        ),
    ),
    _aggregate("VAR_ARG", AggregateOverload(signature("(first BIGINT, more STRING...) BIGINT"), _make_started_sum)),
    _aggregate(
        "MID_VAR_ARG",
        AggregateOverload(
            signature("(first BIGINT, more STRING..., start INT, second INT) BIGINT"), _make_started_sum, constants=2
        ),
    ),
    _aggregate("GENERIC_VAR_ARG", AggregateOverload(signature("(a A, b B, more C...) ARRAY<A>"), _make_firsts)),
    _aggregate("OBJ_COL_ARG", AggregateOverload(signature("(a INT, more ANY...) ARRAY<INT>"), _make_firsts)),
)


@cache
def with_test_functions() -> FunctionRegistry:
    """Returns the functions of the language and those of the cases."""
    return BUILTIN_FUNCTIONS.with_functions(*_SCALARS, *_TABLES, *_AGGREGATES)
