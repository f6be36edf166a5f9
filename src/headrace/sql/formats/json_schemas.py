"""JSON Schemas of columns, in the shape that ksqlDB registers, and columns of JSON Schemas."""

from __future__ import annotations

import json
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

_CONNECT = "org.apache.kafka.connect.data."
_NULL = {"type": "null"}
_DEFINITIONS = ("definitions", "$defs")
_PLAIN: dict[SqlBaseType, dict[str, Any]] = {
    SqlBaseType.BOOLEAN: {"type": "boolean"},
    SqlBaseType.INTEGER: {"type": "integer", "connect.type": "int32"},
    SqlBaseType.BIGINT: {"type": "integer", "connect.type": "int64"},
    SqlBaseType.DOUBLE: {"type": "number", "connect.type": "float64"},
    SqlBaseType.STRING: {"type": "string"},
    SqlBaseType.BYTES: {"type": "string", "connect.type": "bytes"},
    SqlBaseType.DATE: {"type": "integer", "title": f"{_CONNECT}Date", "connect.version": 1, "connect.type": "int32"},
    SqlBaseType.TIME: {"type": "integer", "title": f"{_CONNECT}Time", "connect.version": 1, "connect.type": "int32"},
    SqlBaseType.TIMESTAMP: {
        "type": "integer",
        "title": f"{_CONNECT}Timestamp",
        "connect.version": 1,
        "connect.type": "int64",
    },
}
_TITLES = {f"{_CONNECT}Date": DATE, f"{_CONNECT}Time": TIME, f"{_CONNECT}Timestamp": TIMESTAMP}
_TYPES = {"boolean": BOOLEAN, "integer": BIGINT, "number": DOUBLE, "string": STRING}
_NARROW = {"int8": INTEGER, "int16": INTEGER, "int32": INTEGER, "bytes": BYTES}


def row_schema(columns: tuple[Column, ...]) -> dict[str, Any]:
    """Returns the schema of an object with these columns.

    >>> row_schema((Column("A", BOOLEAN),))["properties"]
    {'A': {'connect.index': 0, 'oneOf': [{'type': 'null'}, {'type': 'boolean'}]}}
    """
    return _object([(column.name, column.type) for column in columns])


def value_schema(type: SqlType) -> dict[str, Any]:
    """Returns the schema of a single value that is not wrapped, and may be null."""
    return {"oneOf": [_NULL, _schema(type)]}


def _object(fields: list[tuple[str, SqlType]]) -> dict[str, Any]:
    properties = {name: {"connect.index": index, **value_schema(type)} for index, (name, type) in enumerate(fields)}
    return {"type": "object", "properties": properties}


def _schema(type: SqlType) -> dict[str, Any]:
    if isinstance(type, SqlArray):
        return {"type": "array", "items": value_schema(type.item)}
    if isinstance(type, SqlMap):
        return {"type": "object", "connect.type": "map", "additionalProperties": value_schema(type.value)}
    if isinstance(type, SqlStruct):
        return _object([(field.name, field.type) for field in type.fields])
    if isinstance(type, SqlDecimal):
        return {
            "type": "number",
            "title": f"{_CONNECT}Decimal",
            "connect.version": 1,
            "connect.type": "bytes",
            "connect.parameters": {"scale": str(type.scale), "connect.decimal.precision": str(type.precision)},
        }
    return _PLAIN[type.base]


def type_of(text: str, *, keep_case: bool) -> SqlType:
    """Returns the type that a registered schema describes; the names of its fields are upper-cased unless kept.

    >>> str(type_of('{"type": "object", "properties": {"a": {"type": "integer"}}}', keep_case=True))
    'STRUCT<`a` BIGINT>'
    """
    schema = json.loads(text)
    return _type(_resolve_schema(schema, schema, ()), keep_case=keep_case)


def _resolve_schema(schema: Any, root: Any, outer: tuple[str, ...]) -> Any:
    """Returns the schema with what it refers to, inside of itself, in the place of the references."""
    if isinstance(schema, list):
        return [_resolve_schema(part, root, outer) for part in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return {key: _resolve_schema(part, root, outer) for key, part in schema.items() if key not in _DEFINITIONS}
    if not reference.startswith("#/") or reference in outer:
        message = f"JSON schema reference '{reference}' has no type in SQL: it leads elsewhere, or into itself"
        raise SqlStatementError(message)
    found = root
    for step in reference[2:].split("/"):
        found = found[step.replace("~1", "/").replace("~0", "~")]
    rest = {key: part for key, part in schema.items() if key != "$ref"}
    return {**_resolve_schema(found, root, (*outer, reference)), **rest}


def properties_of(schema: Any) -> list[str]:
    """Returns the names of the properties of an object's schema."""
    return list(_not_null(schema).get("properties", ()))


def _type(schema: Any, *, keep_case: bool) -> SqlType:
    schema = _not_null(schema)
    kind, connect, title = schema.get("type"), schema.get("connect.type"), schema.get("title")
    if title in _TITLES:
        return _TITLES[title]
    if title == f"{_CONNECT}Decimal":
        parameters = schema.get("connect.parameters", {})
        return DECIMAL(int(parameters.get("connect.decimal.precision", 64)), int(parameters.get("scale", 0)))
    if connect in _NARROW:
        return _NARROW[connect]
    if kind == "array":
        return ARRAY(_type(schema.get("items", {"type": "string"}), keep_case=keep_case))
    if kind == "object" and (connect == "map" or "properties" not in schema):
        return MAP(STRING, _type(schema.get("additionalProperties", {"type": "string"}), keep_case=keep_case))
    if kind == "object":
        return STRUCT(tuple(_fields(schema["properties"], keep_case=keep_case)))
    if kind in _TYPES:
        return _TYPES[kind]
    if "enum" in schema:
        return STRING
    message = f"JSON schema {json.dumps(schema)[:100]} has no type in SQL"
    raise SqlStatementError(message)


def _fields(properties: dict[str, Any], *, keep_case: bool) -> list[StructField]:
    ordered = sorted(properties.items(), key=lambda item: item[1].get("connect.index", len(properties)))
    return [
        StructField(name if keep_case else name.upper(), _type(part, keep_case=keep_case)) for name, part in ordered
    ]


def _not_null(schema: Any) -> dict[str, Any]:
    found: dict[str, Any] = schema if isinstance(schema, dict) else {}
    for union in ("oneOf", "anyOf"):
        if union in found:
            branches = [branch for branch in found[union] if branch.get("type") != "null"]
            if len(branches) == 1:
                return _not_null(branches[0])
    if isinstance(found.get("type"), list):
        kinds = [kind for kind in found["type"] if kind != "null"]
        return {**found, "type": kinds[0]} if len(kinds) == 1 else found
    return found
