"""A server for one case, and how the case talks to it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from headrace import EmbeddedLog, StreamsConfig
from headrace.app.engine import local_engine
from headrace.sql.catalog import SourceDefinition
from headrace.sql.hosting.progress import wait_until_read
from headrace.sql.server.sql_server import SqlServer
from headrace.topics.log import Output, Raw, TopicLog
from qtt_cases.case import Case
from qtt_cases.driving import known_topics, record_output
from qtt_cases.registry import RegistryForCase
from qtt_cases.wire import Wire

_SETTINGS: dict[str, Any] = {
    "log.sync": "none",
    "statestore.cache.max.bytes": 0,
    "ksql.streams.auto.offset.reset": "earliest",
    "auto.offset.reset": "earliest",
    "ksql.query.push.v2.enabled": True,
    "ksql.query.pull.table.scan.enabled": True,
    # The cases expect ksqlDB's limits.
    "ksql.query.pull.extensions.enabled": False,
}
_SPARK = {"spark.master": "local[1,1]", "spark.driver.memory": "1g"}
PROTOBUF = "application/vnd.ksql.v1+protobuf"


@dataclass
class Answer:
    """What came back: a status of HTTP and what the body holds."""

    status: int
    body: Any


@dataclass
class Running:
    """A server that runs, and the case it is for."""

    server: SqlServer
    client: httpx.Client
    case: Case
    patience: timedelta
    sources: list[SourceDefinition] = field(default_factory=list)

    @property
    def log(self) -> TopicLog:
        return self.server.log

    def post(self, path: str, text: str, *, accept: str = "application/vnd.ksql.v1+json") -> Answer:
        properties = {**self.case["properties"]}
        body = {"ksql": text, "streamsProperties": properties}
        sent = json.dumps(body, default=str)
        headers = {"Accept": accept, "Content-Type": "application/vnd.ksql.v1+json"}
        found = self.client.post(path, content=sent, headers=headers)
        return Answer(found.status_code, json.loads(found.content, parse_float=Decimal))

    def wire(self, topic: str) -> Wire | None:
        """Returns how a topic is written: as the source says that was defined first on it."""
        found = [source for source in self.server.service.engine.catalog.sources.values() if source.topic == topic]
        return Wire(found[0]) if found else None

    def feed(self) -> None:
        """Writes the records of the case."""
        for record in self.case["inputs"]:
            wire = self.wire(record["topic"])
            assert wire is not None, f"no source reads '{record['topic']}'"
            output: Output = record_output(wire, record)
            self.log.append(record["topic"], [output])

    def settle(self) -> None:
        """Waits until all persistent queries have processed what is there."""
        host = self.server.host
        queries = self.server.service.engine.catalog.queries.values()
        waiting = {host.application_id(query.id): query.source_topics for query in queries}
        if not wait_until_read(self.log, waiting, self.patience):
            states = [(query.id, host.status(query.id)) for query in queries]
            message = f"queries have not read their topics in {self.patience}: {states}"
            raise TimeoutError(message)

    def records(self, topic: str, wanted: int) -> list[Raw]:
        """Returns the records of a topic, as soon as there are so many, in the order of their timestamps."""
        deadline = time.monotonic() + self.patience.total_seconds()
        while True:
            partitions = range(self.log.describe_topic(topic).partitions)
            found = [raw for partition in partitions for raw in self.log.read(topic, partition, 0)]
            if len(found) >= wanted or time.monotonic() > deadline:
                return found
            time.sleep(0.01)

    def wait_for_push_query(self, done: threading.Event) -> None:
        """Waits until a push query is open, or has ended already."""
        deadline = time.monotonic() + self.patience.total_seconds()
        endpoint = self.server.application.state.endpoint
        while not endpoint.push_queries() and not done.is_set() and time.monotonic() < deadline:
            time.sleep(0.005)


@contextmanager
def spark_kept_open() -> Iterator[None]:
    """Keeps Spark's context and its Python workers from case to case: starting them takes longer than most cases."""
    # An import here: the other engine needs no pyspark.
    from headrace.spark.context import close_context, open_context

    with TemporaryDirectory(prefix="rest-spark-") as folder:
        context = open_context(StreamsConfig.of(_SPARK), directory=Path(folder))
        try:
            yield
        finally:
            close_context(context)


@contextmanager
def serving(case: Case, engine: str, patience: timedelta) -> Iterator[Running]:
    """Starts a server with a log of its own, in which the topics of the case are."""
    registry = RegistryForCase(case) if case["needsSchemaRegistry"] else None
    with TemporaryDirectory(prefix="rest-") as folder:
        log = EmbeddedLog(Path(folder) / "log", sync="none")
        for name, partitions in known_topics(case).topics.items():
            log.create_topic(name, partitions=partitions)
        settings = {**_SETTINGS, "state.dir": folder, **(_SPARK if engine == "spark" else {})}
        server = SqlServer(
            settings,
            listen="localhost:0",
            log=log,
            engine=None if engine == "spark" else local_engine,
            registry=None if registry is None else registry.registry,
        )
        try:
            server.start()
            with httpx.Client(base_url=server.url, timeout=patience.total_seconds()) as client:
                yield Running(server, client, case, patience)
        finally:
            server.stop()
            log.close()
