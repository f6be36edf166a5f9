"""Text to statements. A word that begins no statement is an error with its place, never a command of some kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeVar

from headrace.sql.errors import SqlError
from headrace.sql.syntax.command_grammar import (
    read_assert,
    read_control,
    read_describe,
    read_explain,
    read_print,
    read_run,
    read_session,
    read_show,
)
from headrace.sql.syntax.dialect import Kind, tokenize
from headrace.sql.syntax.expression_grammar import read_expression
from headrace.sql.syntax.nodes import Expression, TypeName
from headrace.sql.syntax.query_grammar import read_query
from headrace.sql.syntax.source_grammar import read_alter, read_create, read_drop, read_insert
from headrace.sql.syntax.statements import SelectQuery, Statement
from headrace.sql.syntax.token_reader import Reader
from headrace.sql.syntax.type_grammar import read_type

_STATEMENTS: dict[str, Callable[[Reader], Statement]] = {
    "CREATE": read_create,
    "DROP": read_drop,
    "ALTER": read_alter,
    "INSERT": read_insert,
    "SHOW": read_show,
    "LIST": read_show,
    "DESCRIBE": read_describe,
    "PRINT": read_print,
    "TERMINATE": read_control,
    "PAUSE": read_control,
    "RESUME": read_control,
    "SET": read_session,
    "UNSET": read_session,
    "DEFINE": read_session,
    "UNDEFINE": read_session,
}
T = TypeVar("T")
_MORE = ("SELECT", "EXPLAIN", "ASSERT")


def parse(text: str, *, testing: bool = False) -> tuple[Statement, ...]:
    """Returns the statements of the text; each ends with a semicolon, which the last may leave out.

    ``testing`` also allows the statements that assert rows and sources, and those that run a script.

    >>> [statement.text for statement in parse("SHOW STREAMS; DROP TYPE T;")]
    ['SHOW STREAMS', 'DROP TYPE T']
    """
    return tuple(statements(text, testing=testing))


def statements(text: str, *, testing: bool = False) -> Iterator[Statement]:
    """Yields the statements one after the other, so that those before a wrong one can be carried out."""
    reader = Reader(text, tokenize(text))
    while True:
        while reader.accept(";"):
            pass
        if reader.at_end():
            return
        statement = _read_guarded(reader, lambda: _read(reader, testing=testing))
        if not (reader.at(";") or reader.at_end()):
            reader.fail()
        yield statement


def split(text: str) -> tuple[str, ...]:
    r"""Returns the texts of the statements, each without its semicolon; they need not be valid.

    >>> split("SHOW ${what}; -- more;\nPRINT 'a;b'")
    ('SHOW ${what}', "PRINT 'a;b'")
    """
    return tuple(part for _, part in pieces(text))


def pieces(text: str) -> tuple[tuple[int, str], ...]:
    """Returns the same, each with the offset at which it begins.

    >>> pieces("SHOW STREAMS; SHOW TABLES;")
    ((0, 'SHOW STREAMS'), (14, 'SHOW TABLES'))
    """
    parts: list[tuple[int, str]] = []
    start: int | None = None
    end = 0
    for token in tokenize(text):
        if token.kind is Kind.END or (token.kind is Kind.SIGN and token.text == ";"):
            if start is not None:
                parts.append((start, text[start:end]))
            start = None
            continue
        start = token.start if start is None else start
        end = token.end
    return tuple(parts)


def parse_statement(text: str) -> Statement:
    """Returns the one statement of the text.

    >>> parse_statement("drop type t")
    DropType(text='drop type t', name='T', if_exists=False)
    """
    reader = Reader(text, tokenize(text))
    statement = _read_guarded(reader, lambda: _read(reader, testing=False))
    reader.accept(";")
    if not reader.at_end():
        reader.fail()
    return statement


def parse_expression(text: str) -> Expression:
    """Returns the expression that the text is.

    >>> parse_expression("a + 1")
    Binary(operator='+', left=ColumnReference(name='A', source=None), right=Literal(value=1))
    """
    reader = Reader(text, tokenize(text))
    expression = _read_guarded(reader, lambda: read_expression(reader))
    if not reader.at_end():
        reader.fail()
    return expression


def parse_type(text: str) -> TypeName:
    """Returns the type that the text is.

    >>> str(parse_type("map<varchar, array<int>>").type)
    'MAP<STRING, ARRAY<INTEGER>>'
    """
    reader = Reader(text, tokenize(text))
    found = _read_guarded(reader, lambda: read_type(reader))
    if not reader.at_end():
        reader.fail()
    return found


def _read_guarded(reader: Reader, read: Callable[[], T]) -> T:
    """Reads; what is nested deeper than this can follow is an error in the text, not of the reader."""
    start = reader.position
    try:
        return read()
    except SqlError as error:
        error.position = error.position or start
        error.locate(reader.text, None)
        raise
    except RecursionError:
        problem = "The statement is nested too deeply"
    reader.fail(problem)


def _read(reader: Reader, *, testing: bool) -> Statement:
    start, position = reader.start, reader.position
    word = reader.token.text if reader.token.kind is Kind.WORD else ""
    statement: Statement
    if word == "SELECT":
        statement = SelectQuery(read_query(reader))
    elif word == "EXPLAIN":
        statement = read_explain(reader, lambda inner: _read(inner, testing=testing))
    elif word == "ASSERT":
        statement = read_assert(reader, testing=testing)
    elif word == "RUN" and testing:
        statement = read_run(reader)
    elif word in _STATEMENTS:
        statement = _STATEMENTS[word](reader)
    else:
        near = get_close_matches(word, [*_STATEMENTS, *_MORE], n=1)
        hint = f"\nDid you mean '{near[0]}'?" if near else ""
        reader.fail(f"Unknown statement '{reader.token.written}'{hint}")
    return replace(statement, text=reader.text[start : reader.last_end], position=position)
