"""The plan of a query: frozen values from the sources to the sink, of which the topology is built.

Between two steps a row is a list of column values, described by the step's layout, and the key a tuple of values, or
that in a window. A row holds copies of the key's columns where a later expression needs them, so that expressions look
at rows only. A null row of a stream stays None; in a table None deletes the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.sql.catalog import Lifetime, SourceDefinition
from headrace.sql.expressions import RowFunction, RowPredicate, TypedExpression
from headrace.sql.formats import FormatOptions
from headrace.sql.functions.aggregates.counting import Count
from headrace.sql.functions.definitions import Aggregate
from headrace.sql.planning.layout import Layout
from headrace.sql.types import SqlType
from headrace.sql.types.schema import Column, Schema

SCHEMAS_IN_KEYS = frozenset({"AVRO", "PROTOBUF", "JSON_SR"})
"""Formats whose bytes name a schema: equal keys of two topics have different bytes."""


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """The windows that keys have."""

    kind: str
    """TUMBLING, HOPPING or SESSION."""
    size_ms: int | None
    """None for sessions."""


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """Format of keys."""

    name: str
    options: FormatOptions
    window: KeyWindow | None = None

    @property
    def names_schemas(self) -> bool:
        """Whether equal keys of two topics have different bytes."""
        return self.name in SCHEMAS_IN_KEYS

    @property
    def internal(self) -> KeyFormat:
        """The same for stores and repartition topics: what the registry says about a topic does not concern them."""
        return replace(self, options=replace(self.options, schema_id=None, schema_full_name=None))

    @property
    def without_window(self) -> KeyFormat:
        """The same for keys that have no window."""
        return replace(self, window=None)

    def same_bytes(self, other: KeyFormat) -> bool:
        """Whether equal keys have equal bytes in both, so that records with equal keys can meet."""
        if self.names_schemas or other.names_schemas:
            return False
        return (self.name, self.options.delimiter, self.window) == (other.name, other.options.delimiter, other.window)


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """Format of values."""

    name: str
    options: FormatOptions


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The column that gives a record its time."""

    name: str
    function: RowFunction
    """Gives the time in milliseconds."""
    of_key: bool
    """Whether the function takes the key instead of the row."""
    strict: bool
    """Whether a row without a usable time stops the query instead of being left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Base of all steps: the rows that a step makes."""

    layout: Layout
    key: tuple[Column, ...]
    key_format: KeyFormat
    is_table: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Step):
    """Reads a topic. The row has the value's columns, then ``extras``: key columns, headers, pseudo columns."""

    source: str
    """The alias of the source in the query."""
    definition: SourceDefinition
    extras: tuple[Column, ...]
    """Columns behind those of the value, by the names that the source gives them."""
    time: TimeColumn | None
    keep_rows: bool
    """Whether a table's rows are kept, so that an old row is known when it changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Step):
    """Keeps rows. From a table, rows that pass no more are deleted."""

    parent: Step
    predicate: RowPredicate
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Step):
    """Makes a new row of each row."""

    parent: Step
    function: RowFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire(Step):
    """Keeps the rows of a table, and deletes them when they have lived long enough."""

    parent: Step
    lifetime: Lifetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRepeated(Step):
    """Drops rows of a stream that repeat one with the same key and the same values, soon before or after it."""

    parent: Step
    by: RowFunction
    types: tuple[SqlType, ...]
    """Of the values that are compared."""
    within: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectKey(Step):
    """Gives records another key: of a stream by expressions, of a table by writing the same key in another format."""

    parent: Step
    function: RowFunction | None
    """Makes the key; None keeps it, or without key columns removes it."""
    of_key: bool = False
    """Whether the function takes the old key instead of the row."""
    for_null: RowFunction | None = None
    """Makes the key of a null row from the old key; None: it has none."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatMap(Step):
    """Makes any number of rows of each: its columns, then those of the table functions, side by side."""

    parent: Step
    function: RowFunction
    """Gives a list of values for each table function."""


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """The windows of an aggregation."""

    kind: str
    size: timedelta
    advance: timedelta | None
    grace: timedelta
    retention: timedelta | None

    @property
    def key_window(self) -> KeyWindow:
        """What keys have after the aggregation."""
        size_ms = None if self.kind == "SESSION" else self.size // timedelta(milliseconds=1)
        return KeyWindow(self.kind, size_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedAggregate(Step):
    """Aggregates rows by key. The row has the results, then the columns of the key, then the window's bounds."""

    parent: Step
    grouping: RowFunction | None
    """Makes the new key; None: rows are grouped by the key they have."""
    arguments: RowFunction
    """Makes the arguments of all aggregates, one behind the other."""
    plain_arguments: tuple[TypedExpression, ...] | None
    """The same arguments where none of them can fail: an aggregate may then take them from the row itself."""
    argument_columns: tuple[Column, ...]
    aggregates: tuple[Aggregate, ...]
    widths: tuple[int, ...]
    """How many arguments each aggregate has."""
    window: GroupWindow | None
    final: bool
    """Whether each window gives one result, when it has closed."""
    with_bounds: bool = False
    """Whether a later step needs the window's bounds."""
    with_key: bool = False
    """Whether a later step needs the key's columns."""
    lifetime: Lifetime | None = None
    """How long a group lives after its last row; then it begins anew."""

    @property
    def only_counts(self) -> bool:
        """Whether rows are counted, and nothing else is done with them."""
        return self.widths == (0,) and isinstance(self.aggregates[0], Count)


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """Time span between two rows that join. Without a grace period unmatched rows do not wait."""

    before: timedelta
    after: timedelta
    grace: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRows(Step):
    """Joins two steps with equal keys. The row has the left row's columns, then the right row's."""

    left: Step
    right: Step
    kind: str
    """INNER, LEFT, RIGHT or OUTER."""
    window: JoinWindow | None
    """For two streams."""
    name: str
    key_column: str | None
    """Column behind the rows that holds the key, where it is none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinForeignKey(Step):
    """Joins two tables by an expression over the left row that gives the right key."""

    left: Step
    right: Step
    kind: str
    """INNER or LEFT."""
    foreign_key: RowFunction
    name: str


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query from its sources to its sink."""

    root: Step
    """Its layout is the sink's value."""
    sink: SourceDefinition
    """Name, kind, columns (keys first), topic, formats, windows and timestamp column of the result."""
    time: TimeColumn | None
    sources: tuple[SourceDefinition, ...]
    """The streams and tables that are read."""

    @property
    def schema(self) -> Schema:
        """Columns of the result, keys first."""
        return self.sink.schema
