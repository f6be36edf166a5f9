"""A log, an engine, a host and the views of tables, without a server: where queries are asked for their rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from headrace import EmbeddedLog
from headrace.app.engine import local_engine
from headrace.sql.catalog.log_topics import LogTopics
from headrace.sql.hosting.progress import wait_until_read
from headrace.sql.hosting.streams_host import StreamsHost
from headrace.sql.reading.orphaned_queries import OrphanedQueries
from headrace.sql.reading.pull import pull
from headrace.sql.reading.push import push
from headrace.sql.reading.results import PullResult, PushQuery, QueryContext, ResultRow
from headrace.sql.reading.tables import open_tables
from headrace.sql.sql_engine import SqlEngine
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import SelectQuery
from headrace.topics.journal import DurableLog

SOON = timedelta(seconds=60)
"""After which a test is taken to hang."""
_SERVICE = "test_"


class QueryPlace:
    """Everything that queries need, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.log: DurableLog = EmbeddedLog(directory / "log", sync="none")
        self.engine = SqlEngine(topics=LogTopics(self.log))
        settings = {"state.dir": str(directory / "state"), "log.sync": "none"}
        self.host = StreamsHost(self.log, settings, service_id=_SERVICE, engine=local_engine)
        self.tables = open_tables(self.log, directory / "views")
        self._orphaned_queries = OrphanedQueries(directory / "transient")
        self._time_ms = 0

    def run(self, text: str) -> None:
        """Carries out statements, and waits until all queries have read what there is."""
        for done in self.engine.execute_each(text):
            if done.query is not None:
                self.host.start(done.query)
            if done.record is not None:
                record, self._time_ms = done.record, self._time_ms + 1
                time_ms = self._time_ms if record.timestamp_ms is None else record.timestamp_ms
                self.log.append(record.topic, [(None, time_ms, record.key, record.value, ())])
        queries = self.engine.catalog.queries.values()
        topics = {self.host.application_id(each.id): each.source_topics for each in queries}
        assert wait_until_read(self.log, topics, SOON), "queries are too slow, or have failed"

    def context(self, **settings: object) -> QueryContext:
        given = {name.replace("__", "."): value for name, value in settings.items()}
        engine = self.engine
        return QueryContext(
            engine.catalog,
            engine.functions,
            {**engine.settings, **given},
            self.log,
            self.host,
            self.tables,
            None,
            _SERVICE,
            self._orphaned_queries,
        )

    def pulled(self, text: str, **settings: object) -> PullResult:
        return pull(_select(text), self.context(**settings))

    def rows(self, text: str, **settings: object) -> list[list[Any]]:
        """Returns the rows of a pull query; names of settings are written with ``__`` for a dot."""
        return [row.columns for row in self.pulled(text, **settings).rows]

    @contextmanager
    def pushed(self, text: str, *, reset: object = "earliest", **settings: object) -> Iterator[PushQuery]:
        """Gives a push query for as long as the context lasts."""
        query = push(_select(text), self.context(auto__offset__reset=reset, **settings))
        # A query that waits for a row that never comes ends with too few of them.
        alarm = threading.Timer(SOON.total_seconds(), query.close)
        alarm.start()
        try:
            yield query
        finally:
            alarm.cancel()
            query.close()

    def changes(self, text: str, count: int, **settings: object) -> list[ResultRow]:
        """Returns the first rows of a push query from the beginning."""
        with self.pushed(text, reset="earliest", **settings) as query:
            return list(islice(query.rows, count))

    def close(self) -> None:
        self.host.close()
        self.tables.close()
        self.log.close()


def _select(text: str) -> SelectQuery:
    statement = parse_statement(text)
    assert isinstance(statement, SelectQuery)
    return statement
