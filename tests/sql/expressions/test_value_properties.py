from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.sql.functions.java_time import format_timestamp, parse_timestamp
from headrace.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    SqlDecimal,
    SqlType,
)
from headrace.sql.types.conversions import UnsupportedCast, converter
from headrace.sql.types.java_arithmetic import (
    double_text,
    fitted,
    integer_quotient,
    integer_remainder,
    unit,
    wrap_bigint,
    wrap_integer,
)
from headrace.sql.types.times import date_of, days_of

VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INTEGER: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(),
    DECIMAL(6, 2): st.decimals(-9999, 9999, places=2),
    STRING: st.text() | st.integers().map(str) | st.floats().map(str),
    DATE: st.integers(-1_000_000, 3_000_000),
    TIME: st.integers(0, 86_399_999),
    TIMESTAMP: st.integers(-(2**50), 2**50),
}


def conforms(value: Any, sql_type: SqlType) -> bool:
    if isinstance(sql_type, SqlDecimal):
        return isinstance(value, Decimal) and value == fitted(value, sql_type.precision, sql_type.scale)
    limits = {INTEGER: 2**31, BIGINT: 2**63}
    if sql_type in limits:
        return type(value) is int and -limits[sql_type] <= value < limits[sql_type]
    kinds: dict[SqlType, type] = {BOOLEAN: bool, DOUBLE: float, STRING: str}
    return type(value) is kinds.get(sql_type, int)


@pytest.mark.parametrize("source", VALUES, ids=str)
@pytest.mark.parametrize("target", VALUES, ids=str)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_a_conversion_gives_a_value_of_its_type_or_fails(source: SqlType, target: SqlType, data: st.DataObject) -> None:
    try:
        convert = converter(source, target)
    except UnsupportedCast:
        return
    value = data.draw(VALUES[source])
    try:
        converted = value if convert is None else convert(value)
    except (ValueError, ArithmeticError):
        return
    assert conforms(converted, target)


@pytest.mark.parametrize("kind", [DATE, TIME, TIMESTAMP, DECIMAL(6, 2), BIGINT, BOOLEAN], ids=str)
@settings(deadline=None)
@given(data=st.data())
def test_a_value_survives_being_text(kind: SqlType, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    to_text, from_text = converter(kind, STRING), converter(STRING, kind)
    assert to_text is not None
    assert from_text is not None
    assert from_text(to_text(value)) == value


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_means_the_same_double(value: float) -> None:
    assert float(double_text(value)) == value or math.isclose(float(double_text(value)), value, rel_tol=1e-15)


@settings(deadline=None)
@given(st.dates())
def test_days_agree_with_the_calendar_of_python(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert days_of(day.year, day.month, day.day) == days
    assert date_of(days) == (day.year, day.month, day.day)


@settings(deadline=None)
@given(st.integers(-(2**50), 2**50))
def test_every_day_has_one_date(days: int) -> None:
    assert days_of(*date_of(days)) == days


@settings(deadline=None)
@given(st.integers(0, 253_402_300_799_999), st.sampled_from(["UTC", "Europe/Rome", "America/New_York", "+05:45"]))
def test_what_a_pattern_writes_it_reads(epoch_ms: int, zone: str) -> None:
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
    assert parse_timestamp(format_timestamp(epoch_ms, pattern, zone), pattern) == epoch_ms


@settings(deadline=None)
@given(st.integers(), st.integers())
def test_integers_divide_as_in_java(left: int, right: int) -> None:
    left, right = wrap_bigint(left), wrap_bigint(right) or 1
    quotient, remainder = integer_quotient(left, right), integer_remainder(left, right)
    assert quotient * right + remainder == left
    assert abs(remainder) < abs(right)
    assert remainder == 0 or (remainder < 0) == (left < 0)


@settings(deadline=None)
@given(st.integers())
def test_wrapping_keeps_the_low_bits(value: int) -> None:
    assert (wrap_integer(value) - value) % 2**32 == 0
    assert (wrap_bigint(value) - value) % 2**64 == 0


@settings(deadline=None)
@given(st.decimals(-(10**9), 10**9, places=6), st.integers(0, 8))
def test_fitting_rounds_half_up(value: Decimal, scale: int) -> None:
    result = fitted(value, 40, scale)
    assert result.as_tuple().exponent == -scale
    assert abs(result - value) <= unit(scale) / 2
