"""Queries that a client reads: pull, push, and the records of a topic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.sql.errors import SqlError
from headrace.sql.pull import pull
from headrace.sql.push import push
from headrace.sql.results import PullResult, PushQuery, QueryContext, ResultRow
from headrace.sql.schema import Schema
from headrace.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    TOO_MANY_PUSH_QUERIES,
    RequestError,
    of_statement,
    terminated,
)
from headrace.sql.server.printing import Printed, print_topic
from headrace.sql.server.service import SqlService
from headrace.sql.server.session import Session
from headrace.sql.syntax.parser import parse_statement, split
from headrace.sql.syntax.statements import PrintTopic, SelectQuery, Statement
from headrace.sql.syntax.variables import substitute

_MOST_PUSH_QUERIES = 1000


@dataclass(frozen=True)
class OpenQuery:
    """A query whose rows are being read. ``close`` ends it, from any thread."""

    id: str
    schema: Schema
    rows: Iterator[ResultRow]
    final_message: Callable[[], str | None]
    """Asked when the rows have ended."""
    close: Callable[[], None]
    is_push: bool


class QueryEndpoint:
    """Opens queries, and knows those that are open."""

    def __init__(self, service: SqlService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuery] = {}

    def open(self, text: str, session: Session) -> OpenQuery | Printed:
        """Starts the one query of a text; raises ``RequestError``."""
        statement = _statement(text, session)
        if isinstance(statement, PrintTopic):
            return print_topic(statement, self._service.log)
        assert isinstance(statement, SelectQuery), "others were refused"
        self._service.catch_up()
        context = self._service.context(session.settings)
        start = self._pull if statement.query.emit is None else self._push
        query = start(statement, context)
        with self._lock:
            if query.is_push and sum(each.is_push for each in self._open.values()) >= _MOST_PUSH_QUERIES:
                full = True
            else:
                full, self._open[query.id] = False, query
        if full:
            query.close()
            message = f"Maximum number of push queries exceeded: {_MOST_PUSH_QUERIES}; close some first"
            raise RequestError(TOO_MANY_PUSH_QUERIES, message)
        return query

    def _pull(self, statement: SelectQuery, context: QueryContext) -> OpenQuery:
        try:
            result: PullResult = pull(statement, context)
        except SqlError as error:
            raise of_statement(error, statement.text) from error
        return OpenQuery(
            result.query_id, result.schema, result.rows, lambda: result.final_message, _nothing, is_push=False
        )

    def _push(self, statement: SelectQuery, context: QueryContext) -> OpenQuery:
        try:
            query: PushQuery = push(statement, context)
        except SqlError as error:
            # Clients know errors of push queries by this kind.
            raise RequestError(BAD_REQUEST, error.message) from error
        return OpenQuery(query.id, query.schema, query.rows, lambda: query.final_message, query.close, is_push=True)

    def closed(self, query: OpenQuery) -> None:
        """Ends a query and forgets it."""
        with self._lock:
            self._open.pop(query.id, None)
        query.close()

    def close(self, query_id: str) -> None:
        """Ends a query by its id."""
        with self._lock:
            found = self._open.pop(query_id, None)
        if found is None:
            raise RequestError(BAD_REQUEST, f"No query with id {query_id}")
        found.close()

    def close_all(self) -> None:
        """Ends all queries."""
        with self._lock:
            found, self._open = list(self._open.values()), {}
        for query in found:
            query.close()

    def push_queries(self) -> tuple[str, ...]:
        """Returns the ids of the push queries that are open."""
        with self._lock:
            return tuple(each.id for each in self._open.values() if each.is_push)


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


def _nothing() -> None:
    """A pull query ends by itself."""
