"""A server of SQL in this process, and a client of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from headrace import EmbeddedLog
from headrace.app.engine import EngineFactory, local_engine
from headrace.sql.hosting.progress import wait_until_read, wait_until_started
from headrace.sql.server.sql_server import SqlServer
from headrace.topics.journal import DurableLog
from headrace.topics.log import Raw

SOON = timedelta(seconds=60)
"""After which a test is taken to hang."""


def until(condition: Callable[[], bool]) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + SOON.total_seconds()
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class SqlPlace:
    """A log in a directory, and servers on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log: DurableLog = EmbeddedLog(directory / "log", sync="none")
        self.clients: list[Client] = []

    def server(
        self, settings: Mapping[str, Any] | None = None, *, engine: EngineFactory | None = local_engine
    ) -> Client:
        given = {"state.dir": str(self.directory), "log.sync": "none", **(settings or {})}
        server = SqlServer(given, listen="localhost:0", log=self.log, engine=engine).start()
        client = Client(server)
        self.clients.append(client)
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.log.close()


class Client:
    """What a test says to a server."""

    def __init__(self, server: SqlServer) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.url, timeout=SOON.total_seconds())

    def close(self) -> None:
        """Stops the server as well."""
        self.http.close()
        self.server.stop()

    def ksql(self, text: str, **body: Any) -> list[Any]:
        """Returns the answers of statements, which must not fail."""
        found = self.http.post("/ksql", json={"ksql": text, **body})
        assert found.status_code == 200, found.text
        answers: list[Any] = found.json()
        return answers

    def error(self, text: str, path: str = "/ksql", **body: Any) -> tuple[int, dict[str, Any]]:
        """Returns status and body of statements that must fail."""
        found = self.http.post(path, json={"ksql": text, **body})
        assert found.status_code != 200, found.text
        return found.status_code, found.json()

    def query(self, text: str, **properties: Any) -> list[Any]:
        """Returns all parts of the answer of a query, which must not fail."""
        found = self.http.post("/query", json={"ksql": text, "streamsProperties": properties})
        assert found.status_code == 200, found.text
        parts: list[Any] = found.json()
        return parts

    def settle(self) -> None:
        """Waits until all persistent queries have read everything."""
        host = self.server.host
        queries = self.server.service.engine.catalog.queries.values()
        waiting = {host.application_id(query.id): query.source_topics for query in queries}
        states = [host.status(query.id) for query in queries]
        assert wait_until_read(self.server.log, waiting, SOON), states
        assert wait_until_started(host, [query.id for query in queries], SOON), states

    def records(self, topic: str) -> list[Raw]:
        log = self.server.log
        return [raw for each in range(log.describe_topic(topic).partitions) for raw in log.read(topic, each, 0)]

    def values(self, topic: str) -> Sequence[Any]:
        """Returns the values of a topic's records, which are JSON."""
        return [None if raw[3] is None else json.loads(raw[3]) for raw in self.records(topic)]
