"""Statements as values: what the parser makes and the engine carries out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from headrace.sql.errors import Position
from headrace.sql.syntax.nodes import Expression, Literal, Node, TypeName

Properties = tuple[tuple[str, Literal], ...]
"""``WITH (NAME = literal, …)``, names in upper case, in the order written."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    """A column of ``CREATE STREAM|TABLE``. ``role`` is VALUE, KEY, PRIMARY KEY, HEADERS or HEADER."""

    name: str
    type: TypeName
    role: str = "VALUE"
    header_key: str | None = None


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """``expression [AS alias]``."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SelectAll(Node):
    """``*`` or ``source.*``."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class SelectFields(Node):
    """``struct->*``."""

    struct: Expression


@dataclass(frozen=True, slots=True)
class Source(Node):
    """``name [AS alias]`` behind FROM or JOIN. Without an alias, ``alias`` is the name."""

    name: str
    alias: str
    written: str = field(default="", compare=False, repr=False)
    """Name and alias as they were written."""


@dataclass(frozen=True, slots=True)
class Within(Node):
    """``WITHIN before`` or ``WITHIN (before, after)`` with an optional grace period."""

    before: timedelta
    after: timedelta
    grace: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    """A further source of a FROM clause. ``kind`` is INNER, LEFT, RIGHT or OUTER."""

    kind: str
    source: Source
    condition: Expression
    within: Within | None = None
    written: str = field(default="", compare=False, repr=False)
    """The clause as it was written, up to ON."""
    written_on: str = field(default="", compare=False, repr=False)
    """The clause as it was written, from ON on."""


@dataclass(frozen=True, slots=True)
class Window(Node):
    """``WINDOW TUMBLING|HOPPING|SESSION (…)``. ``size`` is the gap of a session."""

    kind: str
    size: timedelta
    advance: timedelta | None = None
    retention: timedelta | None = None
    grace: timedelta | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Distinct(Node):
    """``DISTINCT ON (…) WITHIN n unit``, which is beyond ksqlDB."""

    expressions: tuple[Expression, ...]
    within: timedelta


@dataclass(frozen=True, slots=True)
class WrittenClauses:
    """The clauses of a query as they were written, with their first words; empty where there is none."""

    select: str = ""
    distinct: str = ""
    window: str = ""
    where: str = ""
    group_by: str = ""
    partition_by: str = ""
    having: str = ""


@dataclass(frozen=True, slots=True)
class Query(Node):
    """``SELECT … FROM …``. ``emit`` is CHANGES, FINAL or None."""

    select: tuple[SelectItem | SelectAll | SelectFields, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    emit: str | None = None
    limit: int | None = None
    order_by: tuple[tuple[Expression, bool], ...] = ()
    """Beyond ksqlDB, for pull queries: expressions, each with whether it is descending."""
    offset: int | None = None
    """Beyond ksqlDB, for pull queries."""
    distinct: Distinct | None = None
    written: WrittenClauses = field(default=WrittenClauses(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Node):
    """Base of all statements. ``text`` is the statement as written, without its semicolon."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """``CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name (…) WITH (…)``. ``kind``: STREAM or TABLE."""

    kind: str
    name: str
    elements: tuple[ColumnDefinition, ...]
    properties: Properties
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class CreateAsSelect(Statement):
    """``CREATE [OR REPLACE] STREAM|TABLE [IF NOT EXISTS] name [WITH (…)] AS SELECT …``."""

    kind: str
    name: str
    properties: Properties
    query: Query
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertInto(Statement):
    """``INSERT INTO name [WITH (QUERY_ID = …)] SELECT …``."""

    target: str
    query: Query
    properties: Properties = ()
    target_position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    """``INSERT INTO name [(columns)] VALUES (…)``."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class SelectQuery(Statement):
    """A query for its own sake: pull without EMIT, push with it."""

    query: Query


@dataclass(frozen=True, slots=True)
class DropSource(Statement):
    """``DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]``."""

    kind: str
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    """``ALTER STREAM|TABLE name ADD [COLUMN] column type, …``."""

    kind: str
    name: str
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    """``CREATE TYPE [IF NOT EXISTS] name AS type``."""

    name: str
    type: TypeName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropType(Statement):
    """``DROP TYPE [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateFunction(Statement):
    """``CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name AS 'module:name'``: a Python function as an SQL function."""

    name: str
    target: str
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFunction(Statement):
    """``DROP FUNCTION [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetProperty(Statement):
    """``SET 'name' = 'value'``; ``ALTER SYSTEM 'name' = 'value'`` has ``system`` set."""

    name: str
    value: str
    system: bool = False


@dataclass(frozen=True, slots=True)
class UnsetProperty(Statement):
    """``UNSET 'name'``."""

    name: str


@dataclass(frozen=True, slots=True)
class DefineVariable(Statement):
    """``DEFINE name = 'value'``."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UndefineVariable(Statement):
    """``UNDEFINE name``."""

    name: str


@dataclass(frozen=True, slots=True)
class ControlQuery(Statement):
    """``TERMINATE|PAUSE|RESUME id|ALL``; ``query_id`` is None for ALL."""

    action: str
    query_id: str | None


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """``EXPLAIN id`` or ``EXPLAIN statement``: one of the two is set."""

    query_id: str | None = None
    statement: Statement | None = None


@dataclass(frozen=True, slots=True)
class ShowList(Statement):
    """``SHOW|LIST what [EXTENDED]``.

    ``what`` is PROPERTIES, TOPICS, STREAMS, TABLES, FUNCTIONS, QUERIES, TYPES, VARIABLES, CONNECTORS or
    CONNECTOR PLUGINS.
    ``scope`` is ALL for ``ALL TOPICS``, SOURCE or SINK for connectors, else None.
    """

    what: str
    extended: bool = False
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """``DESCRIBE name``, ``DESCRIBE STREAMS|TABLES``, ``DESCRIBE FUNCTION|CONNECTOR name``.

    ``what`` is SOURCE, STREAMS, TABLES, FUNCTION or CONNECTOR.
    """

    what: str
    name: str | None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class PrintTopic(Statement):
    """``PRINT topic [FROM BEGINNING] [INTERVAL|SAMPLE n] [LIMIT n]``."""

    topic: str
    from_beginning: bool = False
    interval: int = 1
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CreateConnector(Statement):
    """``CREATE SOURCE|SINK CONNECTOR [IF NOT EXISTS] name WITH (…)``."""

    kind: str
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector(Statement):
    """``DROP CONNECTOR [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AssertTopic(Statement):
    """``ASSERT [NOT EXISTS] TOPIC name [WITH (…)] [TIMEOUT n unit]``."""

    topic: str
    properties: Properties = ()
    timeout: timedelta | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertSchema(Statement):
    """``ASSERT [NOT EXISTS] SCHEMA [SUBJECT s] [ID n] [TIMEOUT n unit]``."""

    subject: str | None
    schema_id: int | None
    timeout: timedelta | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertValues(Statement):
    """``ASSERT VALUES name (columns) VALUES (…)``, ``ASSERT NULL VALUES name (columns) KEY (…)``: a test of rows."""

    source: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class AssertSource(Statement):
    """``ASSERT STREAM|TABLE name (…) WITH (…)``: a test of the catalogue."""

    kind: str
    name: str
    elements: tuple[ColumnDefinition, ...]
    properties: Properties


@dataclass(frozen=True, slots=True)
class RunScript(Statement):
    """``RUN SCRIPT 'file'``."""

    path: str
