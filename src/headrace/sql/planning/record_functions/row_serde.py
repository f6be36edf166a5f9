"""Serde of rows between the steps of a query: in stores and repartition topics, as MessagePack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from headrace.serdes.base import BaseSerde, bad_bytes, place, wrong_type
from headrace.sql.formats.format import types_within
from headrace.sql.types import SqlArray, SqlDecimal, SqlMap, SqlStruct, SqlType

Fix = Callable[[Any], Any]


@dataclass(frozen=True)
class StoredRowSerde(BaseSerde[list[Any]]):
    """Rows between the steps of a query, as MessagePack. Decimals are text in it, so the types are needed to read.

    >>> from headrace.sql.types import DECIMAL, INTEGER
    >>> serde = StoredRowSerde((INTEGER, DECIMAL(4, 2)))
    >>> serde.deserialize(serde.serialize([1, Decimal("2.50")]))
    [1, Decimal('2.50')]
    """

    types: tuple[SqlType, ...]

    exact_type = list

    @property
    def immutable(self) -> bool:
        """Rows are never changed in place: a step makes a new one."""
        return True

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[list[Any]], bytes]:
        encode, where = msgspec.msgpack.Encoder().encode, place(topic, is_key=is_key)

        def serialize(row: list[Any]) -> bytes:
            try:
                return encode(row)
            except (TypeError, ValueError, OverflowError) as error:
                raise wrong_type(where, "row", "a list of column values", row) from error

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], list[Any]]:
        decode, where, fixes = msgspec.msgpack.Decoder().decode, place(topic, is_key=is_key), self._fixes()

        def deserialize(data: bytes) -> list[Any]:
            try:
                row: list[Any] = decode(data)
            except msgspec.DecodeError as error:
                raise bad_bytes(where, "row", "a list of column values", data) from error
            for index, fix in fixes:
                if row[index] is not None:
                    row[index] = fix(row[index])
            return row

        return deserialize

    def _fixes(self) -> list[tuple[int, Fix]]:
        return [(index, _fix(type)) for index, type in enumerate(self.types) if _has_decimals(type)]


def _has_decimals(type: SqlType) -> bool:
    return any(isinstance(inner, SqlDecimal) for inner in types_within(type))


def _fix(type: SqlType) -> Fix:
    """Returns what makes decimals of their texts, wherever they are in a value of the type."""
    if isinstance(type, SqlDecimal):
        return Decimal
    if isinstance(type, SqlArray):
        item = _unless_none(_fix(type.item))
        return lambda values: [item(value) for value in values]
    if isinstance(type, SqlMap):
        inner = _unless_none(_fix(type.value))
        return lambda values: {key: inner(value) for key, value in values.items()}
    if isinstance(type, SqlStruct):
        parts = {field.name: _unless_none(_fix(field.type)) for field in type.fields if _has_decimals(field.type)}
        return lambda values: {name: parts[name](value) if name in parts else value for name, value in values.items()}
    return lambda value: value


def _unless_none(fix: Fix) -> Fix:
    return lambda value: None if value is None else fix(value)
