"""What can go wrong with a statement; every error knows where in the text it happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.errors import StreamsError, did_you_mean


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text of a statement: line and column, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"


def suggestion(name: str, candidates: Iterable[str]) -> str:
    r"""Returns a sentence about the name that looks most like an unknown one, with a line break before it.

    >>> suggestion("NAMEE", ["ID", "NAME"]), suggestion("ZEBRA", ["ID", "NAME"])
    ("\nDid you mean 'NAME'?", '')
    """
    hint = did_you_mean(name, candidates)
    return f"\nD{hint.removeprefix('; d')}" if hint else ""


class SqlError(StreamsError, ValueError):
    """A statement cannot be carried out. The message says why, and where in the text if the place is known.

    ``statement`` is the text of the statement, ``position`` the place in it; either may be None.
    """

    def __init__(self, message: str, *, position: Position | None = None, statement: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.statement = statement


class SqlStatementError(SqlError):
    """A statement cannot be carried out: an unknown source, types that do not fit."""


class SqlParseError(SqlStatementError):
    """The text is not a statement of the language. The message shows the place and what was expected there."""


class SqlFunctionError(SqlError):
    """There is no function of that name, or none that takes arguments of these types."""


class SqlExecutionError(SqlError):
    """A statement was accepted and failed while it ran."""
