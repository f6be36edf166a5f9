"""CREATE, ALTER and DROP of streams, tables and types."""

from __future__ import annotations

from itertools import count

import pytest

from headrace.serdes.registry import Schema, SchemaRegistry
from headrace.sql.catalog.topic_directory import KnownTopics
from headrace.sql.errors import SqlError, SqlParseError, SqlStatementError
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.types import BIGINT, STRUCT, StructField

NUMBERS = count()
JSON = "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')"


def engine(*statements: str, **settings: object) -> SqlEngine:
    made = SqlEngine(settings={name.replace("_", "."): value for name, value in settings.items()})
    for statement in statements:
        made.execute(statement)
    return made


def test_create_stream_says_columns_topic_and_formats() -> None:
    source = engine(f"CREATE STREAM s (k INT KEY, v STRING, `w` ARRAY<INT>) {JSON};").catalog.source("S")
    assert str(source.schema) == "`K` INTEGER KEY, `V` STRING, `w` ARRAY<INTEGER>"
    assert (source.kind, source.topic, source.key_format, source.value_format) == ("STREAM", "t", "KAFKA", "JSON")
    assert source.partitions == 1


def test_formats_come_from_the_settings_where_a_statement_names_none() -> None:
    made = SqlEngine(settings={"ksql.persistence.default.format.value": "DELIMITED"})
    made.execute("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t');")
    assert made.catalog.source("S").value_format == "DELIMITED"


def test_properties_of_a_source() -> None:
    source = engine(
        "CREATE TABLE s (k STRING PRIMARY KEY, at STRING) WITH (KAFKA_TOPIC='t', FORMAT='DELIMITED', "
        "KEY_DELIMITER='|', VALUE_DELIMITER='TAB', TIMESTAMP='at', TIMESTAMP_FORMAT='yyyy', WINDOW_TYPE='hopping', "
        "WINDOW_SIZE='5 seconds');"
    ).catalog.source("S")
    assert source.window is not None
    assert source.timestamp is not None
    assert (source.window.kind, str(source.window.size)) == ("HOPPING", "0:00:05")
    assert (source.timestamp.column, source.timestamp.format) == ("AT", "yyyy")
    assert (source.key_options.delimiter, source.value_options.delimiter) == ("|", "TAB")


def test_types_can_be_named_and_used_inside_others() -> None:
    made = engine("CREATE TYPE a AS STRUCT<b BIGINT>;", f"CREATE STREAM s (x ARRAY<a>) {JSON};")
    assert str(made.catalog.source("S").schema) == "`X` ARRAY<STRUCT<`B` BIGINT>>"
    assert made.catalog.types["A"] == STRUCT((StructField("B", BIGINT),))
    made.execute("CREATE TYPE IF NOT EXISTS a AS INT; DROP TYPE a; DROP TYPE IF EXISTS a;")
    with pytest.raises(SqlStatementError, match="Cannot resolve unknown type: A"):
        made.execute(f"CREATE STREAM z (x a) {JSON};")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (f"CREATE STREAM s (k INT PRIMARY KEY) {JSON};", "Line: 1, Col: 18: Column `K` is a 'PRIMARY KEY' column"),
        (f"CREATE TABLE s (k INT KEY) {JSON};", "Line: 1, Col: 17: Column `K` is a 'KEY' column"),
        (f"CREATE TABLE s (k INT) {JSON};", "Tables require a PRIMARY KEY"),
        (f"CREATE STREAM s (a INT, a INT) {JSON};", "Duplicate column names: `A`"),
        (f"CREATE TABLE s (b INT, k INT PRIMARY KEY, b INT, k INT) {JSON};", "Duplicate column names: `B`, `K`"),
        (f"CREATE TABLE s {JSON};", "No columns supplied"),
        (f"CREATE STREAM s (a foo) {JSON};", "Failed to prepare statement: Cannot resolve unknown type: FOO"),
        (f"CREATE STREAM s (rowtime BIGINT) {JSON};", "'ROWTIME' is a reserved column name"),
        (f"CREATE STREAM s {JSON};", "No columns supplied"),
        (f"CREATE STREAM s (h INT HEADER('x')) {JSON};", "expected BYTES, got INTEGER"),
        ("CREATE STREAM s (a INT) WITH (VALUE_FORMAT='JSON');", 'Missing required property "KAFKA_TOPIC"'),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t');", "missing the 'VALUE_FORMAT' property"),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='CSV');", "Unknown format: CSV"),
        ("CREATE STREAM s (a INT) WITH (KAFKA_TOPC='t');", "KAFKA_TOPC; did you mean 'KAFKA_TOPIC'"),
        (
            "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='', VALUE_FORMAT='JSON');",
            "statement: Invalid value  for property KAFKA_TOPIC: String must be non-empty",
        ),
        (
            f"CREATE STREAM s (a INT) {JSON[:-1]}, PARTITIONS=0);",
            "statement: Invalid value 0 for property PARTITIONS: Value must be at least 1",
        ),
        (
            "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_FULL_NAME='a', "
            "VALUE_AVRO_SCHEMA_FULL_NAME='b');",
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' properties",
        ),
        (
            f"CREATE STREAM s (a STRING) {JSON[:-1]}, TIMESTAMP='a', TIMESTAMP_FORMAT='yyyy{{}}');",
            "reason:Pattern includes reserved character: '{'",
        ),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, REPLICAS='many');", "Not a number of type INT"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, WINDOW_SIZE='1 day');", "'WINDOW_TYPE'"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, WINDOW_TYPE='SESSION');", "Windowed sources require a key column"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, WINDOW_TYPE='Tumbling');", "TUMBLING windows require 'WINDOW_SIZE'"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, TIMESTAMP='b');", "does not exist in the schema: 'B'"),
        (f"CREATE STREAM s (a STRING) {JSON[:-1]}, TIMESTAMP='a');", "timestamp_format: `A`"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, TIMESTAMP='a');", r"should be LONG\(INT64\), TIMESTAMP"),
        (
            f"CREATE STREAM s (a BIGINT) {JSON[:-1]}, TIMESTAMP='a', TIMESTAMP_FORMAT='yyyy');",
            "can only be used when the timestamp column is of type STRING",
        ),
        (
            f"CREATE STREAM s (a STRING) {JSON[:-1]}, TIMESTAMP='a', TIMESTAMP_FORMAT='yi');",
            "Invalid datetime format for config:TIMESTAMP_FORMAT, reason:Unknown pattern letter: i",
        ),
        (
            f"CREATE STREAM s (a INT) {JSON[:-1]}, VALUE_PROTOBUF_NULLABLE_REPRESENTATION='OPTIONAL');",
            "can only be enabled with protobuf format",
        ),
        (
            f"CREATE STREAM s (a ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, b BYTES HEADER('b')) {JSON};",
            "Schema already contains a HEADERS column",
        ),
        (f"CREATE STREAM s (a DECIMAL(1, 2)) {JSON};", "DECIMAL precision must be >= scale"),
        (f"CREATE STREAM s (a INT, b INT) {JSON[:-1]}, WRAP_SINGLE_VALUE=false);", "only valid for single-field"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, WRAP_SINGLE_VALUE='maybe');", "either true or false"),
        (f"CREATE STREAM s (a INT) {JSON[:-1]}, VALUE_DELIMITER=';');", r"JSON does not support .* \[delimiter\]"),
        (f"CREATE STREAM s (k MAP<STRING, INT> KEY) {JSON};", "Map keys, including types that contain maps"),
    ],
)
def test_what_cannot_be_created(statement: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        engine().execute(statement)


def test_a_key_format_that_cannot_hold_the_key_says_why() -> None:
    with pytest.raises(SqlStatementError) as caught:
        engine(f"CREATE STREAM s (k BOOLEAN KEY, v INT) {JSON};")
    assert str(caught.value).startswith(
        "Key format does not support schema.\nformat: KAFKA\n"
        "schema: Persistence{columns=[`K` BOOLEAN KEY], features=[]}\nreason: The 'KAFKA' format"
    )
    assert caught.value.statement == f"CREATE STREAM s (k BOOLEAN KEY, v INT) {JSON}"


def test_a_topic_that_does_not_exist_needs_a_number_of_partitions() -> None:
    made = SqlEngine(topics=KnownTopics({"there": 3}))
    made.execute("CREATE STREAM a (x INT) WITH (KAFKA_TOPIC='there', VALUE_FORMAT='JSON');")
    made.execute("CREATE STREAM b (x INT) WITH (KAFKA_TOPIC='new', VALUE_FORMAT='JSON', PARTITIONS=7);")
    assert [made.catalog.source(name).partitions for name in "AB"] == [3, 7]
    with pytest.raises(SqlStatementError, match="Topic 'other' does not exist"):
        made.execute("CREATE STREAM c (x INT) WITH (KAFKA_TOPIC='other', VALUE_FORMAT='JSON');")
    with pytest.raises(SqlStatementError, match=r"expects 2 partitions \(topic has 3\)"):
        made.execute("CREATE STREAM c (x INT) WITH (KAFKA_TOPIC='there', VALUE_FORMAT='JSON', PARTITIONS=2);")


def test_a_name_is_taken_once() -> None:
    made = engine(f"CREATE STREAM s (a INT) {JSON};")
    with pytest.raises(SqlStatementError, match="Cannot add table 'S': A stream with the same name already exists"):
        made.execute(f"CREATE TABLE s (a INT PRIMARY KEY, b INT) {JSON};")
    [done] = made.execute(f"CREATE STREAM IF NOT EXISTS s (z INT) {JSON};")
    assert "already exists" in done.message
    assert str(made.catalog.source("S").schema) == "`A` INTEGER"


def test_replacing_may_add_columns_and_no_more() -> None:
    made = engine(f"CREATE STREAM s (k INT KEY, a INT) {JSON};")
    made.execute(f"CREATE OR REPLACE STREAM s (k INT KEY, a INT, b INT) {JSON};")
    assert made.catalog.source("S").schema.find("B") is not None
    with pytest.raises(SqlStatementError, match=r"changed, missing or reordered: \[`A` INTEGER\]"):
        made.execute(f"CREATE OR REPLACE STREAM s (k INT KEY, b INT) {JSON};")
    with pytest.raises(SqlStatementError, match="Key columns must be identical"):
        made.execute(f"CREATE OR REPLACE STREAM s (k STRING KEY, a INT, b INT) {JSON};")


def test_alter_adds_columns() -> None:
    made = engine(f"CREATE TABLE s (k INT PRIMARY KEY, a INT) {JSON};", "ALTER TABLE s ADD COLUMN b INT, ADD c STRING;")
    assert str(made.catalog.source("S").schema) == "`K` INTEGER KEY, `A` INTEGER, `B` INTEGER, `C` STRING"
    with pytest.raises(SqlStatementError, match="Cannot add column `A` to schema"):
        made.execute("ALTER TABLE s ADD COLUMN a INT;")
    with pytest.raises(SqlStatementError, match="'ROWTIME' is a reserved column name"):
        made.execute("ALTER TABLE s ADD COLUMN rowtime BIGINT;")
    with pytest.raises(SqlStatementError, match="type is TABLE, but statement was ALTER STREAM"):
        made.execute("ALTER STREAM s ADD COLUMN d INT;")


def test_nothing_is_written_to_a_source_that_is_read_only() -> None:
    made = engine(f"CREATE SOURCE STREAM s (a INT) {JSON};")
    with pytest.raises(SqlStatementError, match="Cannot insert values into read-only stream: S"):
        made.execute("INSERT INTO s (a) VALUES (1);")
    with pytest.raises(SqlStatementError, match="ALTER operations are not supported on source streams"):
        made.execute("ALTER STREAM s ADD COLUMN b INT;")
    with pytest.raises(SqlStatementError, match="Cannot delete topic for read-only source"):
        made.execute("DROP STREAM s DELETE TOPIC;")
    with pytest.raises(SqlStatementError, match="CREATE OR REPLACE is not supported on source streams"):
        made.execute(f"CREATE OR REPLACE STREAM s (a INT) {JSON};")


def test_drop_takes_the_source_away() -> None:
    made = engine(f"CREATE STREAM s (a INT) {JSON};", "DROP STREAM s;", "DROP STREAM IF EXISTS s;")
    assert dict(made.catalog.sources) == {}
    with pytest.raises(SqlStatementError, match="Stream S does not exist"):
        made.execute("DROP STREAM s;")


def test_another_spelling_of_a_name_is_hinted_at() -> None:
    made = engine(f'CREATE STREAM "s" (a INT) {JSON};')
    with pytest.raises(SqlStatementError, match='Did you mean "s"'):
        made.execute("INSERT INTO s (a) VALUES (1);")
    with pytest.raises(SqlParseError, match="Unknown statement 'drp'"):
        made.execute("drp stream s;")


def test_a_name_like_an_unknown_one_is_suggested() -> None:
    made = engine(f"CREATE STREAM orders (a INT) {JSON};")
    with pytest.raises(SqlStatementError, match=r"ORDER does not exist\.\nDid you mean 'ORDERS'\?"):
        made.execute("CREATE STREAM o AS SELECT * FROM `ORDER`;")


@pytest.mark.parametrize("format", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_formats_with_registered_schemas_are_refused_without_a_registry(format: str) -> None:
    topics = KnownTopics()
    made = SqlEngine(topics=topics)
    message = f"Cannot create topic 't' with format {format} without configuring 'ksql.schema.registry.url'"
    with pytest.raises(SqlStatementError, match=message):
        made.execute(f"CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='{format}', PARTITIONS=1);")
    with pytest.raises(SqlStatementError, match=message):
        made.execute(
            "CREATE STREAM s (k INT KEY, v INT) "
            f"WITH (KAFKA_TOPIC='t', KEY_FORMAT='{format}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        )
    assert topics.partitions("t") is None


@pytest.mark.parametrize("side", ["VALUE_FORMAT", "KEY_FORMAT"])
def test_query_whose_sink_needs_a_registry_is_refused_without_one(side: str) -> None:
    topics = KnownTopics({"t": 1})
    made = SqlEngine(topics=topics)
    made.execute("CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');")
    with pytest.raises(SqlStatementError, match="Cannot create topic 'OUT' with format AVRO without configuring"):
        made.execute(f"CREATE STREAM out WITH ({side}='AVRO') AS SELECT * FROM s;")
    assert (list(made.catalog.sources), made.catalog.queries, topics.partitions("OUT")) == (["S"], {}, None)


def test_formats_whose_schemas_are_in_the_statement_need_no_registry() -> None:
    made = engine("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='PROTOBUF_NOSR');")
    assert made.catalog.source("S").value_format == "PROTOBUF_NOSR"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            Schema('{"type": "record", "name": "R", "fields": [{"name": "ROWTIME", "type": "long"}]}'),
            "'ROWTIME' is a reserved column name. You cannot use it as a name for a column.",
        ),
        (
            Schema('{"type": "record", "name": "R", "fields": [{"name": "k", "type": "long"}]}'),
            "Duplicate column names: `K`",
        ),
        (
            Schema('{"type": "object", "properties": {"a": {"type": "integer"}}}', "JSON"),
            "Value schema is not in the expected format. You may want to set VALUE_FORMAT to 'JSON'.\ntopic: t\n"
            "expected format: AVRO\nactual format from Schema Registry: JSON",
        ),
    ],
)
def test_inferred_columns_that_cannot_be(schema: Schema, message: str) -> None:
    registry = SchemaRegistry(f"mock://sources-{next(NUMBERS)}")
    registry.register("t-value", schema)
    sql = SqlEngine(topics=KnownTopics({"t": 1}), registry=registry)
    with pytest.raises(SqlStatementError) as error:
        sql.execute("CREATE STREAM s (k INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');")
    assert message in error.value.message


EVENTS = """syntax = "proto3"; package shop; enum Kind { NONE = 0; }
    message Customer { int32 a = 1; } message Order { int32 b = 1; }"""


@pytest.mark.parametrize(
    ("schema", "properties", "message"),
    [
        (
            Schema(EVENTS, "PROTOBUF"),
            "VALUE_FORMAT='PROTOBUF'",
            "Value schema has multiple schema definitions. \n\n- shop.Customer\n- shop.Order\n- shop.Kind\n\n"
            "Please specify a schema full name in the WITH clause using VALUE_SCHEMA_FULL_NAME",
        ),
        (
            Schema(EVENTS, "PROTOBUF"),
            "VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_ID=77",
            "Schema for message values on topic 't' does not exist in the Schema Registry.\nSubject: t-value\n"
            "Schema Id: 77\nPossible causes include:",
        ),
        (
            Schema('{"type": "record", "name": "R", "fields": []}'),
            "VALUE_FORMAT='AVRO'",
            "Unable to verify if the value schema for topic: t is compatible with ksqlDB.\n"
            "Reason: Schema does not include any columns with types that ksqlDB supports.",
        ),
        (
            Schema('{"type": "record", "name": "R", "fields": [{"name": "A", "type": "long"}]}'),
            "VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_ID=1",
            "You may want to set VALUE_FORMAT to 'AVRO'.\ntopic: t, schema id: 1\nexpected format: PROTOBUF\n",
        ),
    ],
)
def test_registered_schemas_that_cannot_be_used(schema: Schema, properties: str, message: str) -> None:
    registry = SchemaRegistry(f"mock://sources-{next(NUMBERS)}")
    assert registry.register("t-value", schema) == 1
    sql = SqlEngine(topics=KnownTopics({"t": 1}), registry=registry)
    with pytest.raises(SqlStatementError) as error:
        sql.execute(f"CREATE STREAM s WITH (KAFKA_TOPIC='t', {properties});")
    assert message in error.value.message


@pytest.mark.parametrize(("topic", "place"), [("", "schema id: 1"), ("KAFKA_TOPIC='t', ", "topic: t, schema id: 1")])
def test_schema_of_another_format_is_none_for_a_sink(topic: str, place: str) -> None:
    registry = SchemaRegistry(f"mock://sources-{next(NUMBERS)}")
    registry.register("other", Schema('{"type": "record", "name": "R", "fields": [{"name": "A", "type": "long"}]}'))
    sql = SqlEngine(topics=KnownTopics({"s": 1}), registry=registry)
    sql.execute("CREATE STREAM s (a BIGINT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")
    with pytest.raises(SqlStatementError, match=f"set VALUE_FORMAT to 'AVRO'.\n{place}\nexpected format: PROTOBUF"):
        sql.execute(f"CREATE STREAM o WITH ({topic}VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_ID=1) AS SELECT * FROM s;")


@pytest.mark.parametrize("name", ["Order", "shop.Order"])
def test_a_message_is_named_with_its_package_or_without(name: str) -> None:
    registry = SchemaRegistry(f"mock://sources-{next(NUMBERS)}")
    text = 'syntax = "proto3"; package shop; message Customer { int32 a = 1; } message Order { int32 b = 1; }'
    registry.register("t-value", Schema(text, "PROTOBUF"))
    sql = SqlEngine(topics=KnownTopics({"t": 1}), registry=registry)
    statement = f"CREATE STREAM s WITH (KAFKA_TOPIC='t', VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_FULL_NAME='{name}');"
    sql.execute(statement)
    assert str(sql.catalog.source("S").schema) == "`B` INTEGER"
