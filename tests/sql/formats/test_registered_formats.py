"""AVRO, JSON_SR and PROTOBUF: rows through a registry, its schemas, and columns from schemas of others."""

import json
import pickle
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ConfigError, DeserializationError, SerializationError
from headrace.serdes.registry import Schema, SchemaReference, SchemaRegistry
from headrace.serdes.registry.wire import header
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.formats.format import Target
from headrace.sql.formats.registered_json import json_of, registered_format
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
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
from headrace.sql.types.schema import Column, Namespace
from tests.sql.formats.rows import NESTED, SCALARS, key_columns, rows, value_columns

NAMES = ["AVRO", "JSON_SR", "PROTOBUF"]
NUMBERS = count()
ALL = value_columns((*SCALARS, *NESTED))
VALUES = Target("orders", is_key=False)


def fresh() -> SchemaRegistry:
    return SchemaRegistry(f"mock://formats-{next(NUMBERS)}")


@pytest.fixture
def registry() -> SchemaRegistry:
    return fresh()


SHARED = fresh()


def inferred(
    name: str, registry: SchemaRegistry, namespace: Namespace = Namespace.VALUE, **options: Any
) -> tuple[Column, ...]:
    side = "key" if namespace is Namespace.KEY else "value"
    found = registry.latest(f"orders-{side}")
    assert found is not None
    return format_named(name).infer(found.schema, FormatOptions(registry=registry, **options), namespace)


@cache
def functions(name: str, nullable: str | None = None) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    options = FormatOptions(registry=SHARED, nullable_representation=nullable)
    serde = format_named(name).serde(ALL, options)
    return serde.serializer("orders", is_key=False), serde.deserializer("orders", is_key=False)


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_rows_come_back_as_they_were(name: str, data: st.DataObject) -> None:
    row = data.draw(rows(ALL))
    write, read = functions(name)
    assert read(write(row)) == row


@pytest.mark.parametrize("name", ["PROTOBUF", "PROTOBUF_NOSR"])
@pytest.mark.parametrize("nullable", [None, "OPTIONAL", "WRAPPER"])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_messages_come_back_as_they_were(name: str, nullable: str | None, data: st.DataObject) -> None:
    row = data.draw(rows(ALL, nulls=False))
    write, read = functions(name, nullable)
    assert read(write(row)) == row


@pytest.mark.parametrize("name", ["PROTOBUF", "PROTOBUF_NOSR"])
@pytest.mark.parametrize(
    ("nullable", "expected"),
    [(None, [0, "", 0.0, False]), ("OPTIONAL", [None] * 4), ("WRAPPER", [None] * 4)],
)
def test_protobuf_tells_null_from_zero_only_if_told_to(name: str, nullable: str | None, expected: list[Any]) -> None:
    columns = value_columns([INTEGER, STRING, DOUBLE, BOOLEAN])
    serde = format_named(name).serde(columns, FormatOptions(registry=SHARED, nullable_representation=nullable))
    assert serde.deserialize(serde.serialize([None] * 4, "nulls"), "nulls") == expected
    assert serde.deserialize(serde.serialize([0, "", 0.0, False], "nulls"), "nulls") == [0, "", 0.0, False]


@pytest.mark.parametrize("name", NAMES)
def test_columns_come_back_from_the_registered_schema(name: str, registry: SchemaRegistry) -> None:
    schema = format_named(name).schema_of(ALL, FormatOptions(), Namespace.VALUE)
    assert schema is not None
    assert registry.register("orders-value", schema) == 1
    assert inferred(name, registry) == ALL


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_rows_can_be_shown_as_json(name: str, data: st.DataObject) -> None:
    row = data.draw(rows(ALL, nulls=name != "PROTOBUF"))
    written = functions(name)[0](row)
    assert registered_format(written, SHARED) == name
    text = json_of(written, SHARED, VALUES)
    assert text is not None
    # Not the bytes: Protobuf sorts the keys of maps.
    assert format_named("JSON").serde(ALL).deserialize(text) == row


@pytest.mark.parametrize("data", [b"", b"tea", bytes(4), bytes([0, 0, 0, 0, 99, 1])])
def test_bytes_of_no_registered_schema_have_no_format(data: bytes, registry: SchemaRegistry) -> None:
    assert registered_format(data, registry) is None


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
def test_single_keys_are_not_wrapped_and_may_be_null(name: str, registry: SchemaRegistry) -> None:
    serde = format_named(name).key_serde(key_columns([STRING]), FormatOptions(registry=registry))
    write, read = serde.serializer("orders", is_key=True), serde.deserializer("orders", is_key=True)
    assert read(write(("a",))) == ("a",)
    assert write((None,)) is None
    assert registry.latest("orders-key") is not None


def test_protobuf_keys_are_wrapped(registry: SchemaRegistry) -> None:
    serde = format_named("PROTOBUF").key_serde(key_columns([STRING]), FormatOptions(registry=registry))
    assert serde.serializer("orders", is_key=True)(("a",)) == b"\0\0\0\0\1\0\x0a\x01a"


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        (
            "AVRO",
            value_columns([INTEGER]),
            {
                "type": "record",
                "name": "KsqlDataSourceSchema",
                "namespace": "io.confluent.ksql.avro_schemas",
                "fields": [{"name": "C0", "type": ["null", "int"], "default": None}],
                "connect.name": "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema",
            },
        ),
        (
            "JSON_SR",
            value_columns([BIGINT]),
            {
                "type": "object",
                "properties": {
                    "C0": {
                        "connect.index": 0,
                        "oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int64"}],
                    }
                },
            },
        ),
    ],
)
def test_schemas_have_the_shape_that_ksqldb_registers(name: str, columns: Any, expected: Any) -> None:
    schema = format_named(name).schema_of(columns, FormatOptions(), Namespace.VALUE)
    assert schema is not None
    assert json.loads(schema.text) == expected


def test_key_records_have_the_name_of_the_options() -> None:
    options = FormatOptions(schema_full_name="a.b.Key")
    type = STRUCT((StructField("S", STRUCT((StructField("F", INTEGER),))),))
    schema = format_named("AVRO").schema_of(key_columns([type]), options, Namespace.KEY)
    assert schema is not None
    made = json.loads(schema.text)
    assert (made["name"], made["namespace"]) == ("Key", "a.b")
    assert made["fields"][0]["type"][1]["name"] == "Key_S"


INTEGERS = '{"oneOf": [{"type": "null"}, {"type": "integer"}]}'
AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    {"name": "tags", "type": {"type": "map", "values": "float"}},
    {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}]},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "lines", "type": {"type": "array", "items":
        {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}}},
    {"name": "last", "type": ["null", "Line"]}]}"""
LINE = STRUCT((StructField("N", INTEGER),))


def test_columns_of_an_avro_schema_of_others(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(AVRO))
    columns = inferred("AVRO", registry)
    expected: list[tuple[str, SqlType]] = [
        ("ID", BIGINT),
        ("KIND", STRING),
        ("TAGS", MAP(STRING, DOUBLE)),
        ("PRICE", DECIMAL(5, 2)),
        ("DAY", DATE),
        ("AT", TIMESTAMP),
        ("MICROS", BIGINT),
        ("LINES", ARRAY(LINE)),
        ("LAST", LINE),
    ]
    assert [(column.name, column.type) for column in columns] == expected


PROTO = """
syntax = "proto3";  // a comment
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "confluent/type/decimal.proto";
option java_package = "com.shop";
message Other { int32 x = 1; }
/* and another
   comment */
message Order {
  reserved 20 to 30, 40;
  enum Kind { A = 0; B = 1 [deprecated = true]; }
  message Line { int32 n = 1; optional string note = 2; }
  int64 id = 1;
  Kind kind = 2;
  map<string, float> tags = 3;
  confluent.type.Decimal price = 4 [(confluent.field_meta) = { params: [{ key: "precision", value: "5" },
    { value: "2", key: "scale" }] }, deprecated = true];
  google.protobuf.Timestamp at = 5;
  repeated Line lines = 6;
  google.protobuf.Int32Value maybe = 7;
  oneof choice { string left = 8; uint32 right = 9; }
}
service Shop { rpc Buy (Order) returns (Order) { option deadline = 1; } }
"""


def test_columns_of_a_protobuf_schema_of_others(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(PROTO, "PROTOBUF"))
    columns = inferred("PROTOBUF", registry, schema_full_name="shop.Order")
    expected: list[tuple[str, SqlType]] = [
        ("CHOICE_0", STRUCT((StructField("LEFT", STRING), StructField("RIGHT", BIGINT)))),
        ("ID", BIGINT),
        ("KIND", STRING),
        ("TAGS", MAP(STRING, DOUBLE)),
        ("PRICE", DECIMAL(5, 2)),
        ("AT", TIMESTAMP),
        ("LINES", ARRAY(STRUCT((StructField("N", INTEGER), StructField("NOTE", STRING))))),
        ("MAYBE", INTEGER),
    ]
    assert [(column.name, column.type) for column in columns] == expected


def test_keys_of_maps_are_texts_whatever_the_schema_says(registry: SchemaRegistry) -> None:
    text = 'syntax = "proto3"; message M { map<int32, string> a = 1; map<bool, int64> b = 2; }'
    number = registry.register("orders-value", Schema(text, "PROTOBUF"))
    columns = inferred("PROTOBUF", registry)
    assert [column.type for column in columns] == [MAP(STRING, STRING), MAP(STRING, BIGINT)]
    serde = format_named("PROTOBUF").serde(columns, FormatOptions(registry=registry, schema_id=number))
    row = [{"-7": "x", "8": "y"}, {"true": 1, "false": 2}]
    assert serde.deserialize(serde.serialize(row, "orders"), "orders") == row


def test_messages_of_a_file_are_told_apart(registry: SchemaRegistry) -> None:
    number = registry.register("orders-value", Schema(PROTO, "PROTOBUF"))
    options = FormatOptions(registry=registry, schema_id=number, schema_full_name="shop.Order")
    columns = (Column("id", BIGINT), Column("kind", STRING))
    serde = format_named("PROTOBUF").serde(columns, options)
    data = serde.serialize([7, "B"], "orders")
    assert data == b"\0\0\0\0\1\x02\x02\x08\x07\x10\x01"
    assert serde.deserialize(data, "orders") == [7, "B"]


@pytest.mark.parametrize("choice", [None, {"left": "", "right": None}, {"left": None, "right": 7}])
def test_choice_of_fields_is_a_struct(choice: Any, registry: SchemaRegistry) -> None:
    number = registry.register("orders-value", Schema(PROTO, "PROTOBUF"))
    options = FormatOptions(registry=registry, schema_id=number, schema_full_name="shop.Order")
    columns = format_named("PROTOBUF").infer(registry.schema(number), options, Namespace.VALUE)
    serde = format_named("PROTOBUF").serde(columns[:2], options)
    assert serde.deserialize(serde.serialize([choice, 7], "orders"), "orders") == [choice, 7]


def test_imported_schemas_are_found_by_reference(registry: SchemaRegistry) -> None:
    registry.register("event", Schema('syntax = "proto3"; message Event { int64 at = 1; }', "PROTOBUF"))
    text = 'syntax = "proto3"; import "event.proto"; message Log { Event event = 1; }'
    registry.register("orders-value", Schema(text, "PROTOBUF", (SchemaReference("event.proto", "event", 1),)))
    assert inferred("PROTOBUF", registry) == (Column("EVENT", STRUCT((StructField("AT", BIGINT),))),)


def test_columns_of_a_json_schema_of_others(registry: SchemaRegistry) -> None:
    text = """{"type": "object", "properties": {
        "b": {"type": ["null", "integer"], "connect.index": 1},
        "a": {"type": "number", "connect.index": 0},
        "c": {"type": "array", "items": {"type": "boolean"}, "connect.index": 2},
        "d": {"type": "object", "additionalProperties": {"type": "string"}, "connect.index": 3}}}"""
    registry.register("orders-value", Schema(text, "JSON"))
    columns = inferred("JSON_SR", registry)
    expected = [("A", DOUBLE), ("B", BIGINT), ("C", ARRAY(BOOLEAN)), ("D", MAP(STRING, STRING))]
    assert [(column.name, column.type) for column in columns] == expected


def test_names_keep_their_case_if_the_schema_is_named_by_number(registry: SchemaRegistry) -> None:
    number = registry.register("orders-value", Schema(AVRO))
    assert inferred("AVRO", registry, schema_id=number)[0].name == "id"


@pytest.mark.parametrize(("format", "kind", "text"), [("AVRO", "AVRO", '"long"'), ("JSON_SR", "JSON", INTEGERS)])
def test_schema_that_is_no_record_is_one_column(format: str, kind: str, text: str, registry: SchemaRegistry) -> None:
    for subject in ("orders-key", "orders-value"):
        registry.register(subject, Schema(text, kind))
    assert inferred(format, registry, Namespace.KEY) == (Column("ROWKEY", BIGINT, Namespace.KEY),)
    assert inferred(format, registry, wrapped=False) == (Column("ROWVAL", BIGINT),)
    with pytest.raises(SqlStatementError, match=r"is anonymous type. To use this schema with ksqlDB, set 'WRAP_SINGLE"):
        inferred(format, registry)


UNION = """{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int", "string",
    {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "double"}]}]},
    {"name": "b", "type": {"type": "array", "items": ["int", "boolean"]}}]}"""


def test_union_of_several_types_is_a_struct(registry: SchemaRegistry) -> None:
    number = registry.register("orders-value", Schema(UNION))
    point = STRUCT((StructField("X", DOUBLE),))
    choice = STRUCT((StructField("INT", INTEGER), StructField("STRING", STRING), StructField("POINT", point)))
    flags = ARRAY(STRUCT((StructField("INT", INTEGER), StructField("BOOLEAN", BOOLEAN))))
    columns = inferred("AVRO", registry)
    assert [column.type for column in columns] == [choice, flags]
    serde = format_named("AVRO").serde(columns, FormatOptions(registry=registry, schema_id=number))
    nothing = {"INT": None, "STRING": None, "POINT": None}
    flag = [{"INT": 5, "BOOLEAN": None}, {"INT": None, "BOOLEAN": True}]
    for value in (None, {**nothing, "INT": 7}, {**nothing, "STRING": "a"}, {**nothing, "POINT": {"X": 1.5}}):
        assert serde.deserialize(serde.serialize([value, flag], "orders"), "orders") == [value, flag]


def test_references_inside_of_a_json_schema_are_followed(registry: SchemaRegistry) -> None:
    text = """{"type": "object",
        "properties": {"a": {"$ref": "#/$defs/Line"}, "b": {"$ref": "#/$defs/Line/properties/n"}},
        "$defs": {"Line": {"type": "object", "properties": {"n": {"type": "integer"}}}}}"""
    registry.register("orders-value", Schema(text, "JSON"))
    line = STRUCT((StructField("N", BIGINT),))
    assert inferred("JSON_SR", registry) == (Column("A", line), Column("B", BIGINT))


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("AVRO", "AVRO", "no JSON"),
        ("JSON_SR", "JSON", '{"type": "object", "properties": {"a": {"$ref": "http://elsewhere"}}}'),
        ("JSON_SR", "JSON", '{"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}'),
        ("AVRO", "AVRO", '{"type": "record", "name": "r"}'),
        ("JSON_SR", "JSON", '{"$ref": "#/definitions/x"}'),
        ("PROTOBUF", "PROTOBUF", 'syntax = "proto3"; import "unknown.proto"; message M {}'),
        ("PROTOBUF", "PROTOBUF", 'syntax = "proto3"; message M { M inner = 1; }'),
        ("PROTOBUF", "PROTOBUF", 'syntax = "proto3"; message M { Missing m = 1; }'),
        ("PROTOBUF", "PROTOBUF", 'syntax = "proto3"; enum E { A = 0; }'),
    ],
)
def test_schema_without_columns_is_an_error(name: str, kind: str, text: str, registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(text, kind))
    with pytest.raises(SqlStatementError):
        inferred(name, registry)


def test_message_that_is_not_there_is_an_error(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(PROTO, "PROTOBUF"))
    with pytest.raises(SqlStatementError, match=r"has no message 'Bill'; it defines shop.Other, shop.Order"):
        inferred("PROTOBUF", registry, schema_full_name="Bill")


def test_schema_named_by_number_fills_in_its_defaults(registry: SchemaRegistry) -> None:
    text = """{"type": "record", "name": "r", "fields": [
        {"name": "a", "type": "int", "default": 5}, {"name": "b", "type": ["null", "string"], "default": null},
        {"name": "c", "type": "string", "default": "x"}]}"""
    options = FormatOptions(registry=registry, schema_id=registry.register("any", Schema(text)))
    serde = format_named("AVRO").serde((Column("a", INTEGER), Column("b", STRING)), options)
    data = serde.serialize([None, None], "orders")
    assert data is not None
    assert json_of(data, registry, VALUES) == b'{"a":5,"b":null,"c":"x"}'


def test_row_that_the_named_schema_cannot_hold_is_an_error(registry: SchemaRegistry) -> None:
    text = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}'
    options = FormatOptions(registry=registry, schema_id=registry.register("any", Schema(text)))
    missing = r"value of topic 'orders': AVRO cannot write .*: Missing default value for required Avro field: \[b\]"
    with pytest.raises(SerializationError, match=missing):
        format_named("AVRO").serde((Column("a", INTEGER),), options).serialize([1], "orders")
    null = 'Invalid value: null used for required field: "b", schema type: INT32'
    with pytest.raises(SerializationError, match=null):
        format_named("AVRO").serde((Column("a", INTEGER), Column("b", INTEGER)), options).serialize([1, None], "orders")


def test_values_of_another_schema_are_converted_if_nothing_is_lost(registry: SchemaRegistry) -> None:
    number = registry.register(
        "any", Schema('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}')
    )
    avro = format_named("AVRO")
    # An int of Avro: 7 as a zigzag number.
    data = header(number) + b"\x0e"
    columns = (Column("A", STRING), Column("B", INTEGER))
    assert avro.serde(columns, FormatOptions(registry=registry)).deserialize(data) == ["7", None]
    with pytest.raises(DeserializationError, match="requiredType: BOOLEAN"):
        avro.serde((Column("A", BOOLEAN),), FormatOptions(registry=registry)).deserialize(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, data) for name in NAMES for data in (b"", b"\1\0\0\0\1x", b"\0\0\0\0\1")),
        ("PROTOBUF", b"\0\0\0\0\1\0\xff"),
        # JSON is read without its schema.
        ("AVRO", b"\0\0\0\x27\x0f\0"),
        ("PROTOBUF", b"\0\0\0\x27\x0f\0"),
    ],
)
def test_strange_bytes_are_errors(name: str, data: bytes, registry: SchemaRegistry) -> None:
    serde = format_named(name).serde(value_columns([INTEGER]), FormatOptions(registry=registry))
    serde.serialize([1], "orders")
    with pytest.raises(DeserializationError, match=f"value: {name} cannot read"):
        serde.deserialize(data)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("AVRO", "Avro only supports MAPs with STRING keys"),
        ("JSON_SR", "JSON only supports MAP types with STRING keys"),
        ("PROTOBUF", "PROTOBUF format only supports MAP types with STRING keys"),
    ],
)
def test_maps_need_strings_as_keys(name: str, message: str) -> None:
    with pytest.raises(SqlStatementError, match=message):
        format_named(name).check(value_columns([MAP(INTEGER, INTEGER)]))


@pytest.mark.parametrize(
    ("column", "message"), [("1a", "Illegal initial character: 1a"), ("a b", "Illegal character in")]
)
def test_avro_takes_only_its_own_kind_of_names(column: str, message: str) -> None:
    with pytest.raises(SqlStatementError, match=f"Schema is not compatible with Avro: {message}"):
        format_named("AVRO").check((Column(column, INTEGER),))


@pytest.mark.parametrize(
    "column",
    [Column("1a", INTEGER), Column("a b", INTEGER), Column("A", STRUCT((StructField("é", INTEGER),)))],
    ids=["digit", "space", "field"],
)
def test_protobuf_takes_only_its_own_kind_of_names(column: Column) -> None:
    with pytest.raises(SqlStatementError, match=r"'PROTOBUF' format does not support the name '(1a|a b|é)'"):
        format_named("PROTOBUF").check((column,))


def test_protobuf_takes_names_that_differ_by_an_underscore() -> None:
    columns = (Column("A_B", INTEGER), Column("AB", INTEGER), Column("A_", INTEGER), Column("A", INTEGER))
    format = format_named("PROTOBUF_NOSR")
    format.check(columns)
    serde = format.serde(columns, FormatOptions())
    data = serde.serializer("t", is_key=False)([1, 2, 3, 4])
    assert serde.deserializer("t", is_key=False)(data) == [1, 2, 3, 4]
    with pytest.raises(SqlStatementError, match="does not support these columns together"):
        format.check((Column("A_B", MAP(STRING, INTEGER)), Column("AB", MAP(STRING, INTEGER))))


@pytest.mark.parametrize("type", [ARRAY(ARRAY(INTEGER)), MAP(STRING, ARRAY(INTEGER))], ids=str)
def test_protobuf_has_no_lists_of_lists(type: SqlType, registry: SchemaRegistry) -> None:
    with pytest.raises(SqlStatementError, match="does not support type 'ARRAY' inside of"):
        format_named("PROTOBUF").check(value_columns([type]))


@pytest.mark.parametrize(("name", "package"), [("AVRO", "fastavro"), ("PROTOBUF_NOSR", "google.type")])
def test_missing_package_is_an_error_of_the_statement(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SqlStatementError, match=rf"needs the package {package}, which comes with headrace\[registry\]"):
        format_named(name).check(value_columns([INTEGER]))


@pytest.mark.parametrize("name", NAMES)
def test_registry_must_be_known(name: str) -> None:
    with pytest.raises(ConfigError, match="schema registry"):
        format_named(name).serde(value_columns([INTEGER])).serialize([1], "orders")


@pytest.mark.parametrize("name", [*NAMES, "PROTOBUF_NOSR"])
def test_serde_is_a_value(name: str) -> None:
    options = FormatOptions(registry=SchemaRegistry("mock://pickled", {"timeout": 5}))
    serde = format_named(name).serde(ALL, options)
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert hash(serde) == hash(format_named(name).serde(ALL, options))


@pytest.mark.parametrize(
    "text", ["message", "message M {", "message M { int32 a; }", "message M { int32 a = x; }", "bad;"]
)
def test_protobuf_text_that_cannot_be_read_says_where(text: str, registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(f'syntax = "proto3";\n{text}', "PROTOBUF"))
    with pytest.raises(SqlStatementError, match="Protobuf schema, line 2: expected"):
        inferred("PROTOBUF", registry)
