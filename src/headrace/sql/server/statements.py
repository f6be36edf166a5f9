"""Statements of a request: all are tried out, then carried out one after the other, each with its answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from headrace.errors import StreamsError
from headrace.sql.connect.configuration import masked_text
from headrace.sql.errors import Position, SqlError, excerpt
from headrace.sql.insert_values import InsertedRecord, record_of
from headrace.sql.server.asserting import assert_schema, assert_topic
from headrace.sql.server.connectors import (
    carry_out_connector_statement,
    check_connector_statement,
    is_about_connectors,
)
from headrace.sql.server.describing import describe, explain
from headrace.sql.server.entities.entity import Entity
from headrace.sql.server.entities.status import CommandStatus, CurrentStatus, TerminatedQuery, WarningEntity
from headrace.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    SERVER_ERROR,
    USE_QUERY_ENDPOINT,
    RequestError,
    of_statement,
    terminated,
)
from headrace.sql.server.open_queries import OpenQuery
from headrace.sql.server.service import Outcome, SqlService
from headrace.sql.server.session import Session
from headrace.sql.server.showing import show
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.parser import parse_statement, split
from headrace.sql.syntax.statements import (
    AlterSource,
    AssertSchema,
    AssertTopic,
    ControlQuery,
    CreateAsSelect,
    CreateConnector,
    CreateFunction,
    CreateSource,
    CreateType,
    Describe,
    DropFunction,
    DropSource,
    DropType,
    Explain,
    InsertInto,
    InsertValues,
    PrintTopic,
    SelectQuery,
    SetProperty,
    ShowList,
    Statement,
)
from headrace.sql.syntax.variables import substitute

DEFINITIONS = (
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
"""Statements that define something, which lasts."""
_CHANGES = (*DEFINITIONS, ControlQuery)
_NOT_HERE = "The following statement types should be issued to the websocket endpoint '/query':\n\t* PRINT\n\t* SELECT"


class Statements:
    """Carries out the statements that ``/ksql`` takes."""

    def __init__(self, service: SqlService) -> None:
        self._service = service
        self.statuses: dict[str, CommandStatus] = {}
        """What became of the commands that came to this server, by the ids that clients know them by."""

    def run(self, text: str, session: Session) -> list[Entity]:
        """Returns the answers; those of statements that set something are left out.

        If one of several statements is wrong, none is carried out. Raises ``RequestError``.
        """
        if len(split(text)) > 1:
            self._try_out(text, session.copy())
        entities: list[Entity] = []
        for statement in _parse_statements(text, session, entities):
            try:
                entity = self._carry_out(statement, session)
            except (StreamsError, RequestError) as error:
                raise _error_of(error, statement, entities) from error
            if entity is not None:
                entities.append(entity)
        if not entities and not text.strip():
            raise RequestError(BAD_REQUEST, "The request has no statement; send one in 'ksql'")
        return entities

    def _try_out(self, text: str, session: Session) -> None:
        engine = self._service.trial()
        for statement in _parse_statements(text, session, []):
            try:
                self._try(statement, session, engine)
            except (SqlError, RequestError) as error:
                raise _error_of(error, statement) from error

    def _try(self, statement: Statement, session: Session, engine: SqlEngine) -> None:
        if isinstance(statement, ControlQuery) and statement.action != "TERMINATE":
            return
        if self._push_query(statement) is not None:
            return
        if _is_change(statement) or isinstance(statement, InsertValues):
            engine.execute(statement, session.settings)
        elif is_about_connectors(statement):
            check_connector_statement(statement, self._service)
        elif not isinstance(statement, AssertTopic | AssertSchema):
            self._answer(statement, session, engine)

    def _carry_out(self, statement: Statement, session: Session) -> Entity | None:
        service = self._service
        if isinstance(statement, InsertValues):
            self.write(self._record(statement, session.settings))
            return None
        if (pushed := self._push_query(statement)) is not None:
            service.open_queries.close(pushed.id)
            return TerminatedQuery(statement_text=terminated(statement.text), query_id=pushed.id, was_terminated=True)
        if _is_change(statement):
            outcome = service.change(statement, session.settings)
            return self._status(statement, outcome)
        text = terminated(statement.text)
        if isinstance(statement, AssertTopic):
            return assert_topic(statement, service.log, text)
        if isinstance(statement, AssertSchema):
            return assert_schema(statement, service.engine.registry, text)
        service.catch_up()
        if is_about_connectors(statement):
            return carry_out_connector_statement(statement, service)
        return self._answer(statement, session, service.engine)

    def _push_query(self, statement: Statement) -> OpenQuery | None:
        """Returns the push query that a statement ends, if it is no persistent one."""
        if not isinstance(statement, ControlQuery) or statement.action != "TERMINATE" or statement.query_id is None:
            return None
        if statement.query_id in self._service.engine.catalog.queries:
            return None
        found = self._service.open_queries.find(statement.query_id)
        return found if found is not None and found.is_push else None

    def _record(self, statement: InsertValues, overrides: Mapping[str, object]) -> InsertedRecord:
        service = self._service
        if service.engine.catalog.find(statement.target) is None:
            # Another server may know it already.
            service.catch_up()
        engine = service.engine
        return record_of(statement, engine.catalog, engine.functions, service.settings(overrides))

    def write(self, record: InsertedRecord) -> None:
        """Writes a row; it is in the log when this returns."""
        time_ms = time.time_ns() // 1_000_000 if record.timestamp_ms is None else record.timestamp_ms
        self._service.log.append(record.topic, [(None, time_ms, record.key, record.value, ())])

    def _answer(self, statement: Statement, session: Session, engine: SqlEngine) -> Entity | None:
        """Answers what changes nothing outside of the session."""
        if session.take(statement):
            return None
        text = terminated(statement.text)
        match statement:
            case ShowList():
                return show(statement, self._service, engine, session, text)
            case Describe():
                return describe(statement, self._service, engine, text)
            case Explain():
                return explain(statement, self._service, engine, session, text)
            case SelectQuery() | PrintTopic():
                raise RequestError(USE_QUERY_ENDPOINT, _NOT_HERE)
            case _:
                message = f"The server does not take this statement: {type(statement).__name__}"
                raise RequestError(BAD_STATEMENT, message)
        return None

    def _status(self, statement: Statement, outcome: Outcome) -> Entity:
        done = outcome.done
        text = terminated(statement.text)
        if done.query is None and _had_nothing_to_do(statement, done.message):
            return WarningEntity(statement_text=text, message=done.message)
        status = CommandStatus("SUCCESS", done.message, None if done.query is None else done.query.id)
        command_id = _command_id(statement)
        self.statuses[command_id] = status
        return CurrentStatus(
            statement_text=text, command_id=command_id, command_status=status, command_sequence_number=outcome.offset
        )


def _is_change(statement: Statement) -> bool:
    return isinstance(statement, _CHANGES) or (isinstance(statement, SetProperty) and statement.system)


def _parse_statements(text: str, session: Session, entities: list[Entity]) -> Iterator[Statement]:
    """Yields the statements; a variable may be defined by the statement before the one that uses it."""
    try:
        parts = split(text)
    except SqlError as error:
        raise of_statement(error, text) from error
    for part in parts:
        try:
            yield parse_statement(substitute(part, session.variables))
        except SqlError as error:
            raise of_statement(error, part, entities) from error


def _error_of(
    error: StreamsError | RequestError, statement: Statement, entities: Sequence[Entity] = ()
) -> RequestError:
    """Returns the error of a statement as clients know it."""
    text = _shown(statement)
    written = text.removesuffix(";")
    if isinstance(error, SqlError):
        error.locate(written, statement.position)
        return of_statement(error, text, entities)
    code, message = (error.code, error.message) if isinstance(error, RequestError) else (SERVER_ERROR, str(error))
    start = statement.position or Position(1, 1)
    return RequestError(
        code,
        message,
        statement=text,
        entities=entities,
        position=start,
        excerpt=excerpt(written, start, start),
    )


def _shown(statement: Statement) -> str:
    """Returns the text of a statement for an error, without the secrets that the settings of a connector may be."""
    return terminated(masked_text(statement) if isinstance(statement, CreateConnector) else statement.text)


def _had_nothing_to_do(statement: Statement, message: str) -> bool:
    # IF EXISTS and IF NOT EXISTS say so in the message only.
    optional = getattr(statement, "if_not_exists", False) or getattr(statement, "if_exists", False)
    return bool(optional) and ("already exists" in message or "does not exist" in message or "already" in message)


def _command_id(statement: Statement) -> str:
    match statement:
        case CreateSource() | CreateAsSelect():
            return f"{statement.kind.lower()}/`{statement.name}`/create"
        case DropSource():
            return f"{statement.kind.lower()}/{statement.name}/drop"
        case AlterSource():
            return f"{statement.kind.lower()}/`{statement.name}`/alter"
        case InsertInto():
            return f"stream/`{statement.target}`/create"
        case CreateType():
            return f"type/{statement.name}/create"
        case DropType():
            return f"type/{statement.name}/drop"
        case CreateFunction():
            return f"function/{statement.name}/create"
        case DropFunction():
            return f"function/{statement.name}/drop"
        case SetProperty():
            return f"system/{statement.name}/alter"
        case ControlQuery():
            return f"{statement.action.lower()}/{statement.query_id or 'ALL'}/execute"
        case _:
            return f"statement/{type(statement).__name__}/execute"
