"""Errors of statements, with line, column and an excerpt of the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.errors import StreamsError, did_you_mean


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text of a statement: line and column, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"


_EXCERPT_LETTERS = 100
"""How much of a long line is shown around a place in it."""


def excerpt(text: str, place: Position, start: Position | None = None) -> str | None:
    r"""Returns the line of a text in which a place is, and below it a mark; ``start`` is where the text itself begins.

    >>> print(excerpt("SELECT A,\n  BB FROM S", Position(2, 3)))
      BB FROM S
      ^
    """
    start = start or Position(1, 1)
    index = place.line - start.line
    lines = text.split("\n")
    if not 0 <= index < len(lines):
        return None
    column = place.column - start.column if index == 0 else place.column - 1
    line = lines[index].rstrip()
    if not 0 <= column <= len(line):
        return None
    cut = max(0, column - _EXCERPT_LETTERS // 2) if len(line) > _EXCERPT_LETTERS else 0
    shown = line[cut : cut + _EXCERPT_LETTERS]
    # Tabs stay tabs, so that the mark stands below what it marks.
    indent = "".join("\t" if letter == "\t" else " " for letter in shown[: column - cut])
    return f"{shown}\n{indent}^"


def suggestion(name: str, candidates: Iterable[str]) -> str:
    r"""Returns a sentence about the name that looks most like an unknown one, with a line break before it.

    >>> suggestion("NAMEE", ["ID", "NAME"]), suggestion("ZEBRA", ["ID", "NAME"])
    ("\nDid you mean 'NAME'?", '')
    """
    hint = did_you_mean(name, candidates)
    return f"\nD{hint.removeprefix('; d')}" if hint else ""


class SqlError(StreamsError, ValueError):
    """A statement cannot be carried out. The message says why, and where in the text if the place is known.

    ``statement`` is its text, ``position`` the place in it, and ``excerpt`` the line of that place, with
    a mark below it; each may be None.
    """

    def __init__(self, message: str, *, position: Position | None = None, statement: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.statement = statement
        self.excerpt: str | None = None

    def locate(self, text: str, start: Position | None) -> None:
        """Says where in the text of a statement it is; where the statement begins if nothing else is known."""
        self.position = self.position or start or Position(1, 1)
        if self.excerpt is None:
            self.excerpt = excerpt(text, self.position, start)


@contextmanager
def reporting_depth(text: str, start: Position | None) -> Iterator[None]:
    """Raises ``SqlStatementError`` for a statement that is nested deeper than the interpreter can follow."""
    try:
        yield
    except RecursionError as error:
        message = "The statement is nested too deeply; write long chains of OR as IN (…)."
        failure = SqlStatementError(message, statement=text)
        failure.locate(text, start)
        raise failure from error


@contextmanager
def locating_errors(text: str, start: Position | None) -> Iterator[None]:
    """Adds the statement, and the place in it, to errors that do not name them yet."""
    try:
        with reporting_depth(text, start):
            yield
    except SqlError as error:
        if error.statement is None:
            error.statement = text
        error.locate(text, start)
        raise


class SqlStatementError(SqlError):
    """A statement cannot be carried out: an unknown source, types that do not fit."""


class SqlParseError(SqlStatementError):
    """The text is not a statement of the language. The message shows the place and what was expected there."""


class SqlFunctionError(SqlError):
    """There is no function of that name, or none that takes arguments of these types."""


class SqlExecutionError(SqlError):
    """A statement was accepted and failed while it ran."""
