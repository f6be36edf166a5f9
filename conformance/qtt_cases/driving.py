"""Runs the queries of a case, one after the other, with the records of the case."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace import StreamsConfig
from headrace.handlers import LogAndContinueExceptionHandler
from headrace.sql.catalog import SourceDefinition
from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.catalog.topic_directory import KnownTopics
from headrace.sql.sql_engine import SqlEngine
from headrace.testing import TopologyTestDriver
from headrace.topics.log import Output
from qtt_cases.case import Case
from qtt_cases.registry import RegistryForCase
from qtt_cases.test_functions import with_test_functions
from qtt_cases.wire import Wire

PARTITIONS = 4
"""How many partitions topics have that a case does not describe."""
_TOPIC = re.compile(r"kafka_topic\s*=\s*'([^']*)'", re.IGNORECASE)
_CREATES = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?(SOURCE\s+)?(STREAM|TABLE)\b", re.IGNORECASE)
_QUERY = re.compile(r"\bAS\s+SELECT\b", re.IGNORECASE)

RunQuery = Callable[[PersistentQuery, list[tuple[str, Output]]], list[Output]]
"""Runs a query with records of its topics, in order; returns what it wrote to its sink."""


@dataclass
class Run:
    """What came of a case."""

    engine: SqlEngine
    queries: list[PersistentQuery] = field(default_factory=list)
    produced: dict[str, list[Output]] = field(default_factory=dict)
    registry: RegistryForCase | None = None
    sources: list[SourceDefinition] = field(default_factory=list)
    """Every source that was ever defined, those that were dropped included."""

    def wire(self, topic: str) -> Wire | None:
        """Returns how a topic is written: as the source says that was defined last on it."""
        found = [source for source in self.sources if source.topic == topic]
        return Wire(found[-1]) if found else None


def prepare(case: Case) -> Run:
    """Carries out the statements of a case; raises what the first wrong one raises."""
    registry = RegistryForCase(case) if case["needsSchemaRegistry"] else None
    engine = SqlEngine(
        with_test_functions(),
        dict(case["properties"]),
        topics=known_topics(case),
        registry=None if registry is None else registry.registry,
    )
    run = Run(engine, registry=registry)
    known: dict[str, SourceDefinition] = {}
    # One text: positions in messages count its lines.
    for done in engine.execute_each("\n".join(case["statements"])):
        if done.query is not None:
            run.queries.append(done.query)
        if done.record is not None:
            record = done.record
            output = (None, record.timestamp_ms or 0, record.key, record.value, ())
            run.produced.setdefault(record.topic, []).append(output)
        for name, source in engine.catalog.sources.items():
            if known.get(name) is not source:
                known[name] = source
                run.sources.append(source)
    return run


def known_topics(case: Case) -> KnownTopics:
    """Returns the topics that are there before the statements run."""
    topics = {topic["name"]: int(topic["partitions"]) for topic in case["topics"] if topic.get("partitions")}
    for statement in case["statements"]:
        if _CREATES.match(statement) and not _QUERY.search(statement):
            for name in _TOPIC.findall(statement):
                found = re.search(r"\bpartitions\s*=\s*(\d+)", statement, re.IGNORECASE)
                topics.setdefault(name, int(found[1]) if found else PARTITIONS)
    return KnownTopics(topics)


def drive(case: Case, run: Run, run_query: RunQuery) -> None:
    """Runs the queries one after the other."""
    for query in run.queries:
        take(run, query.sink_topic, run_query(query, inputs_of(case, run, query)))


def inputs_of(case: Case, run: Run, query: PersistentQuery) -> list[tuple[str, Output]]:
    """Returns what a query is fed: the case's records, then what the queries before it wrote to its other topics."""
    given = {record["topic"] for record in case["inputs"]}
    records = [
        (record["topic"], _output(run, record)) for record in case["inputs"] if record["topic"] in query.source_topics
    ]
    for topic in dict.fromkeys(query.source_topics):
        if topic not in given:
            records.extend((topic, output) for output in run.produced.get(topic, []))
    return records


def take(run: Run, topic: str, outputs: Sequence[Output]) -> None:
    """Notes what a query wrote, for later queries and for the comparison."""
    run.produced.setdefault(topic, []).extend((None, *output[1:]) for output in outputs)


def _output(run: Run, record: dict[str, Any]) -> Output:
    wire = run.wire(record["topic"])
    assert wire is not None  # a query reads the topic, so a source is defined on it
    return record_output(wire, record)


def record_output(wire: Wire, record: dict[str, Any]) -> Output:
    """Returns a record of a case as it is written to its topic."""
    headers = tuple(
        (header["KEY"], None if header["VALUE"] is None else base64.b64decode(header["VALUE"]))
        for header in record.get("headers") or ()
    )
    return (None, int(record.get("timestamp") or 0), wire.key_bytes(record), wire.value_bytes(record), headers)


def config_of(query: PersistentQuery) -> StreamsConfig:
    """Returns the settings of the application that runs a query, with those that the case gives."""
    own = {
        name.removeprefix(_STREAMS): value for name, value in query.settings.items() if name.startswith(_EMIT_INTERVAL)
    }
    return StreamsConfig.of({**_CONFIG, **own})


_STREAMS = "ksql.streams."
_EMIT_INTERVAL = "ksql.streams.__emit.interval.ms."
_CONFIG = {
    "application.id": "qtt",
    "statestore.cache.max.bytes": 0,
    "deserialization.exception.handler": LogAndContinueExceptionHandler(),
}


def run_on_driver(query: PersistentQuery, records: list[tuple[str, Output]]) -> list[Output]:
    """Runs a query in this process, a record at a time."""
    with TopologyTestDriver(query.topology, config_of(query)) as driver:
        for topic, (_, timestamp_ms, key, value, headers) in records:
            driver.pipe_raw(topic, key, value, timestamp_ms=timestamp_ms, headers=headers)
        return driver.take_outputs(query.sink_topic, driver.unread(query.sink_topic))
