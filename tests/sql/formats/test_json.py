"""JSON: which fields a column takes, what is converted, what is refused, and how numbers are written."""

import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import DeserializationError
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.formats.json_reading import parse, patient_reader, row_reader
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
    STRING,
    STRUCT,
    TIMESTAMP,
    SqlType,
    StructField,
)
from headrace.sql.types.schema import Column
from tests.sql.formats.rows import NESTED, SCALARS, key_columns, rows, value_columns

JSON = format_named("JSON")
UNWRAPPED = FormatOptions(wrapped=False)
ALL = value_columns((*SCALARS, *NESTED))


def read(type: SqlType, text: str) -> Any:
    row = JSON.serde((Column("A", type),)).deserialize(text.encode())
    return None if row is None else row[0]


def written(type: SqlType, value: Any) -> str:
    data = JSON.serde((Column("A", type),)).serialize([value])
    assert data is not None
    return data.decode()


@settings(deadline=None)
@given(row=rows(ALL))
def test_rows_come_back_as_they_were(row: list[Any]) -> None:
    serde = JSON.serde(ALL)
    data = serde.serialize(row)
    assert data is not None
    assert serde.deserialize(data) == row
    assert list(json.loads(data)) == [column.name for column in ALL]


@settings(deadline=None)
@given(row=rows(ALL))
def test_fast_and_patient_reader_agree(row: list[Any]) -> None:
    data = JSON.serde(ALL).serialize(row)
    assert data is not None
    assert row_reader(ALL, wrapped=True)(data) == patient_reader(ALL, wrapped=True)(parse(data))


@pytest.mark.parametrize("type", [*SCALARS, *NESTED], ids=str)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_single_columns_need_no_wrapping(type: SqlType, data: st.DataObject) -> None:
    columns = value_columns([type])
    row = data.draw(rows(columns))
    serde = JSON.serde(columns, UNWRAPPED)
    wire = serde.serializer("t", is_key=False)(row)
    if row == [None]:
        assert wire is None
    else:
        assert serde.deserialize(wire) == row


def test_field_is_found_by_its_exact_name_first_then_in_upper_case() -> None:
    serde = JSON.serde((Column("ID", INTEGER), Column("b", INTEGER)))
    assert serde.deserialize(b'{"id": 1, "ID": 2, "b": 3}') == [2, 3]
    assert serde.deserialize(b'{"Id": 1, "B": 3}') == [1, None]


def test_fields_of_structs_are_found_in_the_same_way() -> None:
    type = STRUCT((StructField("F", INTEGER), StructField("G", STRING)))
    assert read(type, '{"a": {"f": 5, "other": true}}') == {"F": 5, "G": None}


def test_null_says_that_there_is_no_row() -> None:
    assert JSON.serde((Column("A", INTEGER),)).deserialize(b"null") is None
    assert JSON.serde((Column("A", INTEGER),), UNWRAPPED).deserialize(b"null") in (None, [None])


@pytest.mark.parametrize(
    ("type", "text", "expected"),
    [
        (INTEGER, '"12"', 12),
        (INTEGER, "1.9", 1),
        (INTEGER, "2147483648", -2147483648),
        (BIGINT, '"-3"', -3),
        (BIGINT, "9223372036854775808", -(2**63)),
        # As many zeros in binary as in decimal, so nothing else is left of it; written out it would be a gigabyte.
        (INTEGER, "1e999999999", 0),
        (BIGINT, "-7e999999999", 0),
        (BIGINT, "3e64", 0),
        (BIGINT, "1e-999999999", 0),
        (INTEGER, "1.5e9", 1_500_000_000),
        (DOUBLE, "1e999999999", float("inf")),
        (DOUBLE, "3", 3.0),
        (DOUBLE, '"1.5e3"', 1500.0),
        (STRING, "10.10", "10.10"),
        (STRING, "true", "true"),
        (STRING, '{"b": 1.0, "a": [null, "x"]}', '{"b":1.0,"a":[null,"x"]}'),
        (STRING, '["a", 1, null, [true], {"x": "y"}]', '[a, 1, null, [true], {"x":"y"}]'),
        (DECIMAL(4, 2), "1.5", Decimal("1.50")),
        (DECIMAL(4, 2), '"12.3"', Decimal("12.30")),
        (DECIMAL(4, 2), "-0.0", Decimal("0.00")),
        (DECIMAL(20, 10), "1234567890.0123456789", Decimal("1234567890.0123456789")),
        (BYTES, '"YWI="', b"ab"),
        (DATE, "10", 10),
        (TIMESTAMP, '"7"', 7),
        (ARRAY(STRING), "[1, null]", ["1", None]),
        (MAP(STRING, DOUBLE), '{"a": "1"}', {"a": 1.0}),
    ],
    ids=str,
)
def test_values_are_converted(type: SqlType, text: str, expected: Any) -> None:
    assert read(type, f'{{"A": {text}}}') == expected
    assert str(read(type, f'{{"A": {text}}}')) == str(expected)


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (BOOLEAN, '"true"'),
        (INTEGER, "true"),
        (INTEGER, '"1.5"'),
        (INTEGER, "[1]"),
        (BIGINT, f"{'9' * 5000}.5"),
        (DOUBLE, '"much"'),
        (DECIMAL(4, 2), "1.234"),
        (DECIMAL(4, 2), "123"),
        (DECIMAL(4, 2), '"NaN"'),
        (BYTES, "5"),
        (BYTES, '"*"'),
        (ARRAY(INTEGER), "5"),
        (MAP(STRING, INTEGER), "[]"),
        (STRUCT((StructField("F", INTEGER),)), '"x"'),
    ],
    ids=str,
)
def test_what_does_not_fit_is_an_error(type: SqlType, text: str) -> None:
    with pytest.raises(DeserializationError, match=r"value: JSON cannot read .* at field A"):
        read(type, f'{{"A": {text}}}')


@pytest.mark.parametrize("text", ["", "[", "[]", "5", '{"A": NaN}', '{"A": 1', "\x00"])
def test_what_is_no_object_is_an_error(text: str) -> None:
    with pytest.raises(DeserializationError):
        read(INTEGER, text)


def test_deeply_nested_text_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(DeserializationError):
        read(STRING, '{"A": ' + "[" * 100_000)


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        (DOUBLE, 1.0, "1.0"),
        (DOUBLE, 1e10, "1.0E10"),
        (DOUBLE, -0.0001, "-1.0E-4"),
        (DOUBLE, 0.001, "0.001"),
        (DOUBLE, 9999999.5, "9999999.5"),
        (DOUBLE, float("nan"), '"NaN"'),
        (DOUBLE, float("-inf"), '"-Infinity"'),
        (DECIMAL(10, 8), Decimal("0.00000001"), "0.00000001"),
        (DECIMAL(6, 2), Decimal("10.00"), "10.00"),
        (BYTES, b"ab", '"YWI="'),
        (STRING, 'q"\n', '"q\\"\\n"'),
        (ARRAY(DOUBLE), [1e7, None], "[1.0E7,null]"),
        (MAP(STRING, INTEGER), {"a": 1, None: 2}, '{"a":1,"null":2}'),
        (MAP(STRING, DOUBLE), {None: 1.0}, '{"null":1.0}'),
        (MAP(STRING, DOUBLE), {}, "{}"),
        (MAP(STRING, INTEGER), None, "null"),
    ],
    ids=str,
)
def test_values_are_written_as_java_writes_them(type: SqlType, value: Any, text: str) -> None:
    assert written(type, value) == f'{{"A":{text}}}'


def test_keys_of_one_column_are_not_wrapped() -> None:
    serde = JSON.key_serde(key_columns([STRING]))
    assert serde.serialize(("a",)) == b'"a"'
    assert serde.deserialize(b'"a"') == ("a",)
    assert serde.serializer("t", is_key=True)((None,)) is None


def test_keys_of_several_columns_are_objects() -> None:
    serde = JSON.key_serde(key_columns([STRING, INTEGER]))
    assert serde.serialize(("a", None)) == b'{"K0":"a","K1":null}'
    assert serde.deserialize(b'{"k1":1}') == (None, 1)


def test_key_stands_for_its_bytes_unless_equal_values_are_written_differently() -> None:
    assert JSON.key_serde(key_columns([STRING, DECIMAL(4, 2)])).identity
    assert not JSON.key_serde(key_columns([DOUBLE])).identity
    assert not JSON.key_serde(key_columns([ARRAY(STRING)])).identity


def test_maps_need_strings_as_keys() -> None:
    with pytest.raises(SqlStatementError, match="JSON only supports MAP types with STRING keys"):
        JSON.check(value_columns([ARRAY(MAP(INTEGER, STRING))]))


def test_serde_is_a_value() -> None:
    serde = JSON.serde(ALL, UNWRAPPED)
    assert pickle.loads(pickle.dumps(serde)) == serde == JSON.serde(ALL, UNWRAPPED)
    assert hash(serde) == hash(JSON.serde(ALL, UNWRAPPED))


def test_names_of_columns_are_only_names() -> None:
    strange = (Column('"]) or x["', INTEGER), Column("a'b\\", STRING))
    serde = JSON.serde(strange)
    assert serde.deserialize(serde.serialize([1, "x"])) == [1, "x"]
