"""The grammar of statements that show, control and check."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from headrace.sql.syntax.dialect import Kind
from headrace.sql.syntax.expression_grammar import read_expression
from headrace.sql.syntax.query_grammar import read_duration
from headrace.sql.syntax.source_grammar import read_elements, read_properties
from headrace.sql.syntax.statements import (
    AssertSchema,
    AssertSource,
    AssertTopic,
    AssertValues,
    ControlQuery,
    DefineVariable,
    Describe,
    Explain,
    PrintTopic,
    RunScript,
    SetProperty,
    ShowList,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from headrace.sql.syntax.token_reader import Reader

_LISTS = ("PROPERTIES", "STREAMS", "TABLES", "FUNCTIONS", "QUERIES", "TYPES", "VARIABLES", "CONNECTORS")
_EXTENDED = ("STREAMS", "TABLES", "QUERIES")


def read_show(reader: Reader) -> Statement:
    """Reads ``SHOW …`` or ``LIST …``."""
    reader.choose("SHOW", "LIST")
    if reader.accept("CONNECTOR", "PLUGINS"):
        return ShowList("CONNECTOR PLUGINS")
    if reader.at_any("SOURCE", "SINK"):
        scope = reader.advance().text
        reader.expect("CONNECTORS")
        return ShowList("CONNECTORS", scope=scope)
    if reader.at_any("ALL", "TOPICS"):
        scope_of_topics = "ALL" if reader.accept("ALL") else None
        reader.expect("TOPICS")
        return ShowList("TOPICS", reader.accept("EXTENDED"), scope_of_topics)
    what = reader.choose(*_LISTS)
    return ShowList(what, what in _EXTENDED and reader.accept("EXTENDED"))


def read_describe(reader: Reader) -> Statement:
    """Reads ``DESCRIBE …``."""
    reader.expect("DESCRIBE")
    if reader.at_any("FUNCTION", "CONNECTOR") and reader.peek().kind in (Kind.WORD, Kind.QUOTED):
        what = reader.advance().text
        return Describe(what, reader.advance().text)
    if reader.at_any("STREAMS", "TABLES"):
        return Describe(reader.advance().text, None, reader.accept("EXTENDED"))
    name = reader.source_name()
    return Describe("SOURCE", name, reader.accept("EXTENDED"))


def read_print(reader: Reader) -> Statement:
    """Reads ``PRINT topic …``."""
    reader.expect("PRINT")
    # The name of a topic is not folded.
    if reader.token.kind not in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        reader.fail()
    token = reader.advance()
    topic = token.written if token.kind is Kind.WORD else token.text
    from_beginning = reader.accept("FROM", "BEGINNING")
    interval = reader.integer() if reader.accept("INTERVAL") or reader.accept("SAMPLE") else 1
    limit = reader.integer() if reader.accept("LIMIT") else None
    return PrintTopic(topic, from_beginning, interval, limit)


def read_control(reader: Reader) -> Statement:
    """Reads ``TERMINATE|PAUSE|RESUME …``."""
    action = reader.choose("TERMINATE", "PAUSE", "RESUME")
    return ControlQuery(action, None if reader.accept("ALL") else reader.name())


def read_session(reader: Reader) -> Statement:
    """Reads ``SET``, ``UNSET``, ``DEFINE`` and ``UNDEFINE``."""
    action = reader.choose("SET", "UNSET", "DEFINE", "UNDEFINE")
    if action == "UNSET":
        return UnsetProperty(reader.string())
    if action == "UNDEFINE":
        return UndefineVariable(reader.name())
    name = reader.string() if action == "SET" else reader.name()
    reader.expect("=")
    value = reader.string()
    return SetProperty(name, value) if action == "SET" else DefineVariable(name, value)


def read_run(reader: Reader) -> Statement:
    """Reads ``RUN SCRIPT 'file'``."""
    reader.expect("RUN", "SCRIPT")
    return RunScript(reader.string())


def read_explain(reader: Reader, statement: Callable[[Reader], Statement]) -> Statement:
    """Reads ``EXPLAIN id`` or ``EXPLAIN statement``."""
    reader.expect("EXPLAIN")
    if reader.at_any("SELECT", "CREATE", "INSERT"):
        return Explain(statement=statement(reader))
    return Explain(query_id=reader.name())


def read_assert(reader: Reader, *, testing: bool) -> Statement:
    """Reads ``ASSERT …``; what is asserted of rows and sources is for tests only."""
    reader.expect("ASSERT")
    exists = not reader.accept("NOT", "EXISTS")
    if reader.accept("TOPIC"):
        topic = reader.string() if reader.token.kind is Kind.STRING else reader.advance().written
        properties = read_properties(reader) if reader.at("WITH") else ()
        return AssertTopic(topic, properties, _timeout(reader), exists)
    if reader.accept("SCHEMA"):
        subject = None
        if reader.accept("SUBJECT"):
            subject = reader.string() if reader.token.kind is Kind.STRING else reader.advance().written
        schema_id = reader.integer() if reader.accept("ID") else None
        return AssertSchema(subject, schema_id, _timeout(reader), exists)
    if not testing or not exists:
        reader.fail()
    if reader.at_any("STREAM", "TABLE"):
        kind = reader.advance().text
        name = reader.source_name()
        elements = read_elements(reader) if reader.at("(") else ()
        return AssertSource(kind, name, elements, read_properties(reader) if reader.at("WITH") else ())
    tombstone = reader.accept("NULL")
    reader.expect("VALUES")
    source = reader.source_name()
    columns: tuple[str, ...] = ()
    if reader.accept("("):
        columns = reader.listed(reader.name, close=")")
    reader.expect("KEY" if tombstone else "VALUES")
    reader.expect("(")
    values = reader.listed(lambda: read_expression(reader), close=")")
    return AssertValues(source, columns, values, tombstone)


def _timeout(reader: Reader) -> timedelta | None:
    return read_duration(reader) if reader.accept("TIMEOUT") else None
