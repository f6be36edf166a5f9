"""The steps that read sources: which columns their rows have, and where records take their time from."""

from __future__ import annotations

from datetime import timedelta

from headrace.sql.catalog import TimestampColumn
from headrace.sql.planning.layout import Layout
from headrace.sql.planning.plan import KeyFormat, KeyWindow, Read, TimeColumn
from headrace.sql.planning.sources import FromSource, Sources
from headrace.sql.planning.typing import Typing
from headrace.sql.syntax.nodes import Call, ColumnReference, Expression, Literal
from headrace.sql.types.schema import Column, Schema

STRICT_TIME = "ksql.timestamp.throw.on.invalid"


def read(
    source: FromSource, sources: Sources, typing: Typing, needed: set[ColumnReference], *, keep_rows: bool
) -> Read:
    """Returns the step that reads a source; its rows have the value's columns, then others that are needed."""
    definition = source.definition
    values = definition.schema.value
    taken = {column.name for column in values}
    extras = tuple(
        column
        for name, column in source.columns.items()
        if name not in taken and ColumnReference(name, source.alias) in needed
    )
    window = None
    if definition.window is not None:
        size = definition.window.size
        window = KeyWindow(definition.window.kind, None if size is None else size // timedelta(milliseconds=1))
    time = definition.timestamp
    return Read(
        layout=Layout(tuple(_internal(source, column, sources) for column in (*values, *extras))),
        key=tuple(_internal(source, column, sources) for column in definition.schema.key),
        key_format=KeyFormat(definition.key_format, definition.key_options, window),
        is_table=source.is_table,
        source=source.alias,
        definition=definition,
        extras=extras,
        time=None if time is None else time_column(time, definition.schema, typing),
        keep_rows=keep_rows,
    )


def time_column(time: TimestampColumn, schema: Schema, typing: Typing) -> TimeColumn:
    """Returns what takes the time of a record from one of its columns."""
    column: Expression = ColumnReference(time.column)
    of_key = any(one.name == time.column for one in schema.key)
    if time.format is not None:
        column = Call("STRINGTOTIMESTAMP", (column, Literal(time.format)))
    function, _ = typing.row_function([column], Layout(schema.key if of_key else schema.value))
    return TimeColumn(time.column, function, of_key, typing.is_on(STRICT_TIME))


def _internal(source: FromSource, column: Column, sources: Sources) -> Column:
    name = sources.internal_name(ColumnReference(column.name, source.alias))
    return Column(name, column.type, column.namespace)
