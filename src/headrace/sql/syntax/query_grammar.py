"""The grammar of queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from headrace.sql.errors import SqlParseError
from headrace.sql.syntax.dialect import Kind
from headrace.sql.syntax.expression_grammar import read_expression, read_primary, read_value
from headrace.sql.syntax.formatter import expression_text
from headrace.sql.syntax.nodes import Expression
from headrace.sql.syntax.statements import (
    Distinct,
    Join,
    Query,
    SelectAll,
    SelectFields,
    SelectItem,
    Source,
    Window,
    Within,
    WrittenClauses,
)
from headrace.sql.syntax.token_reader import Reader
from headrace.sql.syntax.units import UNITS, duration

_WINDOWS = ("TUMBLING", "HOPPING", "SESSION")
_DISTINCT = "write SELECT DISTINCT ON (expression, ...) WITHIN n unit"


def read_query(reader: Reader) -> Query:
    """Reads ``SELECT … FROM …`` to its end."""
    written: dict[str, str] = {}

    @contextmanager
    def clause(name: str) -> Iterator[None]:
        first = reader.index
        yield
        written[name] = reader.written(first)

    with clause("select"):
        position = reader.expect("SELECT").position
        with clause("distinct"):
            distinct = _distinct(reader) if reader.at("DISTINCT") else None
        select = reader.listed(lambda: _select_item(reader))
    reader.expect("FROM")
    source = _source(reader)
    joins: list[Join] = []
    while reader.at_any("JOIN", "INNER", "LEFT", "RIGHT", "FULL"):
        joins.append(_join(reader))
    with clause("window"):
        window = _window(reader) if reader.at("WINDOW") else None
    with clause("where"):
        where = read_expression(reader) if reader.accept("WHERE") else None
    with clause("group_by"):
        group_by = _several(reader, "GROUP BY") if reader.accept("GROUP", "BY") else ()
    with clause("partition_by"):
        partition_by = _several(reader, "PARTITION BY") if reader.accept("PARTITION", "BY") else ()
    with clause("having"):
        having = read_expression(reader) if reader.accept("HAVING") else None
    order_by = reader.listed(lambda: _ordering(reader)) if reader.accept("ORDER", "BY") else ()
    emit = None
    if reader.accept("EMIT"):
        emit = reader.choose("CHANGES", "FINAL")
    limit = _limit(reader) if reader.accept("LIMIT") else None
    offset = reader.integer() if reader.accept("OFFSET") else None
    return Query(
        select,
        source,
        tuple(joins),
        window,
        where,
        group_by,
        partition_by,
        having,
        emit,
        limit,
        order_by,
        offset,
        distinct,
        WrittenClauses(**written),
        position=position,
    )


def _distinct(reader: Reader) -> Distinct:
    position = reader.expect("DISTINCT").position
    if not reader.accept("ON", "("):
        reader.fail(f"Expecting 'ON (': {_DISTINCT}")
    expressions = reader.listed(lambda: read_value(reader), close=")")
    if not reader.accept("WITHIN"):
        reader.fail(f"Expecting 'WITHIN': {_DISTINCT}")
    return Distinct(expressions, read_duration(reader), position=position)


def _select_item(reader: Reader) -> SelectItem | SelectAll | SelectFields:
    position = reader.position
    if reader.accept("*"):
        return SelectAll(position=position)
    if reader.at_name() and reader.at(".", "*", ahead=1):
        name = reader.name()
        reader.expect(".", "*")
        return SelectAll(name, position=position)
    start = reader.index
    if reader.at_name() or reader.at("("):
        base = read_primary(reader)
        if reader.accept("->"):
            reader.expect("*")
            return SelectFields(base, position=position)
        reader.index = start
    expression = read_expression(reader)
    alias: str | None = None
    if reader.accept("AS") or reader.at_name():
        alias = reader.name()
    return SelectItem(expression, alias, position=position)


def _source(reader: Reader) -> Source:
    first, position = reader.index, reader.position
    alias = name = reader.source_name()
    if reader.accept("AS") or (reader.at_name() and not _at_clause(reader)):
        alias = reader.source_name()
    return Source(name, alias, reader.written(first), position=position)


def _at_clause(reader: Reader) -> bool:
    """Says whether the next word begins a clause although it could be a name."""
    return (
        reader.at("EMIT", "CHANGES")
        or reader.at("EMIT", "FINAL")
        or reader.at("PARTITION", "BY")
        or reader.at("ORDER", "BY")
        or (reader.at("OFFSET") and reader.peek().kind is Kind.NUMBER)
    )


def _join(reader: Reader) -> Join:
    first, position = reader.index, reader.position
    kind = "INNER"
    if reader.at_any("LEFT", "RIGHT", "FULL"):
        word = reader.advance().text
        kind = "OUTER" if word == "FULL" else word
        reader.accept("OUTER")
    else:
        reader.accept("INNER")
    reader.expect("JOIN")
    source = _source(reader)
    within = _within(reader) if reader.at("WITHIN") else None
    written, first = reader.written(first), reader.index
    reader.expect("ON")
    condition = read_expression(reader)
    return Join(kind, source, condition, within, written, reader.written(first), position=position)


def _within(reader: Reader) -> Within:
    position = reader.expect("WITHIN").position
    if reader.accept("("):
        before = read_duration(reader)
        reader.expect(",")
        after = read_duration(reader)
        reader.expect(")")
    else:
        before = after = read_duration(reader)
    return Within(before, after, _grace(reader), position=position)


def _grace(reader: Reader) -> timedelta | None:
    if not reader.accept("GRACE"):
        return None
    reader.expect("PERIOD")
    return read_duration(reader)


def read_duration(reader: Reader) -> timedelta:
    """Reads a number and a unit of time."""
    position = reader.token.position
    count = reader.integer()
    if reader.token.text not in UNITS:
        reader.fail()
    try:
        return duration(count, reader.advance().text)
    except SqlParseError as error:
        error.position = position
        raise


def _window(reader: Reader) -> Window:
    position = reader.expect("WINDOW").position
    alias = None if reader.at_any(*_WINDOWS) and reader.at("(", ahead=1) else reader.name()
    kind = reader.choose(*_WINDOWS)
    reader.expect("(")
    if kind != "SESSION":
        reader.expect("SIZE")
    size = read_duration(reader)
    advance: timedelta | None = None
    if kind == "HOPPING":
        reader.expect(",")
        reader.expect("ADVANCE", "BY")
        advance = read_duration(reader)
    retention: timedelta | None = None
    grace: timedelta | None = None
    if reader.at(",", "RETENTION"):
        reader.expect(",", "RETENTION")
        retention = read_duration(reader)
    if reader.accept(","):
        reader.expect("GRACE", "PERIOD")
        grace = read_duration(reader)
    reader.expect(")")
    return Window(kind, size, advance, retention, grace, alias, position=position)


def _several(reader: Reader, clause: str) -> tuple[Expression, ...]:
    """Reads the expressions of GROUP BY or PARTITION BY, with or without parentheses around all of them."""
    if _at_list_in_parentheses(reader):
        position = reader.advance().position
        if reader.accept(")"):
            message = f"Failed to prepare statement: {clause} requires at least one expression"
            raise SqlParseError(message, position=position, statement=reader.statement())
        return _without_repeated(reader, clause, reader.listed(lambda: read_value(reader), close=")"))
    return _without_repeated(reader, clause, reader.listed(lambda: read_value(reader)))


def _without_repeated(reader: Reader, clause: str, expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
    for place, expression in enumerate(expressions):
        if expression in expressions[:place]:
            text = expression_text(expression)
            message = f"Failed to prepare statement: Duplicate {clause} expression: {text}"
            raise SqlParseError(message, position=expression.position, statement=reader.statement())
    return expressions


def _at_list_in_parentheses(reader: Reader) -> bool:
    """Says whether the parenthesis that opens here holds several expressions, or none, and not one."""
    if not reader.at("("):
        return False
    depth = 1
    ahead = 1
    commas = False
    while depth:
        token = reader.peek(ahead)
        if token.kind is Kind.END:
            return False
        if token.kind is Kind.SIGN:
            depth += (token.text in "([") - (token.text in ")]")
            commas |= depth == 1 and token.text == ","
        ahead += 1
    # A comma behind it makes it one of several expressions, where a list cannot stand.
    return (commas or ahead == 2) and not reader.at(",", ahead=ahead)


def _ordering(reader: Reader) -> tuple[Expression, bool]:
    expression = read_value(reader)
    descending = reader.accept("DESC")
    if not descending:
        reader.accept("ASC")
    return expression, descending


def _limit(reader: Reader) -> int:
    sign = -1 if reader.accept("-") else 1
    token = reader.token
    if token.kind is Kind.NUMBER and not token.text.isdecimal():
        message = "Failed to prepare statement: Value must be integer for command: LIMIT"
        message = f"{message}; found {token.text}\nStatement: {reader.statement()}"
        raise SqlParseError(message, position=reader.position, statement=reader.statement())
    return sign * reader.integer()
