"""Queries as lists show them."""

from __future__ import annotations

from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.hosting.host import QueryHost, QueryState
from headrace.sql.server.entities.lists import QueryInfo
from headrace.sql.server.errors import terminated
from headrace.sql.server.open_queries import OpenQuery

_SHOWN = {QueryState.ELSEWHERE: "RUNNING", QueryState.UNKNOWN: "UNRESPONSIVE"}


def shown_state(query_id: str, host: QueryHost) -> str:
    """Returns the state of a query by the name that clients know."""
    state = host.status(query_id).state
    return _SHOWN.get(state, state.value)


def push_query_info(query: OpenQuery) -> QueryInfo:
    """Returns a query that somebody reads as an entry of a list."""
    return QueryInfo(terminated(query.text), (), (), query.id, {"RUNNING": 1}, "PUSH", "RUNNING")


def query_info(query: PersistentQuery, host: QueryHost) -> QueryInfo:
    """Returns a persistent query as an entry of a list."""
    state = shown_state(query.id, host)
    return QueryInfo(
        terminated(query.statement.text), (query.sink,), (query.sink_topic,), query.id, {state: 1}, "PERSISTENT", state
    )
