"""PROTOBUF and PROTOBUF_NOSR: rows as messages, with and without a schema in the registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, ClassVar

from headrace.serdes.registry.registry import Schema, SchemaRegistry
from headrace.serdes.registry.wire import SIZE, header, schema_id_of
from headrace.serdes.zigzag import read_zigzag, zigzag
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.coercion import row_maker
from headrace.sql.formats.format import (
    Format,
    FormatOptions,
    ReadRow,
    Row,
    Target,
    WriteRow,
    check_map_keys,
    types_within,
)
from headrace.sql.formats.proto_schemas import schema_text
from headrace.sql.formats.registered import check_installed, registry_of, schema_errors, written_schema
from headrace.sql.types import SqlArray, SqlMap, SqlStruct
from headrace.sql.types.schema import Column, Namespace

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_MAP_KEYS = "PROTOBUF format only supports MAP types with STRING keys"


class ProtobufFormat(Format):
    """Messages of Protobuf behind the number of their schema; a single column is always wrapped."""

    name: ClassVar[str] = "PROTOBUF"
    wraps_singles: ClassVar[bool] = True
    infers_schemas: ClassVar[bool] = True
    properties: ClassVar[tuple[str, ...]] = ("fullSchemaName", "schemaId", "nullableRepresentation")

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        _check(self, columns)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        registry, make_row = registry_of(self, options), row_maker(columns, wrapped=True)

        def read_row(data: bytes) -> list[Any] | None:
            indexes, start = _read_indexes(data)
            return make_row(_parser(registry, schema_id_of(data), indexes)(data[start:]))

        return read_row

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        from headrace.sql.formats.proto_columns import compiled

        id, schema = written_schema(self, columns, options, target)
        made = compiled(schema, registry_of(self, options))
        message = made.message(options.schema_full_name)
        start = header(id) + _written_indexes(message)
        write = _message_writer(columns, message)
        return lambda row: start + write(row)

    def infer(self, schema: Schema, options: FormatOptions, namespace: Namespace) -> tuple[Column, ...]:
        from headrace.sql.formats.proto_columns import columns_of, compiled

        with schema_errors(self):
            made = compiled(schema, options.registry)
            return columns_of(made, options.schema_full_name, namespace, keep_case=options.schema_id is not None)

    def names_in(self, schema: Schema, options: FormatOptions) -> tuple[str, ...]:
        from headrace.sql.formats.proto_columns import compiled

        made = compiled(schema, options.registry)
        return (*made.messages, *made.enumerations)

    def schema_of(self, columns: tuple[Column, ...], options: FormatOptions, namespace: Namespace) -> Schema | None:
        text = schema_text(columns, options.schema_full_name, options.nullable_representation)
        return Schema(text, "PROTOBUF")


class ProtobufNoRegistryFormat(Format):
    """Messages of Protobuf whose schema follows from the columns; a single column is always wrapped."""

    name: ClassVar[str] = "PROTOBUF_NOSR"
    wraps_singles: ClassVar[bool] = True
    properties: ClassVar[tuple[str, ...]] = ("nullableRepresentation",)

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        _check(self, columns)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        parse, make_row = _message_parser(_own_message(columns, options)), row_maker(columns, wrapped=True)
        return lambda data: make_row(parse(data))

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        return _message_writer(columns, _own_message(columns, options))


def _check(format: Format, columns: tuple[Column, ...]) -> None:
    check_installed(format, "google.protobuf", "google.type")
    check_map_keys(columns, _MAP_KEYS)
    for column in columns:
        for type in types_within(column.type):
            inner = type.item if isinstance(type, SqlArray) else type.value if isinstance(type, SqlMap) else None
            if isinstance(inner, SqlArray | SqlMap):
                outer = "an array" if isinstance(type, SqlArray) else "a map"
                message = f"The 'PROTOBUF' format does not support type '{inner.base.value}' inside of {outer}"
                raise SqlStatementError(message)
            if isinstance(type, SqlStruct):
                _check_names(field.name for field in type.fields)
    _check_names(column.name for column in columns)
    try:
        _own_message(columns, FormatOptions())
    except (ValueError, TypeError) as error:
        message = f"The 'PROTOBUF' format does not support these columns together: {error}"
        raise SqlStatementError(message) from error


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            message = (
                f"The 'PROTOBUF' format does not support the name '{name}': names are letters, digits and underscores, "
                "and do not begin with a digit; give it another name with AS"
            )
            raise SqlStatementError(message)


# Any: descriptors and messages have types of the library, which is imported only by those who use it.
def _own_message(columns: tuple[Column, ...], options: FormatOptions) -> Any:
    from headrace.sql.formats.proto_columns import compiled

    text = schema_text(columns, None, options.nullable_representation)
    return compiled(Schema(text, "PROTOBUF"), None).message(None)


def _message_writer(columns: tuple[Column, ...], message: Any) -> Callable[[Row], bytes]:
    from google.protobuf.message_factory import GetMessageClass

    from headrace.sql.formats.proto_messages import row_filler

    make, fill = GetMessageClass(message), row_filler(columns, message)

    def write(row: Row) -> bytes:
        made = make()
        fill(made, row)
        # In one order: as a key, equal rows must have equal bytes.
        data: bytes = made.SerializeToString(deterministic=True)
        return data

    return write


def _message_parser(message: Any) -> Callable[[bytes], Any]:
    from google.protobuf.message_factory import GetMessageClass

    from headrace.sql.formats.proto_messages import plain_reader

    make, read = GetMessageClass(message), plain_reader(message)
    return lambda data: read(make.FromString(data))


@lru_cache(maxsize=1024)
def _parser(registry: SchemaRegistry, id: int, indexes: tuple[int, ...]) -> Callable[[bytes], Any]:
    from headrace.sql.formats.proto_columns import compiled

    made = compiled(registry.schema(id), registry)
    message: Any = made.message(made.messages[indexes[0]])
    for index in indexes[1:]:
        message = message.nested_types[index]
    return _message_parser(message)


def _read_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Returns the way to the message among the messages of its file, and where it begins."""
    count, start = read_zigzag(data, SIZE)
    if count == 0:
        return (0,), start
    indexes = []
    for _ in range(count):
        index, start = read_zigzag(data, start)
        indexes.append(index)
    return tuple(indexes), start


def _written_indexes(message: Any) -> bytes:
    indexes: list[int] = []
    while message is not None:
        outer = message.containing_type
        beside = message.file.message_types_by_name.values() if outer is None else outer.nested_types
        indexes.insert(0, [other.full_name for other in beside].index(message.full_name))
        message = outer
    if indexes == [0]:
        return b"\0"
    return b"".join(map(zigzag, (len(indexes), *indexes)))
