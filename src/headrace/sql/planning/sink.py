"""The sink of a query: its formats, its definition, and whether a stream that exists can take the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from headrace.sql.catalog import SourceDefinition, WindowDefinition
from headrace.sql.catalog.source_checks import check_formats
from headrace.sql.catalog.source_definitions import KEY_FORMAT_SETTING, timestamp_column
from headrace.sql.catalog.with_properties import check_format_properties, with_key_name, wrapping
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.functions.resolution import implicitly_castable
from headrace.sql.planning.plan import KeyFormat, ValueFormat
from headrace.sql.planning.sink_request import SinkRequest
from headrace.sql.syntax.nodes import Cast, Expression, TypeName
from headrace.sql.types import SqlType
from headrace.sql.types.schema import Column, Schema


def sink_key_format(
    request: SinkRequest,
    source: SourceDefinition,
    settings: Mapping[str, object],
    *,
    has_key: bool,
    takes_key_away: bool,
) -> KeyFormat:
    """Returns the key's format: that of the statement, else that of the leftmost source, else the default.

    ``takes_key_away`` says that the query gives rows a key of no columns: PARTITION BY NULL.
    """
    given = request.properties
    if request.existing is not None:
        return KeyFormat(request.existing.key_format, request.existing.key_options)
    if takes_key_away:
        explicit = given.key_format
        if explicit is not None and format_named(explicit).name != "NONE":
            message = "Key format specified for stream without key columns."
            raise SqlStatementError(message)
        return KeyFormat("NONE", FormatOptions())
    inherited = source.key_format
    if inherited == "NONE" and has_key:
        inherited = str(settings.get(KEY_FORMAT_SETTING) or "KAFKA")
    name = format_named(given.key_format or inherited).name
    options = given.key_options(_inherited(source.key_options, name, source.key_format))
    return KeyFormat(name, with_key_name(options, name, request.name))


def sink_value_format(request: SinkRequest, source: SourceDefinition, settings: Mapping[str, object]) -> ValueFormat:
    """Returns the value's format: that of the statement, else that of the leftmost source."""
    given = request.properties
    name = format_named(given.value_format or source.value_format).name
    options = given.value_options(_inherited(source.value_options, name, source.value_format))
    return ValueFormat(name, options)


def _inherited(options: FormatOptions, name: str, source: str) -> FormatOptions:
    """Returns what a sink takes over from its source, if the format is the same.

    That is how to delimit, what null is, and the name of a Protobuf message.
    """
    if name != source:
        return FormatOptions(registry=options.registry)
    return FormatOptions(
        delimiter=options.delimiter,
        schema_full_name=options.schema_full_name if name == "PROTOBUF" else None,
        nullable_representation=options.nullable_representation,
        registry=options.registry,
    )


def sink_definition(
    request: SinkRequest,
    schema: Schema,
    key_format: KeyFormat,
    value_format: ValueFormat,
    settings: Mapping[str, object],
    *,
    is_table: bool,
) -> SourceDefinition:
    """Returns the stream or table that a query makes."""
    given = request.properties
    check_format_properties(given, key_format.name, value_format.name)
    wrapped = wrapping(given, value_format.name, len(schema.value), settings)
    options = replace(value_format.options, wrapped=wrapped)
    check_formats(schema, key_format.name, value_format.name, key_format.options, options)
    window = key_format.window
    size = None if window is None or window.size_ms is None else timedelta(milliseconds=window.size_ms)
    return SourceDefinition(
        kind="TABLE" if is_table else "STREAM",
        name=request.name,
        schema=schema,
        topic=request.topic,
        key_format=key_format.name,
        value_format=value_format.name,
        key_options=key_format.options,
        value_options=options,
        timestamp=timestamp_column(given, schema),
        window=None if window is None else WindowDefinition(window.kind, size),
    )


def check_insert(existing: SourceDefinition, schema: Schema, *, is_table: bool) -> None:
    """Raises if the rows of a query do not fit the stream they are inserted into."""
    if is_table or existing.is_table:
        kind = "TABLE" if is_table else "STREAM"
        message = (
            f"Incompatible data sink and query result. Data sink ({existing.name}) type is K{existing.kind} "
            f"but select query result is K{kind}."
        )
        raise SqlStatementError(message)
    target = Schema((*existing.schema.key, *existing.schema.value))
    pairs = list(zip(schema.columns, target.columns, strict=False))
    fits = len(schema.columns) == len(target.columns) and all(_fits(made, wanted) for made, wanted in pairs)
    if not fits:
        message = f"Incompatible schema between results and sink.\nResult schema is {schema}\nSink schema is {target}"
        raise SqlStatementError(message)


def _fits(made: Column, wanted: Column) -> bool:
    same_place = made.name == wanted.name and made.namespace is wanted.namespace
    return same_place and (made.type == wanted.type or implicitly_castable(made.type, wanted.type))


def casted(expressions: Sequence[Expression], types: Sequence[SqlType], columns: Sequence[Column]) -> list[Expression]:
    """Returns the expressions with a cast where a column has another type than its expression."""
    return [
        one if type == column.type else Cast(one, TypeName(str(column.type), column.type), position=one.position)
        for one, type, column in zip(expressions, types, columns, strict=True)
    ]
