"""Catalogue of streams, tables, types and running queries: an immutable value; each statement returns a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from headrace.sql.errors import Position, SqlStatementError, suggestion
from headrace.sql.formats import FormatOptions
from headrace.sql.types import SqlType
from headrace.sql.types.schema import Schema

if TYPE_CHECKING:
    from headrace.sql.catalog.persistent_query import PersistentQuery


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """The column that gives records their time: BIGINT or TIMESTAMP, or STRING with the format of its text."""

    column: str
    format: str | None = None


@dataclass(frozen=True, slots=True)
class WindowDefinition:
    """Windows of a source's keys. ``kind`` is TUMBLING, HOPPING or SESSION; sessions have no size."""

    kind: str
    size: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Time to live of a table's rows after their ROWTIME, and its clock: stream_time or wall_clock."""

    duration: timedelta
    clock: str = "stream_time"


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A stream or a table and the topic it is read from."""

    kind: str
    """STREAM or TABLE."""
    name: str
    schema: Schema
    topic: str
    key_format: str
    """The name of a format; NONE if records have no key columns that are read."""
    value_format: str
    key_options: FormatOptions = field(default_factory=FormatOptions)
    value_options: FormatOptions = field(default_factory=FormatOptions)
    timestamp: TimestampColumn | None = None
    window: WindowDefinition | None = None
    is_source: bool = False
    """Whether it was made with ``CREATE SOURCE``: nothing may be written to it."""
    text: str = ""
    """The statement that made it."""
    partitions: int = 1
    """How many partitions its topic has."""
    is_derived: bool = False
    """Whether it was made with ``AS SELECT``."""
    created_by: str | None = None
    """The id of the query that it was made with; None if there was none, or if it was terminated."""
    lifetime: Lifetime | None = None
    """Of rows that are read from the topic. A query that makes a table deletes its rows itself."""

    @property
    def is_table(self) -> bool:
        return self.kind == "TABLE"

    @property
    def wrapped(self) -> bool:
        """Whether a single value column is a field of an object."""
        return self.value_options.wrapped


@dataclass(frozen=True)
class Catalog:
    """The sources, types and queries at one moment. Every method returns a new catalogue."""

    sources: Mapping[str, SourceDefinition] = field(default_factory=dict)
    types: Mapping[str, SqlType] = field(default_factory=dict)
    queries: Mapping[str, PersistentQuery] = field(default_factory=dict)

    def find(self, name: str) -> SourceDefinition | None:
        """Returns the source of that name, or None."""
        return self.sources.get(name)

    def source(self, name: str, *, position: Position | None = None) -> SourceDefinition:
        """Returns the source of that name; raises if there is none."""
        found = self.sources.get(name)
        if found is None:
            message = f"{name} does not exist.{other_spelling(name, self.sources)}"
            raise SqlStatementError(message, position=position)
        return found

    def with_source(self, source: SourceDefinition) -> Catalog:
        """Returns a catalogue in which the source exists, instead of one of the same name."""
        return replace(self, sources={**self.sources, source.name: source})

    def without_source(self, name: str) -> Catalog:
        """Returns a catalogue without the source."""
        return replace(self, sources={key: source for key, source in self.sources.items() if key != name})

    def with_type(self, name: str, type: SqlType) -> Catalog:
        """Returns a catalogue in which the type has a name."""
        return replace(self, types={**self.types, name: type})

    def without_type(self, name: str) -> Catalog:
        """Returns a catalogue without the name of a type."""
        return replace(self, types={key: type for key, type in self.types.items() if key != name})

    def with_query(self, query: PersistentQuery) -> Catalog:
        """Returns a catalogue in which the query runs, instead of one of the same id."""
        return replace(self, queries={**self.queries, query.id: query})

    def without_query(self, query_id: str) -> Catalog:
        """Returns a catalogue in which the query does not run."""
        return replace(self, queries={key: query for key, query in self.queries.items() if key != query_id})

    def window_of(self, topic: str) -> WindowDefinition | None:
        """Returns how the keys of a topic are windowed, by the sources that are read from it; None if they are not."""
        return next((one.window for one in self.sources.values() if one.topic == topic), None)

    def readers(self, name: str) -> tuple[str, ...]:
        """Returns the ids of the queries that read the source."""
        return tuple(query.id for query in self.queries.values() if name in query.sources)

    def writers(self, name: str) -> tuple[str, ...]:
        """Returns the ids of the queries that write to the source."""
        return tuple(query.id for query in self.queries.values() if query.sink == name)


def other_spelling(name: str, names: Iterable[str]) -> str:
    r"""Returns a hint if the name exists in another case, or one like it does, with a line break before it.

    >>> other_spelling("INPUT", ["input"])
    '\nDid you mean "input"? Hint: wrap the source name in double quotes to make it case-sensitive.'
    """
    known_names = list(names)
    for known in known_names:
        if known.upper() == name.upper() and known != name:
            if known == known.upper():
                return f"\nDid you mean {known}? Hint: try removing double quotes from the source name."
            hint = "Hint: wrap the source name in double quotes to make it case-sensitive."
            return f'\nDid you mean "{known}"? {hint}'
    return suggestion(name, known_names)
