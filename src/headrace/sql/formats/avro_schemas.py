"""Avro schemas of columns, in the shape that ksqlDB registers, and columns of Avro schemas."""

from __future__ import annotations

import json
import re
from typing import Any

from headrace.sql.errors import SqlStatementError
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
    TIME,
    TIMESTAMP,
    SqlArray,
    SqlBaseType,
    SqlDecimal,
    SqlMap,
    SqlStruct,
    SqlType,
    StructField,
)
from headrace.sql.types.schema import Column

DEFAULT_NAME = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
MAP_ENTRY = "MapEntry"
_CONNECT = "org.apache.kafka.connect.data."
_PLAIN: dict[SqlBaseType, Any] = {
    SqlBaseType.BOOLEAN: "boolean",
    SqlBaseType.INTEGER: "int",
    SqlBaseType.BIGINT: "long",
    SqlBaseType.DOUBLE: "double",
    SqlBaseType.STRING: "string",
    SqlBaseType.BYTES: "bytes",
    SqlBaseType.DATE: {
        "type": "int",
        "connect.version": 1,
        "connect.name": f"{_CONNECT}Date",
        "logicalType": "date",
    },
    SqlBaseType.TIME: {
        "type": "int",
        "connect.version": 1,
        "connect.name": f"{_CONNECT}Time",
        "logicalType": "time-millis",
    },
    SqlBaseType.TIMESTAMP: {
        "type": "long",
        "connect.version": 1,
        "connect.name": f"{_CONNECT}Timestamp",
        "logicalType": "timestamp-millis",
    },
}
_TYPES = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "enum": STRING,
    "fixed": BYTES,
}
_LOGICAL = {"date": DATE, "time-millis": TIME, "timestamp-millis": TIMESTAMP}


def row_schema(columns: tuple[Column, ...], full_name: str) -> dict[str, Any]:
    """Returns the schema of a record with these columns.

    >>> row_schema((Column("A", INTEGER),), "a.b.C")["fields"]
    [{'name': 'A', 'type': ['null', 'int'], 'default': None}]
    """
    namespace, _, name = full_name.rpartition(".")
    return _record([(column.name, column.type) for column in columns], name, namespace, is_top=True)


def value_schema(type: SqlType, full_name: str) -> Any:
    """Returns the schema of a single value that is not wrapped into a record."""
    namespace, _, name = full_name.rpartition(".")
    if isinstance(type, SqlStruct):
        return _record([(field.name, field.type) for field in type.fields], name, namespace, is_top=True)
    return _schema(type, name, namespace)


def _record(fields: list[tuple[str, SqlType]], name: str, namespace: str, *, is_top: bool = False) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "record", "name": name}
    if is_top and namespace:
        record["namespace"] = namespace
    record["fields"] = [
        {"name": field, "type": _nullable(type, f"{name}_{field}", namespace), "default": None}
        for field, type in fields
    ]
    record["connect.name"] = f"{namespace}.{name}" if namespace else name
    return record


def _nullable(type: SqlType, name: str, namespace: str) -> list[Any]:
    return ["null", _schema(type, name, namespace)]


def _schema(type: SqlType, name: str, namespace: str) -> Any:
    if isinstance(type, SqlArray):
        return {"type": "array", "items": _nullable(type.item, name, namespace)}
    if isinstance(type, SqlMap):
        # Keys may be null in Connect, so its converter writes a map as a list of entries.
        fields = [("key", STRING), ("value", type.value)]
        entry = {
            "type": "record",
            "name": name,
            "fields": [
                {"name": field, "type": _nullable(part, f"{name}_Map{field.title()}", namespace), "default": None}
                for field, part in fields
            ],
            "connect.internal.type": MAP_ENTRY,
        }
        return {"type": "array", "items": entry, "connect.internal.type": MAP_ENTRY}
    if isinstance(type, SqlStruct):
        return _record([(field.name, field.type) for field in type.fields], name, namespace)
    if isinstance(type, SqlDecimal):
        return {
            "type": "bytes",
            "scale": type.scale,
            "precision": type.precision,
            "connect.version": 1,
            "connect.parameters": {"scale": str(type.scale), "connect.decimal.precision": str(type.precision)},
            "connect.name": f"{_CONNECT}Decimal",
            "logicalType": "decimal",
        }
    return _PLAIN[type.base]


def check_names(columns: tuple[Column, ...]) -> None:
    """Raises if a column or a field of a struct has a name that Avro does not allow."""
    for column in columns:
        _check_name(column.name)
        _check_fields(column.type)


def _check_fields(type: SqlType) -> None:
    if isinstance(type, SqlArray):
        _check_fields(type.item)
    elif isinstance(type, SqlMap):
        _check_fields(type.value)
    elif isinstance(type, SqlStruct):
        for field in type.fields:
            _check_name(field.name)
            _check_fields(field.type)


def _check_name(name: str) -> None:
    if not re.match(r"[A-Za-z_]", name):
        message = f"Schema is not compatible with Avro: Illegal initial character: {name}"
        raise SqlStatementError(message)
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        message = f"Schema is not compatible with Avro: Illegal character in: {name}"
        raise SqlStatementError(message)


def type_of(text: str, *, keep_case: bool) -> SqlType:
    """Returns the type that a registered schema describes; the names of its fields are upper-cased unless kept.

    >>> str(type_of('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}', keep_case=False))
    'STRUCT<`A` BIGINT>'
    """
    return _Reading(keep_case=keep_case).type(json.loads(text))


class _Reading:
    """Reads one schema: named types may be used again by their names."""

    def __init__(self, *, keep_case: bool) -> None:
        self._keep_case = keep_case
        self._named: dict[str, SqlType] = {}

    def type(self, schema: Any) -> SqlType:
        if isinstance(schema, list):
            branches = branches_of(schema)
            if len(branches) == 1:
                return self.type(branches[0])
            return STRUCT(tuple(StructField(self._cased(branch_name(one)), self.type(one)) for one in branches))
        if isinstance(schema, str):
            found = _TYPES.get(schema) or self._named.get(schema) or self._named.get(schema.rpartition(".")[2])
            if found is None:
                message = f"Avro type '{schema}' has no type in SQL"
                raise SqlStatementError(message)
            return found
        return self._complex(schema)

    def _complex(self, schema: dict[str, Any]) -> SqlType:
        kind = schema["type"]
        logical = schema.get("logicalType")
        if logical == "decimal":
            parameters = schema.get("connect.parameters", {})
            precision = schema.get("precision") or parameters.get("connect.decimal.precision") or 64
            return self._name(schema, DECIMAL(int(precision), int(schema.get("scale", 0))))
        if logical in _LOGICAL and kind in ("int", "long"):
            return _LOGICAL[logical]
        if kind == "array":
            return self._array(schema)
        if kind == "map":
            return MAP(STRING, self.type(schema["values"]))
        if kind == "record":
            fields = (StructField(self._cased(field["name"]), self.type(field["type"])) for field in schema["fields"])
            return self._name(schema, STRUCT(tuple(fields)))
        if kind in ("enum", "fixed"):
            return self._name(schema, _TYPES[kind])
        return self.type(kind)

    def _array(self, schema: dict[str, Any]) -> SqlType:
        items = schema["items"]
        if is_map_entry(items):
            value = next(field["type"] for field in items["fields"] if field["name"] == "value")
            return MAP(STRING, self.type(value))
        return ARRAY(self.type(items))

    def _name(self, schema: dict[str, Any], type: SqlType) -> SqlType:
        if "name" in schema:
            self._named[schema["name"].rpartition(".")[2]] = type
        return type

    def _cased(self, name: str) -> str:
        return name if self._keep_case else name.upper()


def is_map_entry(items: Any) -> bool:
    """Whether the items of an array are the entries of a map."""
    if not isinstance(items, dict) or items.get("type") != "record":
        return False
    return items.get("connect.internal.type") == MAP_ENTRY or items["name"].rpartition(".")[2] == MAP_ENTRY


def branches_of(union: list[Any]) -> list[Any]:
    """Returns the types of a union that are not null. More than one are the fields of a struct, of which one is set."""
    return [branch for branch in union if branch != "null"]


def branch_name(branch: Any) -> str:
    """Returns the name of the field that a type of a union has: that of its record, or of the type itself.

    >>> branch_name("int"), branch_name({"type": "record", "name": "a.b.Order"})
    ('int', 'Order')
    """
    if isinstance(branch, str):
        return branch.rpartition(".")[2]
    name: str = branch.get("name", branch["type"])
    return name.rpartition(".")[2]
