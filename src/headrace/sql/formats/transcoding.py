"""Bytes of any format as JSON, and JSON as bytes: for those who show records, or write them by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from headrace.serdes.registry.registry import SchemaRegistry
from headrace.serdes.registry.wire import schema_id_of
from headrace.sql.formats.format import Format, FormatOptions, Target
from headrace.sql.formats.json import is_wrapped
from headrace.sql.formats.json_reading import parse, patient_reader
from headrace.sql.formats.json_writing import row_writer
from headrace.sql.schema import Column, Namespace


def json_of(format: Format, data: bytes, registry: SchemaRegistry, target: Target) -> bytes | None:
    """Returns what bytes say as JSON, read with the registered schema that wrote them; None if they say null."""
    return _to_json(format, registry, schema_id_of(data), target)(data)


def bytes_of(format: Format, text: bytes, registry: SchemaRegistry, id: int, target: Target) -> bytes | None:
    """Returns what JSON says as bytes, written with the registered schema of that number; None for null."""
    return _from_json(format, registry, id, target)(text)


@lru_cache(maxsize=1024)
def _to_json(format: Format, registry: SchemaRegistry, id: int, target: Target) -> Callable[[bytes], bytes | None]:
    columns, options = _described(format, registry, id, target)
    read, write = format.reader(columns, options, target), row_writer(columns, wrapped=is_wrapped(columns, options))

    def convert(data: bytes) -> bytes | None:
        row = read(data)
        return None if row is None else write(row)

    return convert


@lru_cache(maxsize=1024)
def _from_json(format: Format, registry: SchemaRegistry, id: int, target: Target) -> Callable[[bytes], bytes | None]:
    columns, options = _described(format, registry, id, target)
    read = patient_reader(columns, wrapped=is_wrapped(columns, options))
    write = format.writer(columns, options, target)

    def convert(text: bytes) -> bytes | None:
        row = read(parse(text))
        return None if row is None else write(row)

    return convert


def _described(
    format: Format, registry: SchemaRegistry, id: int, target: Target
) -> tuple[tuple[Column, ...], FormatOptions]:
    # Not wrapped if the format can: then the schema may be of any kind.
    options = FormatOptions(wrapped=not format.unwraps_singles, schema_id=id, registry=registry)
    namespace = Namespace.KEY if target.is_key else Namespace.VALUE
    return format.infer(registry.schema(id), options, namespace), options
