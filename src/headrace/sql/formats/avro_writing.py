"""Column values to what fastavro writes with a schema, which may be one of the registry and not of the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.sql.formats.avro_schemas import branch_name, branches_of
from headrace.sql.types import SqlArray, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column

Make = Callable[[Any], Any]

_CONNECT_NAMES = {
    "boolean": "BOOLEAN",
    "int": "INT32",
    "long": "INT64",
    "float": "FLOAT32",
    "double": "FLOAT64",
    "string": "STRING",
    "enum": "STRING",
    "bytes": "BYTES",
    "fixed": "BYTES",
    "array": "ARRAY",
    "map": "MAP",
}
"""What Connect, whose errors ksqlDB passes on, calls the types of Avro; all others are STRUCT."""


def value_maker(type: SqlType | tuple[Column, ...], schema: Any) -> Make:
    """Returns the function that makes what fastavro writes of a value, or of the row of some columns.

    >>> from headrace.sql.types import INTEGER, MAP, STRING
    >>> value_maker(MAP(STRING, INTEGER), {"type": "array", "items": {"type": "record", "name": "MapEntry"}})({"a": 1})
    [{'key': 'a', 'value': 1}]
    """
    if isinstance(type, tuple):
        parts = [(column.name, index, column.type) for index, column in enumerate(type)]
        return _record(parts, schema)
    if isinstance(schema, list) and len(branches_of(schema)) > 1 and isinstance(type, SqlStruct):
        return _union(type, branches_of(schema))
    schema = _not_null(schema)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return value_maker(type, kind)
    if isinstance(type, SqlStruct) and kind == "record":
        return _record([(field.name, field.name, field.type) for field in type.fields], schema)
    if isinstance(type, SqlArray) and kind == "array":
        return _items(value_maker(type.item, schema["items"]))
    if isinstance(type, SqlMap) and kind == "map":
        return _values(value_maker(type.value, schema["values"]))
    if isinstance(type, SqlMap) and kind == "array":
        fields = schema["items"].get("fields", ())
        value = next((field["type"] for field in fields if field["name"] == "value"), "null")
        return _entries(value_maker(type.value, value))
    return _same


def _record(parts: list[tuple[str, Any, SqlType]], schema: Any) -> Make:
    # The schema may have further fields, with defaults, and names in another case.
    record = _not_null(schema)
    exact = {name: (place, type) for name, place, type in parts}
    upper = {name.upper(): (place, type) for name, place, type in parts}
    makers: list[tuple[str, Any, Make | None, Any]] = []
    required = {field["name"]: field["type"] for field in record["fields"] if not _is_nullable(field["type"])}
    for field in record["fields"]:
        name, default = field["name"], field.get("default")
        found = exact.get(name) or upper.get(name.upper())
        maker = None if found is None else value_maker(found[1], field["type"])
        makers.append((name, None if found is None else found[0], maker, default))

    def make(values: Any) -> dict[str, Any]:
        made = {}
        for name, place, maker, default in makers:
            value = None if maker is None else values[place]
            made[name] = default if value is None or maker is None else maker(value)
            if made[name] is None and name in required:
                raise _null_in(name, required[name], has_column=maker is not None)
        return made

    return make


def _union(type: SqlStruct, branches: list[Any]) -> Make:
    by_name = {branch_name(branch).upper(): branch for branch in branches}
    makers = [(field.name, value_maker(field.type, by_name[field.name.upper()])) for field in type.fields]

    def make(value: Any) -> Any:
        return next((maker(value[name]) for name, maker in makers if value.get(name) is not None), None)

    return make


def _items(make: Make) -> Make:
    return _same if make is _same else lambda value: [None if item is None else make(item) for item in value]


def _values(make: Make) -> Make:
    if make is _same:
        return _same
    return lambda value: {key: None if item is None else make(item) for key, item in value.items()}


def _entries(make: Make) -> Make:
    return lambda value: [{"key": key, "value": None if item is None else make(item)} for key, item in value.items()]


def _same(value: Any) -> Any:
    return value


def _is_nullable(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def _null_in(name: str, schema: Any, *, has_column: bool) -> ValueError:
    """Returns the error for a field without a value, which the schema demands."""
    if not has_column:
        return ValueError(
            f"Missing default value for required Avro field: [{name}]. "
            "This field appears in Avro schema in Schema Registry"
        )
    kind = schema["type"] if isinstance(schema, dict) else schema
    connect_name = _CONNECT_NAMES.get(kind, "STRUCT") if isinstance(kind, str) else "STRUCT"
    return ValueError(f'Invalid value: null used for required field: "{name}", schema type: {connect_name}')


def _not_null(schema: Any) -> Any:
    if isinstance(schema, list):
        return next((branch for branch in schema if branch != "null"), "null")
    return schema
