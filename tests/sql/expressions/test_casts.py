from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.expressions.rows import type_of, typed, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(l AS INT)", 0),
        ("CAST(1E300 AS INT)", 2**31 - 1),
        ("CAST(-2.9E0 AS BIGINT)", -2),
        ("CAST(d AS STRING)", "2.5"),
        ("CAST(1E10 AS STRING)", "1.0E10"),
        ("CAST(e AS STRING)", "12.34"),
        ("CAST(e AS INT)", 12),
        ("CAST(d AS DECIMAL(3, 0))", Decimal("3")),
        ("CAST(e AS DECIMAL(3, 1))", Decimal("12.3")),
        ("CAST(e AS DECIMAL(2, 1))", None),
        ("CAST(' 42 ' AS INT)", 42),
        ("CAST('42.5' AS INT)", None),
        ("CAST(s AS DOUBLE)", None),
        ("CAST('yes' AS BOOLEAN)", True),
        ("CAST('maybe' AS BOOLEAN)", False),
        ("CAST(f AS STRING)", "true"),
        ("CAST(a AS STRING)", "[1, null, 3]"),
        ("CAST(a AS ARRAY<STRING>)", ["1", None, "3"]),
        ("CAST(m AS STRING)", "{x=1}"),
        ("CAST(m AS MAP<STRING, DOUBLE>)", {"x": 1.0}),
        ("CAST(t AS STRING)", "Struct{U=5}"),
        ("CAST(t AS STRUCT<U DOUBLE, W STRING>)", {"U": 5.0, "W": None}),
        ("CAST(day AS STRING)", "2022-01-08"),
        ("CAST(day AS TIMESTAMP)", 19000 * 86_400_000),
        ("CAST(at AS DATE)", 18518),
        ("CAST(at AS TIME)", 44_800_000),
        ("CAST(at AS STRING)", "2020-09-13T12:26:40.000"),
        ("CAST(clock AS STRING)", "01:00"),
        ("CAST('2020-02-30' AS DATE)", None),
        ("CAST('1970-01-01T01:00:00.5+0100' AS TIMESTAMP)", 500),
        ("CAST('23:59:59.250' AS TIME)", 86_399_250),
        ("CAST('AQI=' AS BYTES)", b"\1\2"),
        ("CAST('AQI' AS BYTES)", b"\1\2"),
        ("CAST(s AS BYTES)", None),
        ("CAST(NULL AS INT)", None),
    ],
)
def test_conversions(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_what_stands_around_a_failed_cast_goes_on() -> None:
    assert value("COALESCE(CAST(s AS INT), -1)") == -1
    assert value("COALESCE(CAST(1 / n AS BIGINT), -1)") == -1
    assert value("COALESCE(CAST(1 / n AS STRING), 'none')") == "none"


def test_a_year_may_have_more_than_four_digits() -> None:
    assert value("CAST(FROM_DAYS(10000000) AS STRING)") == "+29349-01-26"
    assert value("CAST(FROM_DAYS(-800000) AS STRING)") == "-0221-09-04"


@pytest.mark.parametrize(
    "text", ["CAST(s AS MAP<STRING, INT>)", "CAST(b AS STRING)", "CAST(f AS INT)", "CAST(i AS DATE)"]
)
def test_types_without_a_conversion_are_refused(text: str) -> None:
    with pytest.raises(SqlStatementError, match=r"Cast of .* to .* is not supported"):
        typed(text)


def test_what_is_inside_of_a_type_is_refused_by_the_whole_type() -> None:
    with pytest.raises(SqlStatementError, match="Cast of ARRAY<INTEGER> to ARRAY<BYTES> is not supported"):
        typed("CAST(a AS ARRAY<BYTES>)")


def test_cast_has_the_type_asked_for() -> None:
    assert type_of("CAST(NULL AS DECIMAL(4, 1))") == "DECIMAL(4, 1)"
