"""Queries that a client reads: pull, push, and the records of a topic."""

from __future__ import annotations

from headrace.sql.errors import SqlError
from headrace.sql.reading.pull import pull
from headrace.sql.reading.push import push
from headrace.sql.reading.push.topic_follower import starts_at_latest
from headrace.sql.reading.results import PullResult, PushQuery, QueryContext
from headrace.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    RequestError,
    of_statement,
    terminated,
)
from headrace.sql.server.open_queries import OpenQuery
from headrace.sql.server.printing import Printed, print_topic
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.syntax.parser import parse_statement, split
from headrace.sql.syntax.statements import PrintTopic, SelectQuery, Statement
from headrace.sql.syntax.variables import substitute

__all__ = ["OpenQuery", "QueryEndpoint"]


class QueryEndpoint:
    """Opens queries."""

    def __init__(self, service: SqlService) -> None:
        self._service = service

    def open(self, text: str, session: Session) -> OpenQuery | Printed:
        """Starts the one query of a text; raises ``RequestError``."""
        statement = _statement(text, session)
        if isinstance(statement, PrintTopic):
            self._service.catch_up()
            stopping = self._service.open_queries.printing()
            engine = self._service.engine
            window = engine.catalog.window_of(statement.topic)
            return print_topic(statement, self._service.log, engine.registry, stopping, window)
        assert isinstance(statement, SelectQuery), "others were refused"
        self._service.catch_up()
        context = self._service.context(session.settings)
        start = self._pull if statement.query.emit is None else self._push
        query = start(statement, context)
        self._service.open_queries.add(query)
        return query

    def _pull(self, statement: SelectQuery, context: QueryContext) -> OpenQuery:
        try:
            result: PullResult = pull(statement, context)
        except SqlError as error:
            raise of_statement(error, statement.text) from error
        return OpenQuery(
            result.query_id, result.schema, result.rows, lambda: result.final_message, _do_nothing, is_push=False
        )

    def _push(self, statement: SelectQuery, context: QueryContext) -> OpenQuery:
        try:
            query: PushQuery = push(statement, context)
        except SqlError as error:
            # Clients know errors of push queries by this kind.
            raise RequestError(BAD_REQUEST, error.message, position=error.position, excerpt=error.excerpt) from error
        return OpenQuery(
            query.id,
            query.schema,
            query.rows,
            lambda: query.final_message,
            query.close,
            is_push=True,
            text=statement.text,
            sources=tuple(
                one.name for one in (statement.query.source, *(join.source for join in statement.query.joins))
            ),
            from_beginning=not starts_at_latest(context.settings),
        )

    def closed(self, query: OpenQuery) -> None:
        """Ends a query whose reader has gone, and waits for nothing."""
        self._service.open_queries.closed(query)

    def close(self, query_id: str) -> None:
        """Ends a query by its id."""
        self._service.open_queries.close(query_id)

    def push_queries(self) -> tuple[str, ...]:
        """Returns the ids of the push queries that are open."""
        return tuple(each.id for each in self._service.open_queries.push_queries())


def _statement(text: str, session: Session) -> Statement:
    try:
        parts = split(text)
        if len(parts) != 1:
            message = f"Expected exactly one KSQL statement; found {len(parts)} instead"
            raise RequestError(BAD_STATEMENT, message, statement=terminated(text))
        statement = parse_statement(substitute(parts[0], session.variables))
    except SqlError as error:
        raise of_statement(error, text) from error
    if not isinstance(statement, SelectQuery | PrintTopic):
        message = "Only SELECT and PRINT can be read here; send other statements to '/ksql'"
        raise RequestError(BAD_STATEMENT, message, statement=terminated(text))
    return statement


def _do_nothing() -> None:
    """A pull query ends by itself."""
