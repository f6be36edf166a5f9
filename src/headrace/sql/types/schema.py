"""The columns of a source: which are keys, which are values, which come from headers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from headrace.sql.types import BIGINT, INTEGER, SqlType, quoted

PSEUDO_COLUMNS: dict[str, SqlType] = {"ROWTIME": BIGINT, "ROWPARTITION": INTEGER, "ROWOFFSET": BIGINT}
"""Columns of every source that no statement declares."""
WINDOW_BOUNDS: dict[str, SqlType] = {"WINDOWSTART": BIGINT, "WINDOWEND": BIGINT}
"""Columns of every windowed source that no statement declares."""


class Namespace(Enum):
    """Part of a record in which a column lives."""

    KEY = "KEY"
    VALUE = "VALUE"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class Column:
    """A named, typed part of a row."""

    name: str
    type: SqlType
    namespace: Namespace = Namespace.VALUE
    header_key: str | None = None
    """For ``HEADER('key')`` columns: the header. None for ``HEADERS``, which holds all of them."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a source in the order of their declaration.

    >>> from headrace.sql.types import INTEGER, STRING
    >>> str(Schema((Column("K", STRING, Namespace.KEY), Column("V", INTEGER))))
    '`K` STRING KEY, `V` INTEGER'
    """

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns of the record's key."""
        return tuple(column for column in self.columns if column.namespace is Namespace.KEY)

    @property
    def value(self) -> tuple[Column, ...]:
        """The columns of the record's value."""
        return tuple(column for column in self.columns if column.namespace is Namespace.VALUE)

    @property
    def headers(self) -> tuple[Column, ...]:
        """The columns that come from the record's headers."""
        return tuple(column for column in self.columns if column.namespace is Namespace.HEADERS)

    def find(self, name: str) -> Column | None:
        """Returns the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def __str__(self) -> str:
        return ", ".join(_column_text(column) for column in self.columns)


def _column_text(column: Column) -> str:
    suffix = ""
    if column.namespace is Namespace.KEY:
        suffix = " KEY"
    elif column.namespace is Namespace.HEADERS:
        suffix = " HEADERS" if column.header_key is None else f" HEADER('{column.header_key}')"
    name = quoted(column.name)
    return f"{name if name.startswith('`') else f'`{name}`'} {column.type}{suffix}"
