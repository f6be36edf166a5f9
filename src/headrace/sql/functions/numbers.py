"""Rounding, comparing, and other functions on numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Any

from headrace.sql.functions.definitions import ScalarFunction, overload, scalar
from headrace.sql.types import DECIMAL, SqlDecimal, SqlType
from headrace.sql.types.java_arithmetic import (
    CONTEXT,
    as_decimal_type,
    double_to_bigint,
    of_double,
    unit,
    unsigned_zero,
    widest,
    wrap_bigint,
    wrap_integer,
)

CATEGORY = "Mathematical"


def integer_absolute(value: int) -> int:
    """Returns the number without its sign; the smallest INTEGER has no positive twin and stays."""
    return wrap_integer(abs(value))


def bigint_absolute(value: int) -> int:
    """Returns the number without its sign; the smallest BIGINT has no positive twin and stays."""
    return wrap_bigint(abs(value))


def decimal_absolute(value: Decimal) -> Decimal:
    """Returns the number without its sign."""
    return value.copy_abs()


def same(value: Any) -> Any:
    """Returns the value."""
    return value


def double_ceiling(value: float) -> float:
    """Returns the smallest whole number that is not below the value."""
    return float(math.ceil(value)) if math.isfinite(value) else value


def double_floor(value: float) -> float:
    """Returns the largest whole number that is not above the value."""
    return float(math.floor(value)) if math.isfinite(value) else value


def decimal_ceiling(value: Decimal) -> Decimal:
    """Returns the smallest whole number that is not below the value, with the digits of its type."""
    return _with_scale_of(value, value.to_integral_value(ROUND_CEILING, CONTEXT))


def decimal_floor(value: Decimal) -> Decimal:
    """Returns the largest whole number that is not above the value, with the digits of its type."""
    return _with_scale_of(value, value.to_integral_value(ROUND_FLOOR, CONTEXT))


def _with_scale_of(value: Decimal, result: Decimal) -> Decimal:
    return unsigned_zero(result.quantize(value, context=CONTEXT))


def double_rounded(value: float) -> int:
    """Returns the nearest whole number; halfway, the larger one."""
    return double_to_bigint(math.floor(value + 0.5) if math.isfinite(value) and abs(value) < 2**52 else value)


def double_rounded_to(value: float, places: int) -> float:
    """Returns the nearest number with so many digits behind the point; halfway, the larger one."""
    return float(_rounded(of_double(value), places)) if math.isfinite(value) else value


def decimal_rounded(value: Decimal, places: int = 0) -> Decimal:
    """Returns the nearest number with so many digits behind the point; halfway, the larger one."""
    return _with_scale_of(value, _rounded(value, places))


def decimal_rounded_whole(value: Decimal) -> Decimal:
    """Returns the nearest whole number; halfway, the larger one."""
    return _rounded(value, 0)


def _rounded(value: Decimal, places: int) -> Decimal:
    # Halfway is towards the larger number, so the rule depends on the sign.
    return unsigned_zero(value.quantize(unit(places), ROUND_HALF_UP if value >= 0 else ROUND_HALF_DOWN, CONTEXT))


def double_truncated(value: float) -> int:
    """Returns the number without its fraction."""
    return double_to_bigint(value)


def double_truncated_to(value: float, places: int) -> float:
    """Returns the number without the digits behind a place."""
    if not math.isfinite(value):
        return value
    return float(unsigned_zero(of_double(value).quantize(unit(places), ROUND_DOWN, CONTEXT)))


def decimal_truncated_to(value: Decimal, places: int) -> Decimal:
    """Returns the number without the digits behind a place, with the digits of its type."""
    return _with_scale_of(value, value.quantize(unit(places), ROUND_DOWN, CONTEXT))


def decimal_truncated_whole(value: Decimal) -> Decimal:
    """Returns the number without its fraction."""
    return unsigned_zero(value.quantize(unit(0), ROUND_DOWN, CONTEXT))


def sign(value: float) -> int:
    """Returns 1, 0 or -1."""
    return (value > 0) - (value < 0)


def random_number() -> float:
    """Returns a random number from 0 up to, not including, 1."""
    return random.random()


def greatest(*values: Any) -> Any:
    """Returns the largest value, NULL ones aside."""
    present = [value for value in values if value is not None]
    return max(present) if present else None


def least(*values: Any) -> Any:
    """Returns the smallest value, NULL ones aside."""
    present = [value for value in values if value is not None]
    return min(present) if present else None


def _widest(types: Sequence[SqlType | None]) -> SqlType:
    present: list[SqlType] = [as_decimal_type(one) for one in types if one is not None]
    return reduce(widest, present)


def _same_type(types: Sequence[SqlType | None]) -> SqlType | None:
    return types[0]


def _whole_type(types: Sequence[SqlType | None]) -> SqlType | None:
    found = types[0]
    return DECIMAL(max(found.precision - found.scale, 1), 0) if isinstance(found, SqlDecimal) else found


def _compared(name: str, word: str, function: Callable[..., Any], example: str) -> ScalarFunction:
    return scalar(
        name,
        f"Returns the {word} of the arguments, NULL ones aside.",
        CATEGORY,
        [(f"{name.upper()}(3, 7, 5)", example)],
        *(
            overload(f"(value {one}, others {one}...) {one}", function, strict=False)
            for one in ("INT", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
        ),
        overload("(value DECIMAL, others DECIMAL...) DECIMAL", function, returns=_widest, strict=False),
    )


FUNCTIONS = (
    scalar(
        "abs",
        "Returns a number without its sign.",
        CATEGORY,
        [("ABS(-3)", "3")],
        overload("(value INT) INT", integer_absolute),
        overload("(value BIGINT) BIGINT", bigint_absolute),
        overload("(value DOUBLE) DOUBLE", abs),
        overload("(value DECIMAL) DECIMAL", decimal_absolute, returns=_same_type),
    ),
    scalar(
        "ceil",
        "Returns the smallest whole number that is not below the value.",
        CATEGORY,
        [("CEIL(1.2)", "2.0")],
        overload("(value INT) INT", same),
        overload("(value BIGINT) BIGINT", same),
        overload("(value DOUBLE) DOUBLE", double_ceiling),
        overload("(value DECIMAL) DECIMAL", decimal_ceiling, returns=_same_type),
    ),
    scalar(
        "floor",
        "Returns the largest whole number that is not above the value.",
        CATEGORY,
        [("FLOOR(-1.2)", "-2.0")],
        overload("(value INT) INT", same),
        overload("(value BIGINT) BIGINT", same),
        overload("(value DOUBLE) DOUBLE", double_floor),
        overload("(value DECIMAL) DECIMAL", decimal_floor, returns=_same_type),
    ),
    scalar(
        "round",
        "Returns the nearest number with so many digits behind the point, none by default; halfway, the larger one.",
        CATEGORY,
        [("ROUND(1.25, 1)", "1.30"), ("ROUND(-2.5E0)", "CAST(-2 AS BIGINT)")],
        overload("(value BIGINT) BIGINT", same),
        overload("(value INT) BIGINT", same),
        overload("(value DOUBLE) BIGINT", double_rounded),
        overload("(value DOUBLE, places INT) DOUBLE", double_rounded_to),
        overload("(value DECIMAL) DECIMAL", decimal_rounded_whole, returns=_whole_type),
        overload("(value DECIMAL, places INT) DECIMAL", decimal_rounded, returns=_same_type),
    ),
    scalar(
        "trunc",
        "Returns a number without the digits behind a place, by default without its fraction.",
        CATEGORY,
        [("TRUNC(1.29, 1)", "1.20"), ("TRUNC(-2.5E0)", "CAST(-2 AS BIGINT)")],
        overload("(value BIGINT) BIGINT", same),
        overload("(value INT) BIGINT", same),
        overload("(value DOUBLE) BIGINT", double_truncated),
        overload("(value DOUBLE, places INT) DOUBLE", double_truncated_to),
        overload("(value DECIMAL) DECIMAL", decimal_truncated_whole, returns=_whole_type),
        overload("(value DECIMAL, places INT) DECIMAL", decimal_truncated_to, returns=_same_type),
    ),
    scalar(
        "sign",
        "Returns 1, 0 or -1 for a positive number, zero, or a negative number.",
        CATEGORY,
        [("SIGN(-3)", "-1")],
        *(overload(f"(value {one}) INT", sign) for one in ("INT", "BIGINT", "DOUBLE")),
    ),
    scalar(
        "random",
        "Returns a random number from 0 up to, not including, 1.",
        CATEGORY,
        [("RANDOM() < 1", "true")],
        overload("() DOUBLE", random_number),
    ),
    _compared("greatest", "largest", greatest, "7"),
    _compared("least", "smallest", least, "3"),
)
