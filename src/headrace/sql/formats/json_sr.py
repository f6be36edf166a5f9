"""JSON_SR: JSON with its schema in the registry."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from headrace.serdes.registry.registry import Schema
from headrace.serdes.registry.wire import SIZE, header, schema_id_of
from headrace.sql.formats.format import Format, FormatOptions, ReadRow, Row, Target, WriteRow, check_map_keys
from headrace.sql.formats.json import is_wrapped
from headrace.sql.formats.json_reading import row_reader
from headrace.sql.formats.json_schemas import properties_of, row_schema, type_of, value_schema
from headrace.sql.formats.json_writing import row_writer
from headrace.sql.formats.registered import inferred_columns, registry_of, written_schema
from headrace.sql.types import STRING
from headrace.sql.types.schema import Column, Namespace


class JsonSchemaFormat(Format):
    """Objects of JSON behind the number of their schema."""

    name: ClassVar[str] = "JSON_SR"
    wraps_singles: ClassVar[bool] = True
    unwraps_singles: ClassVar[bool] = True
    infers_schemas: ClassVar[bool] = True
    properties: ClassVar[tuple[str, ...]] = ("fullSchemaName", "schemaId")

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        check_map_keys(columns, "JSON only supports MAP types with STRING keys")

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        registry_of(self, options)
        read = row_reader(columns, wrapped=is_wrapped(columns, options))

        def read_row(data: bytes) -> list[Any] | None:
            schema_id_of(data)
            return read(data[SIZE:])

        return read_row

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        id, schema = written_schema(self, columns, options, target)
        start, wrapped = header(id), is_wrapped(columns, options)
        missing = _missing(columns, schema) if wrapped and options.schema_id is not None else ()
        write = row_writer(columns + missing, wrapped=wrapped)
        nulls = [None] * len(missing)

        def write_row(row: Row) -> bytes | None:
            data = write([*row, *nulls] if nulls else row)
            return None if data is None else start + data

        return write_row

    def infer(self, schema: Schema, options: FormatOptions, namespace: Namespace) -> tuple[Column, ...]:
        return inferred_columns(self, schema, options, namespace, type_of)

    def schema_of(self, columns: tuple[Column, ...], options: FormatOptions, namespace: Namespace) -> Schema | None:
        if namespace is Namespace.KEY:
            options = self.key_options(columns, options)
        made = row_schema(columns) if is_wrapped(columns, options) else value_schema(columns[0].type)
        return Schema(json.dumps(made), "JSON")


def _missing(columns: tuple[Column, ...], schema: Schema) -> tuple[Column, ...]:
    # What the schema has beyond the columns is written as null; its type does not matter.
    known = {column.name.upper() for column in columns}
    return tuple(Column(name, STRING) for name in properties_of(json.loads(schema.text)) if name.upper() not in known)
