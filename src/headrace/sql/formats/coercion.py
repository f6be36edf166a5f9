"""Values of a registered schema to values of columns: names in any case, and the few conversions that lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from headrace.sql.formats.java_numbers import fitting
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.sql.types.java_arithmetic import double_text
from headrace.sql.types.schema import Column

Convert = Callable[[Any], Any]


@lru_cache(maxsize=1024)
def row_maker(columns: tuple[Column, ...], *, wrapped: bool) -> Callable[[Any], list[Any] | None]:
    """Returns the function that makes a row of a decoded value.

    >>> from headrace.sql.types import INTEGER, STRING
    >>> row_maker((Column("A", INTEGER), Column("B", STRING)), wrapped=True)({"a": 1, "b": 2})
    [1, '2']
    """
    if not wrapped:
        convert_one = converter(columns[0].type)

        def row_of_one(value: Any) -> list[Any] | None:
            return None if value is None else [convert_one(value)]

        return row_of_one
    parts = [(column.name, converter(column.type)) for column in columns]

    def row_of_fields(value: Any) -> list[Any] | None:
        return None if value is None else _fields(value, parts)

    return row_of_fields


def _fields(value: Any, parts: list[tuple[str, Convert]]) -> list[Any]:
    if type(value) is not dict:
        raise _cannot(value, "STRUCT")
    upper: dict[str, Any] | None = None
    found = []
    for name, convert in parts:
        if name in value:
            part = value[name]
        else:
            upper = {key.upper(): part for key, part in value.items()} if upper is None else upper
            part = upper.get(name.upper())
        found.append(None if part is None else convert(part))
    return found


def converter(type: SqlType) -> Convert:
    """Returns the function that converts a value, which is not None, to the type."""
    if isinstance(type, SqlArray):
        return _array(converter(type.item))
    if isinstance(type, SqlMap):
        return _map(converter(type.value))
    if isinstance(type, SqlStruct):
        names = [field.name for field in type.fields]
        parts = [(field.name, converter(field.type)) for field in type.fields]
        return lambda value: dict(zip(names, _fields(value, parts), strict=True))
    if isinstance(type, SqlDecimal):
        return _decimal(fitting(type))
    return _SCALARS[type.base]


def _array(convert: Convert) -> Convert:
    def items(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _cannot(value, "ARRAY")
        return [None if item is None else convert(item) for item in value]

    return items


def _map(convert: Convert) -> Convert:
    def entries(value: Any) -> dict[str, Any]:
        # Maps with keys that may be null are lists of entries.
        pairs = value.items() if type(value) is dict else ((entry["key"], entry["value"]) for entry in value)
        return {key: None if item is None else convert(item) for key, item in pairs}

    return entries


def _decimal(fit: Callable[[Decimal], Decimal]) -> Convert:
    def number(value: Any) -> Decimal:
        if type(value) is not Decimal:
            raise _cannot(value, "DECIMAL")
        return fit(value)

    return number


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _cannot(value, "BOOLEAN")
    return value


def _whole(bits: int, name: str) -> Convert:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def number(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise _cannot(value, name)
        return value

    return number


def _double(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _cannot(value, "DOUBLE")
    return float(value)


def _string(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return double_text(value)
    if type(value) is Decimal:
        return format(value, "f")
    raise _cannot(value, "STRING")


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise _cannot(value, "BYTES")
    return value


_SCALARS: dict[SqlBaseType, Convert] = {
    SqlBaseType.BOOLEAN: _boolean,
    SqlBaseType.INTEGER: _whole(32, "INTEGER"),
    SqlBaseType.BIGINT: _whole(64, "BIGINT"),
    SqlBaseType.DOUBLE: _double,
    SqlBaseType.STRING: _string,
    SqlBaseType.BYTES: _bytes,
    SqlBaseType.DATE: _whole(32, "DATE"),
    SqlBaseType.TIME: _whole(64, "TIME"),
    SqlBaseType.TIMESTAMP: _whole(64, "TIMESTAMP"),
}


def _cannot(value: Any, required: str) -> ValueError:
    message = f"Can't convert type. sourceType: {type(value).__name__}, requiredType: {required}"
    return ValueError(message)
