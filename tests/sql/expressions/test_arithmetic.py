from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from headrace.sql.errors import SqlStatementError
from tests.sql.expressions.rows import type_of, typed, value


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("i + 1", "INTEGER", 8),
        ("i + l", "BIGINT", 2**40 + 7),
        ("i + d", "DOUBLE", 9.5),
        ("2147483647 + i", "INTEGER", -2147483642),
        ("l * l * l", "BIGINT", 0),
        ("-7 / 2", "INTEGER", -3),
        ("-7 % 4", "INTEGER", -3),
        ("d / 0", "DOUBLE", math.inf),
        ("e + 1.5", "DECIMAL(6, 2)", Decimal("13.84")),
        ("e * e", "DECIMAL(11, 4)", Decimal("152.2756")),
        ("e / 3", "DECIMAL(16, 13)", Decimal("4.1133333333333")),
        ("e % 5", "DECIMAL(5, 2)", Decimal("2.34")),
        ("e - i", "DECIMAL(13, 2)", Decimal("5.34")),
        ("e + d", "DOUBLE", 14.84),
        ("-e", "DECIMAL(5, 2)", Decimal("-12.34")),
        ("-i", "INTEGER", -7),
        ("-(e - e)", "DECIMAL(6, 2)", Decimal("0.00")),
        ("s + '!'", "STRING", "river!"),
        ("s || s", "STRING", "riverriver"),
    ],
)
def test_operators_follow_the_rules_of_java(text: str, kind: str, expected: Any) -> None:
    assert type_of(text) == kind
    assert value(text) == expected


def test_double_without_a_remainder_is_not_a_number() -> None:
    assert math.isnan(value("d % 0"))


@pytest.mark.parametrize("text", ["i / 0", "i % 0", "e / 0", "n + 1", "-n", "d * n"])
def test_what_cannot_be_computed_is_null(text: str) -> None:
    assert value(text) is None


def test_null_is_written_out_where_texts_are_added_and_left_out_where_they_are_concatenated() -> None:
    assert value("ns + 'a'") == "nulla"
    assert value("'a' || ns") == "a"


def test_decimal_keeps_all_its_digits() -> None:
    # Python's own context would round to 28 digits.
    text = "12345678901234567890.123456789 * 1000000000000.000000001"
    assert value(text) == Decimal("12345678901234567890135802467901.234567890123456789")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f + 1", "Unsupported arithmetic types. BOOLEAN INTEGER"),
        ("i + NULL", "types INTEGER and null are not"),
        ("-s", "STRING"),
    ],
)
def test_operands_have_to_be_numbers(text: str, words: str) -> None:
    with pytest.raises(SqlStatementError, match=words):
        typed(text)
