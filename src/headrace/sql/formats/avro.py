"""AVRO: rows as Avro records, with their schemas in the registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any, ClassVar

from headrace.serdes.registry.registry import Schema, SchemaRegistry
from headrace.serdes.registry.wire import SIZE, header, schema_id_of
from headrace.sql.formats.avro_schemas import DEFAULT_NAME, check_names, row_schema, type_of, value_schema
from headrace.sql.formats.avro_unions import union_reader
from headrace.sql.formats.avro_writing import value_maker
from headrace.sql.formats.coercion import row_maker
from headrace.sql.formats.format import Format, FormatOptions, ReadRow, Row, Target, WriteRow, check_map_keys
from headrace.sql.formats.json import is_wrapped
from headrace.sql.formats.registered import check_installed, inferred_columns, registry_of, written_schema
from headrace.sql.types.schema import Column, Namespace

# SQL counts days and milliseconds itself: fastavro must not make dates and times of them.
_COUNTED = {"date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros"}
_COUNTED |= {"local-timestamp-millis", "local-timestamp-micros", "uuid"}


class AvroFormat(Format):
    """Records of Avro; maps have strings as keys."""

    name: ClassVar[str] = "AVRO"
    wraps_singles: ClassVar[bool] = True
    unwraps_singles: ClassVar[bool] = True
    infers_schemas: ClassVar[bool] = True
    properties: ClassVar[tuple[str, ...]] = ("fullSchemaName", "schemaId")

    def check(self, columns: tuple[Column, ...], options: FormatOptions | None = None) -> None:
        check_installed(self, "fastavro")
        check_map_keys(columns, "Avro only supports MAPs with STRING keys")
        check_names(columns)

    def reader(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> ReadRow:
        import fastavro

        registry, make_row = registry_of(self, options), row_maker(columns, wrapped=is_wrapped(columns, options))

        def read_row(data: bytes) -> list[Any] | None:
            schema, restore = _parse_schema(registry, schema_id_of(data))
            value = fastavro.schemaless_reader(BytesIO(data[SIZE:]), schema, None)
            return make_row(value if restore is None else restore(value))

        return read_row

    def writer(self, columns: tuple[Column, ...], options: FormatOptions, target: Target) -> WriteRow:
        import fastavro

        id, schema = written_schema(self, columns, options, target)
        parsed, start = _parsed_text(schema.text), header(id)
        make = _row_maker(columns, json.loads(schema.text), wrapped=is_wrapped(columns, options))

        def write_row(row: Row) -> bytes | None:
            value = make(row)
            if value is None:
                return None
            out = BytesIO()
            out.write(start)
            fastavro.schemaless_writer(out, parsed, value)
            return out.getvalue()

        return write_row

    def infer(self, schema: Schema, options: FormatOptions, namespace: Namespace) -> tuple[Column, ...]:
        return inferred_columns(self, schema, options, namespace, type_of)

    def schema_of(self, columns: tuple[Column, ...], options: FormatOptions, namespace: Namespace) -> Schema | None:
        name = options.schema_full_name or DEFAULT_NAME
        if namespace is Namespace.KEY:
            options = self.key_options(columns, options)
        if is_wrapped(columns, options):
            return Schema(json.dumps(row_schema(columns, name)))
        return Schema(json.dumps(value_schema(columns[0].type, name)))


def _row_maker(columns: tuple[Column, ...], schema: Any, *, wrapped: bool) -> Callable[[Row], Any]:
    if not wrapped:
        make = value_maker(columns[0].type, schema)
        return lambda row: None if row[0] is None else make(row[0])
    return value_maker(columns, schema)


@lru_cache(maxsize=1024)
def _parse_schema(registry: SchemaRegistry, id: int) -> tuple[Any, Callable[[Any], Any] | None]:
    text = registry.schema(id).text
    return _parsed_text(text), union_reader(json.loads(text))


@lru_cache(maxsize=1024)
def _parsed_text(text: str) -> Any:
    import fastavro

    return fastavro.parse_schema(_without_times(json.loads(text)))


def _without_times(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_times(branch) for branch in schema]
    if isinstance(schema, dict):
        return {
            key: _without_times(value) if key in ("type", "items", "values", "fields") else value
            for key, value in schema.items()
            if key != "logicalType" or value not in _COUNTED
        }
    return schema
