"""The records of a case as bytes, in the format that the source of a topic declares."""

from __future__ import annotations

import base64
import struct
from decimal import Context, Decimal
from typing import Any

from headrace.serdes.registry.wire import schema_id_of
from headrace.sql.catalog import SourceDefinition
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.types import SqlArray, SqlBaseType, SqlMap, SqlStruct, SqlType
from headrace.sql.types.schema import Column, Namespace
from qtt_cases.json_text import json_bytes, read_json

# Wide enough for every number of the cases.
_WIDE = Context(prec=200)


class Wire:
    """How the keys and values of a topic are written and read."""

    def __init__(self, source: SourceDefinition) -> None:
        self.source = source

    def key_bytes(self, record: dict[str, Any]) -> bytes | None:
        node = record.get("key")
        if node is None:
            return None
        data = self._bytes(node, self.source.schema.key, self.source.key_format, self.source.key_options, is_key=True)
        window = record.get("window")
        if window is None or data is None:
            return data
        if window["type"].lower() == "session":
            return data + struct.pack(">qq", window["end"], window["start"])
        return data + struct.pack(">q", window["start"])

    def value_bytes(self, record: dict[str, Any]) -> bytes | None:
        node = record.get("value")
        if node is None:
            return None
        source = self.source
        return self._bytes(node, source.schema.value, source.value_format, source.value_options, is_key=False)

    def _bytes(
        self, node: Any, columns: tuple[Column, ...], format: str, options: FormatOptions, *, is_key: bool
    ) -> bytes | None:
        if format == "JSON":
            return json_bytes(node)
        if format == "DELIMITED":
            return node.encode() if isinstance(node, str) else str(node).encode()
        if format == "NONE" or (format == "KAFKA" and not columns):
            return None if format == "NONE" else str(node).encode()
        if format == "KAFKA":
            return kafka_bytes(node, columns[0].type)
        row = row_of(node, columns, wrapped=_wrapped(columns, format, options, is_key=is_key))
        made = format_named(format)
        if is_key:
            return made.key_serde(columns, options).serializer(self.source.topic, is_key=True)(tuple(row))
        return made.serde(columns, options).serializer(self.source.topic, is_key=False)(row)

    def split_key(self, key: bytes | None) -> tuple[bytes | None, dict[str, Any] | None]:
        """Returns the key without its window, and the window as cases write it."""
        window = self.source.window
        if key is None or window is None:
            return key, None
        if window.kind == "SESSION":
            end, start = struct.unpack(">qq", key[-16:])
            return key[:-16], {"start": start, "end": end, "type": "session"}
        (start,) = struct.unpack(">q", key[-8:])
        size = int(window.size.total_seconds() * 1000) if window.size is not None else 0
        return key[:-8], {"start": start, "end": start + size, "type": "time"}

    def read_key(self, data: bytes | None) -> Any:
        return self._read(data, self.source.schema.key, self.source.key_format, self.source.key_options, is_key=True)

    def read_value(self, data: bytes | None) -> Any:
        source = self.source
        return self._read(data, source.schema.value, source.value_format, source.value_options, is_key=False)

    def _read(
        self, data: bytes | None, columns: tuple[Column, ...], format: str, options: FormatOptions, *, is_key: bool
    ) -> Any:
        if data is None:
            return None
        if format == "JSON":
            return read_json(data)
        if format == "DELIMITED":
            return data.decode()
        if format in ("NONE", "KAFKA") and not columns:
            return data
        if format == "KAFKA":
            return read_kafka(data, columns[0].type)
        made = format_named(format)
        if options.schema_id is not None and options.registry is not None:
            # Written with a schema that may have more fields than the source has columns.
            namespace = Namespace.KEY if is_key else Namespace.VALUE
            columns = made.infer(options.registry.schema(schema_id_of(data)), options, namespace)
        serde = made.key_serde(columns, options) if is_key else made.serde(columns, options)
        row = serde.deserializer(self.source.topic, is_key=is_key)(data)
        if row is None:
            return None
        if not _wrapped(columns, format, options, is_key=is_key) and len(columns) == 1:
            return row[0]
        return dict(zip((column.name for column in columns), row, strict=True))


def _wrapped(columns: tuple[Column, ...], format: str, options: FormatOptions, *, is_key: bool) -> bool:
    if len(columns) != 1:
        return True
    made = format_named(format)
    return made.key_options(columns, options).wrapped if is_key else options.wrapped


def kafka_bytes(node: Any, type: SqlType) -> bytes:
    match type.base:
        case SqlBaseType.INTEGER:
            return struct.pack(">i", int(node)) if not isinstance(node, str) else node.encode()
        case SqlBaseType.BIGINT:
            return struct.pack(">q", int(node)) if not isinstance(node, str) else node.encode()
        case SqlBaseType.DOUBLE:
            return struct.pack(">d", float(node))
        case SqlBaseType.BYTES:
            return base64.b64decode(node)
        case _:
            return str(node).encode()


def read_kafka(data: bytes, type: SqlType) -> Any:
    match type.base:
        case SqlBaseType.INTEGER:
            return struct.unpack(">i", data)[0]
        case SqlBaseType.BIGINT:
            return struct.unpack(">q", data)[0]
        case SqlBaseType.DOUBLE:
            return struct.unpack(">d", data)[0]
        case SqlBaseType.BYTES:
            return base64.b64encode(data).decode()
        case _:
            return data.decode()


def row_of(node: Any, columns: tuple[Column, ...], *, wrapped: bool) -> list[Any]:
    """Returns a node as the values of columns; a field is looked up exactly, then in upper case."""
    if len(columns) == 1 and not wrapped:
        return [value_of(node, columns[0].type)]
    if not isinstance(node, dict):
        message = f"{node!r} is no object with the columns {[column.name for column in columns]}"
        raise ValueError(message)
    return [value_of(field(node, column.name), column.type) for column in columns]


def field(node: dict[str, Any], name: str) -> Any:
    if name in node:
        return node[name]
    return next((value for key, value in node.items() if key.upper() == name.upper()), None)


def value_of(node: Any, type: SqlType) -> Any:
    """Returns a node of a case as the value of a column."""
    if node is None:
        return None
    match type:
        case SqlArray():
            return [value_of(item, type.item) for item in node]
        case SqlMap():
            return {value_of(key, type.key): value_of(item, type.value) for key, item in node.items()}
        case SqlStruct():
            return {one.name: value_of(field(node, one.name), one.type) for one in type.fields}
    match type.base:
        case SqlBaseType.DECIMAL:
            scale = type.scale  # type: ignore[attr-defined]  # the base says that it is a decimal
            return Decimal(str(node)).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
        case SqlBaseType.DOUBLE:
            return float(node)
        case SqlBaseType.BYTES:
            return base64.b64decode(node)
        case SqlBaseType.STRING:
            return node if isinstance(node, str) else _text(node)
        case SqlBaseType.BOOLEAN:
            return node
        case _:
            return int(node)


def _text(node: Any) -> str:
    return json_bytes(node).decode()
