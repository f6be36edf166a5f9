"""Checks of a source's columns, whether a statement lists them or a query derives them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.formats.format import types_within
from headrace.sql.types import SqlMap
from headrace.sql.types.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Namespace, Schema

RESERVED_COLUMNS = frozenset(PSEUDO_COLUMNS) | frozenset(WINDOW_BOUNDS)
"""Names that no column of a source may have."""


def check_key_columns(columns: Sequence[Column]) -> None:
    """Raises if a key column is a map or has one inside: equal maps may have different bytes."""
    for column in columns:
        if any(isinstance(inner, SqlMap) for inner in types_within(column.type)):
            message = (
                "Map keys, including types that contain maps, are not supported as they may lead to unexpected "
                f"behavior due to inconsistent serialization. Key column name: `{column.name}`. "
                f"Column type: {column.type}. See https://github.com/confluentinc/ksql/issues/6621 for more."
            )
            raise SqlStatementError(message)


def check_formats(
    schema: Schema,
    key_format: str,
    value_format: str,
    key_options: FormatOptions | None = None,
    value_options: FormatOptions | None = None,
) -> None:
    """Raises if a format cannot hold the columns that it has to."""
    check_key_columns(schema.key)
    if schema.key:
        _check_one("Key", schema.key, key_format, key_options or FormatOptions())
    _check_one("Value", schema.value, value_format, value_options or FormatOptions())


def _check_one(side: str, columns: tuple[Column, ...], name: str, options: FormatOptions) -> None:
    format = format_named(name)
    try:
        format.check(columns, options)
    except SqlError as error:
        shown = ", ".join(_column_text(column) for column in columns)
        unwrapped = len(columns) == 1 and (
            format.unwraps_singles and format.wraps_singles if side == "Key" else not options.wrapped
        )
        features = "UNWRAP_SINGLES" if unwrapped else ""
        message = (
            f"{side} format does not support schema.\nformat: {format.name}\n"
            f"schema: Persistence{{columns=[{shown}], features=[{features}]}}\nreason: {error.message}"
        )
        raise SqlStatementError(message) from error


def _column_text(column: Column) -> str:
    return f"`{column.name}` {column.type}{' KEY' if column.namespace is Namespace.KEY else ''}"
