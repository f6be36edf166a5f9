"""Bytes that were written with a registered schema, as JSON: for those who show records."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from headrace.serdes.registry.registry import SchemaRegistry
from headrace.serdes.registry.wire import schema_id_of
from headrace.sql.formats import format_named
from headrace.sql.formats.format import FormatOptions, Target
from headrace.sql.formats.json import is_wrapped
from headrace.sql.formats.json_writing import row_writer
from headrace.sql.types.schema import Namespace

_FORMATS = {"AVRO": "AVRO", "JSON": "JSON_SR", "PROTOBUF": "PROTOBUF"}
"""By the language of the schema."""


def registered_format(data: bytes, registry: SchemaRegistry) -> str | None:
    """Returns the name of the format that bytes have by their schema; None if they name none that is registered."""
    try:
        schema = registry.find(schema_id_of(data))
    except ValueError:
        return None
    return None if schema is None else _FORMATS.get(schema.kind)


def json_of(data: bytes, registry: SchemaRegistry, target: Target) -> bytes | None:
    """Returns what bytes say as JSON, read with the schema that wrote them; None if they say null."""
    return _to_json(registry, schema_id_of(data), target)(data)


@lru_cache(maxsize=1024)
def _to_json(registry: SchemaRegistry, id: int, target: Target) -> Callable[[bytes], bytes | None]:
    schema = registry.schema(id)
    format = format_named(_FORMATS[schema.kind])
    # Not wrapped if the format can: then the schema may be of any kind.
    options = FormatOptions(wrapped=not format.unwraps_singles, schema_id=id, registry=registry)
    columns = format.infer(schema, options, Namespace.KEY if target.is_key else Namespace.VALUE)
    read, write = format.reader(columns, options, target), row_writer(columns, wrapped=is_wrapped(columns, options))

    def convert(data: bytes) -> bytes | None:
        row = read(data)
        return None if row is None else write(row)

    return convert
