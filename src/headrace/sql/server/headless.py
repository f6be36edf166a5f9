"""Headless mode: the statements of a file, carried out at every start, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.sql.errors import SqlError, SqlStatementError
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.syntax.parser import parse_statement, split
from headrace.sql.syntax.statements import (
    AlterSource,
    CreateAsSelect,
    CreateFunction,
    CreateSource,
    CreateType,
    DefineVariable,
    DropFunction,
    DropSource,
    DropType,
    InsertInto,
    SetProperty,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from headrace.sql.syntax.variables import substitute

_ALLOWED = (
    CreateSource,
    CreateAsSelect,
    InsertInto,
    DropSource,
    AlterSource,
    CreateType,
    DropType,
    CreateFunction,
    DropFunction,
)


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
            raise SqlStatementError(message, position=error.position, statement=statement.text) from error


def _statements(text: str, session: Session, path: Path) -> Iterator[tuple[Statement, dict[str, object]]]:
    for part in split(text):
        statement = parse_statement(substitute(part, session.variables))
        match statement:
            case SetProperty():
                session.settings[statement.name] = statement.value
            case UnsetProperty():
                session.settings.pop(statement.name, None)
            case DefineVariable():
                session.variables[statement.name.upper()] = statement.value
            case UndefineVariable():
                session.variables.pop(statement.name.upper(), None)
            case _ if isinstance(statement, _ALLOWED):
                yield statement, dict(session.settings)
            case _:
                message = f"{path}: {type(statement).__name__} has no place in a file that runs without clients: {part}"
                raise SqlStatementError(message, statement=part)
