"""The types of columns as answers describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.sql.types import SqlArray, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column, Namespace, Schema


@dataclass(frozen=True)
class Field:
    """A column of a source or of a query."""

    name: str
    schema: dict[str, Any]
    type: str | None = None
    """KEY or HEADER; None for columns of the value."""
    header_key: str | None = None


def schema_info(type: SqlType) -> dict[str, Any]:
    """Returns a type as a tree.

    >>> from headrace.sql.types import ARRAY, INTEGER
    >>> schema_info(ARRAY(INTEGER))["memberSchema"]
    {'type': 'INTEGER', 'fields': None, 'memberSchema': None}
    """
    info: dict[str, Any] = {"type": type.base.value, "fields": None, "memberSchema": None}
    match type:
        case SqlArray():
            info["memberSchema"] = schema_info(type.item)
        case SqlMap():
            info["memberSchema"] = schema_info(type.value)
        case SqlStruct():
            info["fields"] = [{"name": each.name, "schema": schema_info(each.type)} for each in type.fields]
        case SqlDecimal():
            info["parameters"] = {"precision": type.precision, "scale": type.scale}
    return info


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """Returns the columns in their order."""
    return tuple(_field(column) for column in schema)


def _field(column: Column) -> Field:
    kinds = {Namespace.KEY: "KEY", Namespace.HEADERS: "HEADER"}
    return Field(column.name, schema_info(column.type), kinds.get(column.namespace), column.header_key)
