"""KAFKA and NONE, the properties of formats, and formats that do not exist."""

from typing import Any

import pytest

from headrace.errors import DeserializationError
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats import FORMATS, format_named
from headrace.sql.types import ARRAY, BIGINT, BYTES, DOUBLE, INTEGER, STRING, SqlType
from tests.sql.formats.rows import key_columns, value_columns

KAFKA, NONE = format_named("kafka"), format_named("none")


@pytest.mark.parametrize(
    ("type", "value", "data"),
    [
        (INTEGER, 1, b"\0\0\0\1"),
        (BIGINT, 1, b"\0\0\0\0\0\0\0\1"),
        (DOUBLE, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (STRING, "é", b"\xc3\xa9"),
        (BYTES, b"\0", b"\0"),
    ],
    ids=str,
)
def test_kafka_writes_as_kafkas_own_serdes(type: SqlType, value: Any, data: bytes) -> None:
    serde, keys = KAFKA.serde(value_columns([type])), KAFKA.key_serde(key_columns([type]))
    assert serde.serialize([value]) == keys.serialize((value,)) == data
    assert serde.deserialize(data) == [value]
    assert keys.deserialize(data) == (value,)
    assert serde.serializer("t", is_key=False)([None]) is None


def test_kafka_refuses_bytes_of_another_length() -> None:
    with pytest.raises(DeserializationError, match="key of topic 't'"):
        KAFKA.key_serde(key_columns([INTEGER])).deserializer("t", is_key=True)(b"\0")


def test_kafka_takes_one_column_of_a_simple_type() -> None:
    two = r"The 'KAFKA' format only supports a single field. Got: \[`C0` INTEGER, `C1` STRING\]"
    with pytest.raises(SqlStatementError, match=two):
        KAFKA.check(value_columns([INTEGER, STRING]))
    with pytest.raises(SqlStatementError, match="The 'KAFKA' format does not support type 'ARRAY'"):
        KAFKA.check(value_columns([ARRAY(INTEGER)]))
    KAFKA.check(value_columns([]))


def test_none_takes_no_columns() -> None:
    with pytest.raises(
        SqlStatementError, match=r"can only be used when no columns are defined. Got: \[`K0` INTEGER KEY\]"
    ):
        NONE.check(key_columns([INTEGER]))
    assert NONE.serde(()).deserialize(b"x") is None
    assert NONE.key_serde(()).serializer("t", is_key=True)(()) is None


def test_unknown_format_is_an_error() -> None:
    with pytest.raises(SqlStatementError, match="Unknown format: FOO"):
        format_named("foo")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "DELIMITED"])
def test_only_delimited_takes_a_delimiter(name: str) -> None:
    with pytest.raises(SqlStatementError, match=rf"{name} does not support the following configs: \[delimiter\]"):
        FORMATS[name].check_properties(["delimiter"])
    FORMATS["DELIMITED"].check_properties(["delimiter"])
