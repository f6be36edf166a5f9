"""DELIMITED: quoting, delimiters, and what an empty field means."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from headrace.errors import DeserializationError
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.types import ARRAY, BIGINT, BOOLEAN, BYTES, DATE, DECIMAL, DOUBLE, INTEGER, STRING
from tests.sql.formats.rows import SCALARS, key_columns, rows, value_columns

DELIMITED = format_named("DELIMITED")
TYPES = (INTEGER, STRING, DOUBLE)


def read(text: str, options: FormatOptions | None = None) -> Any:
    return DELIMITED.serde(value_columns(TYPES), options).deserialize(text.encode())


def written(row: list[Any], options: FormatOptions | None = None) -> str:
    data = DELIMITED.serde(value_columns(TYPES), options).serialize(row)
    assert data is not None
    return data.decode()


@settings(deadline=None)
@given(row=rows(value_columns(SCALARS)))
def test_rows_come_back_as_they_were(row: list[Any]) -> None:
    serde = DELIMITED.serde(value_columns(SCALARS))
    # Between delimiters nothing, an empty text and empty bytes look alike.
    expected = [None if value in ("", b"") else value for value in row]
    assert serde.deserialize(serde.serialize(row)) == expected


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([1, "a", 2.5], "1,a,2.5"),
        ([None, None, None], ",,"),
        ([-1, "-1", -1.0], '"-1",-1,-1.0'),
        ([1, "a,b", 1e10], '1,"a,b",1.0E10'),
        ([1, 'say "x"', None], '1,"say ""x""",'),
        ([1, " a", None], '1," a",'),
        ([1, "a ", None], '1,"a ",'),
        ([1, "a\nb", None], '1,"a\nb",'),
    ],
)
def test_rows_are_quoted_where_needed(row: list[Any], text: str) -> None:
    assert written(row) == text
    assert read(text) == row


def test_first_empty_text_is_quoted() -> None:
    serde = DELIMITED.serde(value_columns([STRING, STRING]))
    assert serde.serialize(["", ""]) == b'"",'


def test_numbers_may_stand_between_spaces_and_quotes() -> None:
    assert read('" 5 ", b ," 1.5"') == [5, " b ", 1.5]


@pytest.mark.parametrize(("name", "character"), [("|", "|"), ("TAB", "\t"), ("SPACE", " "), ("$", "$")])
def test_other_delimiters(name: str, character: str) -> None:
    options = FormatOptions(delimiter=name)
    assert written([1, "a", 2.5], options) == f"1{character}a{character}2.5"
    assert read(f"1{character}a{character}2.5", options) == [1, "a", 2.5]


@pytest.mark.parametrize("text", ["", "\n", "1,a", "1,a,2,3", "x,a,1", "1,a,b", '1,"a"b,2', "2147483648,a,1"])
def test_lines_that_do_not_fit_are_errors(text: str) -> None:
    with pytest.raises(DeserializationError, match="DELIMITED cannot read"):
        read(text)


def test_values_of_every_kind() -> None:
    serde = DELIMITED.serde(value_columns([BOOLEAN, BIGINT, DECIMAL(6, 4), BYTES, DATE]))
    row = [True, 2**40, Decimal("12.5000"), b"ab", -3]
    assert serde.serialize(row) == b"true,1099511627776,12.5000,YWI=,-3"
    assert serde.deserialize(b"TRUE,1099511627776,12.5,YWI=,-3") == row


def test_keys_may_have_several_columns() -> None:
    serde = DELIMITED.key_serde(key_columns([STRING, INTEGER]))
    assert serde.serialize(("a", 1)) == b"a,1"
    assert serde.deserialize(b"a,1") == ("a", 1)


def test_types_with_parts_are_refused() -> None:
    with pytest.raises(SqlStatementError, match="The 'DELIMITED' format does not support type 'ARRAY', column: `C0`"):
        DELIMITED.check(value_columns([ARRAY(INTEGER)]))


@pytest.mark.parametrize(
    ("delimiter", "message"),
    [("", "Delimiter cannot be empty"), ("\t", "Delimiter cannot be empty"), ("ab", "Invalid delimiter value: 'ab'")],
)
def test_bad_delimiters_are_refused(delimiter: str, message: str) -> None:
    with pytest.raises(SqlStatementError, match=message):
        read("1", FormatOptions(delimiter=delimiter))
