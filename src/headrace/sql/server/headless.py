"""Headless mode: the statements of a file, carried out at every start, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.server.errors import RequestError
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.server.statements import DEFINITIONS
from headrace.sql.syntax.parser import parse_statement, split
from headrace.sql.syntax.statements import (
    CreateAsSelect,
    InsertInto,
    Statement,
)
from headrace.sql.syntax.variables import substitute


def run_file(service: SqlService, path: Path) -> None:
    """Carries out the statements of a file; its queries run when the service is started.

    All of them are read before the first is carried out. Their order gives queries their ids, by which they go on where
    they were: statements are best added at the end.
    """
    session = Session()
    found = list(_statements(path.read_text(encoding="utf-8"), session, path))
    if not any(isinstance(statement, CreateAsSelect | InsertInto) for statement, _ in found):
        message = f"'{path}' starts no query; write at least one CREATE … AS SELECT or INSERT INTO … SELECT"
        raise SqlStatementError(message)
    for statement, settings in found:
        try:
            service.run_without_commands([statement], settings)
        except SqlError as error:
            message = f"{path}: {error.message}"
            failure = SqlStatementError(message, position=error.position, statement=statement.text)
            failure.excerpt = error.excerpt
            raise failure from error


def _statements(text: str, session: Session, path: Path) -> Iterator[tuple[Statement, dict[str, object]]]:
    for part in split(text):
        statement = parse_statement(substitute(part, session.variables))
        try:
            if session.take(statement):
                continue
        except RequestError as error:
            message = f"{path}: {error.message}"
            raise SqlStatementError(message, position=statement.position, statement=part) from error
        if not isinstance(statement, DEFINITIONS):
            message = f"{path}: {type(statement).__name__} has no place in a file that runs without clients: {part}"
            raise SqlStatementError(message, statement=part)
        yield statement, dict(session.settings)
