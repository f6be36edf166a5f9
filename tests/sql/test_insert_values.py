"""INSERT INTO … VALUES: the record that comes of it."""

from __future__ import annotations

import pytest

from headrace.serdes.registry import Schema, SchemaRegistry
from headrace.sql.catalog.topic_directory import KnownTopics
from headrace.sql.errors import SqlStatementError
from headrace.sql.insert_values import InsertedRecord
from headrace.sql.sql_engine import SqlEngine


def inserted(columns: str, statement: str, *, kind: str = "STREAM", key_format: str = "KAFKA") -> InsertedRecord:
    engine = SqlEngine()
    properties = f"KAFKA_TOPIC='t', KEY_FORMAT='{key_format}', VALUE_FORMAT='JSON'"
    engine.execute(f"CREATE {kind} s ({columns}) WITH ({properties});")
    [done] = engine.execute(statement)
    assert done.record is not None
    return done.record


def test_values_of_all_columns_in_their_order() -> None:
    record = inserted("k STRING KEY, a INT, b DOUBLE", "INSERT INTO s VALUES ('x', 1, 2);")
    assert record == InsertedRecord("t", b"x", b'{"A":1,"B":2.0}', None)


def test_columns_that_are_not_named_are_null() -> None:
    record = inserted("k INT KEY, a INT, b STRING", "INSERT INTO s (b) VALUES ('x');")
    assert (record.key, record.value) == (None, b'{"A":null,"B":"x"}')


def test_the_time_of_the_record_can_be_given() -> None:
    assert inserted("k INT KEY, a INT", "INSERT INTO s (rowtime, a) VALUES (1234, 5);").timestamp_ms == 1234


def test_values_may_be_expressions_without_columns() -> None:
    record = inserted(
        "k INT KEY, a ARRAY<INT>, m MAP<STRING, INT>",
        "INSERT INTO s VALUES (1, ARRAY[1, 2], MAP('x' := 3));",
        key_format="JSON",
    )
    assert (record.key, record.value) == (b"1", b'{"A":[1,2],"M":{"x":3}}')


def test_texts_are_read_as_times_and_bytes() -> None:
    record = inserted(
        "d DATE, t TIME, at TIMESTAMP, b BYTES, c BYTES",
        "INSERT INTO s VALUES ('1970-01-02', '00:00:01', '1970-01-01T00:00:01', 'AQI=', TO_BYTES('ff', 'hex'));",
    )
    assert record.value == b'{"D":1,"T":1000,"AT":1000,"B":"AQI=","C":"/w=="}'


REGISTERED = '{"type": "string", "connect.name": "of.others"}'


def keyed_in_avro(registry: SchemaRegistry, type: str) -> SqlEngine:
    """Returns an engine with a stream whose topic has a key schema already."""
    registry.register("t-key", Schema(REGISTERED))
    engine = SqlEngine(topics=KnownTopics({"t": 1}), registry=registry)
    engine.execute(
        f"CREATE STREAM s (k {type} KEY, a INT) WITH (KAFKA_TOPIC='t', KEY_FORMAT='AVRO', VALUE_FORMAT='JSON');"
    )
    return engine


def test_what_a_registered_key_schema_notes_does_not_matter() -> None:
    engine = keyed_in_avro(SchemaRegistry("mock://insert-values-same"), "STRING")
    [done] = engine.execute("INSERT INTO s VALUES ('1', 2);")
    assert done.record is not None


def test_keys_of_another_schema_are_refused() -> None:
    engine = keyed_in_avro(SchemaRegistry("mock://insert-values-other"), "BIGINT")
    with pytest.raises(SqlStatementError) as error:
        engine.execute("INSERT INTO s VALUES (1, 2);")
    assert error.value.message == (
        "Failed to insert values into 'S'. Cannot INSERT VALUES into data source `S`. ksqlDB generated schema would "
        f'overwrite existing key schema.\n\tExisting Schema: {REGISTERED}\n\tksqlDB Generated: "long"'
    )


def test_what_the_named_schema_cannot_hold_is_an_error_of_the_statement() -> None:
    registry = SchemaRegistry("mock://insert-values-required")
    text = '{"type": "record", "name": "r", "fields": [{"name": "A", "type": "string"}, {"name": "B", "type": "long"}]}'
    number = registry.register("t-value", Schema(text))
    engine = SqlEngine(topics=KnownTopics({"t": 1}), registry=registry)
    engine.execute(f"CREATE STREAM s WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID={number});")
    message = "Failed to insert values into 'S'. Could not serialize value .* null used for required field: \"B\""
    with pytest.raises(SqlStatementError, match=message):
        engine.execute("INSERT INTO s (a) VALUES ('x');")


def test_a_key_of_several_columns_may_be_all_nulls() -> None:
    record = inserted("k INT KEY, l INT KEY, a INT", "INSERT INTO s (a) VALUES (1);", key_format="JSON")
    assert (record.key, record.value) == (b'{"K":null,"L":null}', b'{"A":1}')


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO s (k, rowoffset) VALUES (1, 2);", "Failed to insert values into 'S'. "),
        ("INSERT INTO z VALUES (1);", "unknown stream/table: `Z`"),
        ("INSERT INTO s VALUES (1);", "Expected a value for each column"),
        ("INSERT INTO s (a, z) VALUES (1, 2);", "Column name `Z` does not exist"),
        ("INSERT INTO s (a) VALUES (1, 2);", "Expected number columns and values to match"),
        ("INSERT INTO s (a) VALUES (1);", r"Value for primary key column\(s\) K is required for tables"),
        (
            "INSERT INTO s (k, a) VALUES (1, ARRAY[true]);",
            r"for field `A` but got ARRAY\(\[true\]\)",
        ),
        ("INSERT INTO s (k, a) VALUES (1, STRUCT(f := 'x'));", r"but got STRUCT\(Struct{F=x}\)"),
        (
            "INSERT INTO s (k, rowtime) VALUES (1, -1);",
            "Invalid timestamp: -1. Timestamp should always be non-negative",
        ),
    ],
)
def test_what_cannot_be_inserted(statement: str, message: str) -> None:
    with pytest.raises(SqlStatementError, match=message):
        inserted("k INT PRIMARY KEY, a INT", statement, kind="TABLE")


def test_windowed_sources_take_no_values() -> None:
    engine = SqlEngine()
    engine.execute("CREATE STREAM s (k INT KEY) WITH (KAFKA_TOPIC='t', FORMAT='JSON', WINDOW_TYPE='SESSION');")
    with pytest.raises(SqlStatementError, match="windowed"):
        engine.execute("INSERT INTO s VALUES (1);")
