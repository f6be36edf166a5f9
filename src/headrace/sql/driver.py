"""``SqlTestDriver``: statements tried out in this process, row by row, without a log and without a server."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from headrace.config import StreamsConfig
from headrace.handlers import LogAndContinueExceptionHandler
from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import SourceDefinition
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.errors import SqlError
from headrace.sql.functions.registry import FunctionRegistry
from headrace.sql.insert_values import InsertedRecord
from headrace.sql.planning.sources import FromSource
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.record_rows import RecordRows, Unreadable
from headrace.sql.server.inserting_rows import row_record
from headrace.sql.server.json_rows import row_writer
from headrace.sql.sql_engine import Executed, SqlEngine
from headrace.sql.types.schema import Schema
from headrace.testing import TopologyTestDriver
from headrace.topics.log import Output


@dataclass(frozen=True)
class TestRow:
    """A row of a stream or a table, as it was written to its topic."""

    __test__ = False  # or pytest takes it for a test

    # Any: what JSON holds; numbers with a fraction are decimals, so that none of their digits is lost.
    columns: Mapping[str, Any]
    """All columns by name. Those of a deleted row's value are None."""
    timestamp_ms: int
    window: tuple[int, int] | None = None
    """Start and end in milliseconds, if the keys of the source have windows."""
    deleted: bool = False
    """Whether it says that the row with this key is gone."""


class SqlTestDriver:
    """Carries out statements and runs their queries, each row through all queries before the next one.

    Rows that were inserted before a query was created are read by it, too. Whatever has no timestamp gets 0.
    ``wall_clock_ms`` is what UNIX_TIMESTAMP() and UNIX_DATE() of queries go by: the time at which a query was created
    unless one is given.

    >>> driver = SqlTestDriver('''
    ...     CREATE STREAM clicks (who STRING KEY, page STRING) WITH (KAFKA_TOPIC='clicks', FORMAT='JSON');
    ...     CREATE TABLE counts AS SELECT who, COUNT(*) AS n FROM clicks GROUP BY who;
    ... ''')
    >>> driver.insert("CLICKS", {"who": "ada", "page": "/"})
    >>> _ = driver.execute("INSERT INTO clicks VALUES ('ada', '/help');")
    >>> [row.columns for row in driver.rows("COUNTS")]
    [{'WHO': 'ada', 'N': 1}, {'WHO': 'ada', 'N': 2}]
    """

    def __init__(
        self,
        text: str = "",
        *,
        settings: Mapping[str, object] | None = None,
        functions: FunctionRegistry | None = None,
        registry: SchemaRegistry | None = None,
        wall_clock_ms: int | None = None,
    ) -> None:
        self.engine = SqlEngine(functions, settings, registry=registry)
        self._wall_clock_ms = wall_clock_ms
        self._history: list[tuple[str, Output]] = []
        self._queries: dict[str, tuple[PersistentQuery, TopologyTestDriver]] = {}
        self._unread: dict[str, int] = {}
        if text:
            self.execute(text)

    def execute(self, text: str, overrides: Mapping[str, object] | None = None) -> tuple[Executed, ...]:
        """Carries out statements; ``overrides`` are settings for this call only."""
        found: list[Executed] = []
        for done in self.engine.execute_each(text, overrides):
            if done.record is not None:
                self._insert(done.record, 0)
            self._follow_catalog()
            found.append(done)
        return tuple(found)

    def insert(self, source: str, row: Mapping[str, Any], *, timestamp_ms: int = 0) -> None:
        """Writes a row, given as JSON would have it; columns that it does not name are NULL."""
        definition = self.source(source)
        self._insert(row_record(_exact(row), definition, self.engine.functions, self.engine.settings), timestamp_ms)

    def delete(self, source: str, key: Mapping[str, Any], *, timestamp_ms: int = 0) -> None:
        """Deletes the row of a table with this key."""
        record = row_record(_exact(key), self.source(source), self.engine.functions, self.engine.settings)
        self._insert(InsertedRecord(record.topic, record.key, None, None), timestamp_ms)

    def rows(self, source: str) -> list[TestRow]:
        """Returns the rows that were written to a stream or a table since the last call, in order."""
        definition = self.source(source)
        start = self._unread.get(definition.name, 0)
        self._unread[definition.name] = len(self._history)
        read = _Reading(definition, Typing(self.engine.functions, self.engine.settings, self.engine.catalog.types))
        found = [
            read(offset, output)
            for offset, (topic, output) in enumerate(self._history[start:], start)
            if topic == definition.topic
        ]
        return [row for row in found if row is not None]

    def source(self, name: str) -> SourceDefinition:
        """Returns a stream or a table; raises ``SqlError`` if there is none of that name."""
        catalog = self.engine.catalog
        return catalog.find(name) or catalog.source(name.upper())

    def close(self) -> None:
        """Ends all queries."""
        for _, driver in self._queries.values():
            driver.close()
        self._queries.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _insert(self, record: InsertedRecord, timestamp_ms: int) -> None:
        time_ms = timestamp_ms if record.timestamp_ms is None else record.timestamp_ms
        self._write(record.topic, (None, time_ms, record.key, record.value, ()))

    def _write(self, topic: str, output: Output) -> None:
        waiting = deque([(topic, output)])
        while waiting:
            topic, output = waiting.popleft()
            self._history.append((topic, output))
            for query, driver in self._queries.values():
                if topic in query.source_topics:
                    waiting.extend(_pipe_output(query, driver, topic, output))

    def _follow_catalog(self) -> None:
        """Starts and ends queries, so that those of the catalogue run."""
        wanted = self.engine.catalog.queries
        for query_id, (query, driver) in list(self._queries.items()):
            if wanted.get(query_id) is not query:
                driver.close()
                del self._queries[query_id]
        for query in wanted.values():
            if query.id in self._queries:
                continue
            driver = TopologyTestDriver(query.topology, _CONFIG, initial_wall_clock_ms=self._wall_clock_ms)
            self._queries[query.id] = (query, driver)
            for topic, output in list(self._history):
                if topic in query.source_topics:
                    for sink, written in _pipe_output(query, driver, topic, output):
                        self._write(sink, written)


_CONFIG = StreamsConfig.of(
    {
        "application.id": "sql-test",
        "statestore.cache.max.bytes": 0,
        # As a server does it: a record that is not what its source declares is reported and left out.
        "deserialization.exception.handler": LogAndContinueExceptionHandler(),
    }
)


def _pipe_output(
    query: PersistentQuery, driver: TopologyTestDriver, topic: str, output: Output
) -> list[tuple[str, Output]]:
    _, timestamp_ms, key, value, headers = output
    driver.pipe_raw(topic, key, value, timestamp_ms=timestamp_ms, headers=headers)
    found = driver.take_outputs(query.sink_topic, driver.unread(query.sink_topic))
    return [(query.sink_topic, (None, *each[1:])) for each in found]


class _Reading:
    """Makes rows of the records of a source."""

    def __init__(self, definition: SourceDefinition, typing: Typing) -> None:
        source = FromSource(definition.name, definition)
        self._rows = RecordRows(source, typing)
        self._names = list(source.columns)
        self._first = len(self._names) - len(definition.schema.columns)
        self._is_windowed = source.is_windowed
        self._write = row_writer(Schema(tuple(source.columns.values())))

    def __call__(self, offset: int, output: Output) -> TestRow | None:
        _, timestamp_ms, key, value, headers = output
        try:
            found = self._rows.row(0, offset, timestamp_ms, key, value, headers)
            row = self._rows.key_row(0, offset, timestamp_ms, key) if found is None else found
        except Unreadable:
            return None
        written = json.loads(self._write(row), parse_float=Decimal)
        columns = dict(zip(self._names, written, strict=True))
        window = (columns["WINDOWSTART"], columns["WINDOWEND"]) if self._is_windowed else None
        declared = {name: columns[name] for name in self._names[self._first :]}
        return TestRow(declared, row[0], window, found is None)


def _exact(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row as a decoder of JSON gives it that loses no digits."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(row, default=_number), parse_float=Decimal)
    except TypeError as error:
        message = f"a row must be made of what JSON has: {error}"
        raise SqlError(message) from error
    return found


def _number(value: object) -> object:
    if isinstance(value, Decimal):
        # A text is as good as a number to a DECIMAL, and loses nothing.
        return str(value)
    message = f"{type(value).__name__} is not JSON"
    raise TypeError(message)
