"""A server in this process, for a prompt that was given none."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.errors import missing_package

if TYPE_CHECKING:
    from headrace.app.engine import EngineFactory
    from headrace.sql.server.sql_server import SqlServer

_REST = timedelta(seconds=30)
"""How long a script waits for its queries."""


@dataclass(frozen=True)
class ServerConnection:
    """A server: its address, and how to wait until its queries have read what is there."""

    address: str
    settle: Callable[[], None] = lambda: None
    token: str | None = None
    """What it asks for."""


@contextmanager
def embedded_server(settings: Mapping[str, Any], engine: str) -> Iterator[ServerConnection]:
    """Starts a server on the log of these settings, at a free port of this machine."""
    # Imported here: the packages for serving are optional.
    try:
        from headrace.sql.server.sql_server import SqlServer

        runs_queries = engine_of(engine)
    except ImportError as error:
        raise missing_package(error, "SQL", "sql") from error
    # What the server reports would come between the lines of the prompt.
    logger = logging.getLogger("headrace")
    quiet = logging.NullHandler()
    propagate = logger.propagate
    logger.addHandler(quiet)
    logger.propagate = False
    try:
        token = secrets.token_urlsafe()
        # Who has started it may run Python anyway, and nobody else has the token.
        settings = {"ksql.functions.python.modules": "*", **settings}
        with SqlServer(settings, listen="localhost:0", engine=runs_queries, token=token) as server:
            yield ServerConnection(server.url, lambda: _settle(server), token)
    finally:
        logger.removeHandler(quiet)
        logger.propagate = propagate


def _settle(server: SqlServer) -> None:
    from headrace.sql.hosting.host import QueryState
    from headrace.sql.hosting.progress import wait_until_read, wait_until_started
    from headrace.sql.hosting.streams_host import application_id

    counts = server.log.partition_counts()
    reading = {}
    for query in server.service.engine.catalog.queries.values():
        targets = [(topic, partition) for topic in query.source_topics for partition in range(counts.get(topic, 0))]
        has_records = any(server.log.end_offsets(targets).values())
        if has_records and server.host.status(query.id).state in (QueryState.STARTING, QueryState.RUNNING):
            reading[application_id(server.service.service_id, query.id)] = query.source_topics
    if wait_until_read(server.log, reading, _REST):
        wait_until_started(server.host, server.service.engine.catalog.queries, _REST)


def engine_of(name: str) -> EngineFactory | None:
    """Returns what runs persistent queries: None is Spark."""
    if name == "spark":
        return None
    from headrace.app.engine import local_engine

    return local_engine
