from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from headrace.sql.expressions import constant
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.syntax.parser import parse_expression
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    STRING,
    STRUCT,
    TIMESTAMP,
    SqlType,
    StructField,
)

PAIR = STRUCT((StructField("P", DOUBLE), StructField("Q", STRING)))


def written(text: str, target: SqlType) -> Any:
    return constant(parse_expression(text), target, BUILTIN_FUNCTIONS, column="C")


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("1 + 2", BIGINT, 3),
        ("2", DOUBLE, 2.0),
        ("2", DECIMAL(4, 2), Decimal("2.00")),
        ("0.5", DOUBLE, 0.5),
        ("NULL", INTEGER, None),
        ("'1970-01-02'", DATE, 1),
        ("'1970-01-01T00:00:01'", TIMESTAMP, 1000),
        ("UCASE('a')", STRING, "A"),
        ("ARRAY[1, 2]", ARRAY(BIGINT), [1, 2]),
        ("STRUCT(p := 1)", PAIR, {"P": 1.0, "Q": None}),
        ("STRUCT(p := 1, z := 5)", PAIR, {"P": 1.0, "Q": None}),
        ("STRUCT()", PAIR, {"P": None, "Q": None}),
    ],
)
def test_constants_become_values_of_the_column(text: str, target: SqlType, expected: Any) -> None:
    assert written(text, target) == expected


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("'a'", INTEGER, r"Expected type INTEGER for field `C` but got STRING\(a\)"),
        ("1", STRING, r"but got INTEGER\(1\)"),
        ("3000000000", INTEGER, "Expected type INTEGER"),
        ("1.234", DECIMAL(4, 2), "Expected type DECIMAL"),
        ("100000", DECIMAL(4, 2), "Numeric field overflow"),
        ("'never'", DATE, r"Expected type DATE for field `C` but got STRING\(never\). Date format must be yyyy-mm-dd"),
        ("1 / 0", INTEGER, r"Failed to evaluate \(1 / 0\) for column C"),
        ("x", INTEGER, "Unsupported column reference in insert value: X"),
        ("x.y", INTEGER, "'X' is not a valid stream/table name or alias"),
    ],
)
def test_constants_that_do_not_fit_are_refused(text: str, target: SqlType, words: str) -> None:
    with pytest.raises(SqlStatementError, match=words):
        written(text, target)
