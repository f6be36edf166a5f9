"""Statements, rows in and rows out: a query on the test driver, in terms of its columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.serdes import Serde
from headrace.sql.catalog import SourceDefinition
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.formats import format_named
from headrace.sql.planning.build import key_serde_of
from headrace.sql.planning.plan import KeyFormat, KeyWindow
from headrace.sql.sql_engine import SqlEngine
from headrace.testing import TopologyTestDriver

Out = tuple[Any, Any, int | None]
"""Key, row and timestamp of a result. A key of one column is its value; a windowed one has the bounds behind it."""


def planned(*statements: str, **settings: object) -> PersistentQuery:
    """Returns the query of the last statement."""
    engine = SqlEngine(settings={name.replace("_", "."): value for name, value in settings.items()})
    query = None
    for statement in statements:
        for done in engine.execute(statement):
            query = done.query
    assert query is not None, "the last statement starts no query"
    return query


def schema(*statements: str, **settings: object) -> str:
    """Returns the columns of the last statement's result."""
    return str(planned(*statements, **settings).plan.schema)


class Session:
    """One query that runs on the test driver."""

    def __init__(self, query: PersistentQuery, driver: TopologyTestDriver) -> None:
        self.query = query
        self.driver = driver
        sink = query.plan.sink
        self._out = driver.create_output_topic(sink.topic, _key_serde(sink), _value_serde(sink))

    def send(self, source: str, key: Any, row: Any, timestamp_ms: int = 0) -> list[Out]:
        """Pipes one record, and returns what came out because of it."""
        definition = next(one for one in self.query.plan.sources if one.name == source)
        topic = self.driver.create_input_topic(definition.topic, _key_serde(definition), _value_serde(definition))
        topic.pipe_input(_key(key), row, timestamp_ms=timestamp_ms)
        return self.read()

    def read(self) -> list[Out]:
        """Returns what came out since the last call."""
        return [(_plain(one.key), one.value, one.timestamp_ms) for one in self._out.read_records()]


@contextmanager
def running(*statements: str, **settings: object) -> Iterator[Session]:
    """Runs the query of the last statement."""
    query = planned(*statements, **settings)
    with TopologyTestDriver(query.topology, {"emit_interval_ms": 0}) as driver:
        yield Session(query, driver)


def _key(key: Any) -> Any:
    return key if key is None or isinstance(key, tuple) else (key,)


def _plain(key: Any) -> Any:
    window = getattr(key, "window", None)
    if window is not None:
        return (*key.key, window.start_ms, window.end_ms)
    return key[0] if isinstance(key, tuple) and len(key) == 1 else key


def _key_serde(source: SourceDefinition) -> Serde[Any]:
    window = None
    if source.window is not None:
        size = source.window.size
        window = KeyWindow(source.window.kind, None if size is None else round(size.total_seconds() * 1000))
    return key_serde_of(source.schema.key, KeyFormat(source.key_format, source.key_options, window))


def _value_serde(source: SourceDefinition) -> Serde[Any]:
    return format_named(source.value_format).serde(source.schema.value, source.value_options)
