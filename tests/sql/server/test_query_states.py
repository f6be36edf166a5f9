"""States of persistent queries, as clients see them: their start, their lag, their failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.app.engine import Engine, local_engine
from headrace.batches.batch_engine import BatchEngine
from headrace.config import StreamsConfig
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology
from tests.sql.server import hanging
from tests.sql.server.kit import SOON, Client, SqlPlace, until

SOURCE = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2);"
MODULES = {"ksql.functions.python.modules": "tests.sql.server"}
EARLIEST = {"auto.offset.reset": "earliest"}


def states(client: Client) -> list[str]:
    return [each["state"] for each in client.ksql("SHOW QUERIES;")[0]["queries"]]


def details(client: Client) -> dict[str, Any]:
    [found] = client.ksql("SHOW QUERIES EXTENDED;")[0]["queryDescriptions"]
    return dict(found)


@pytest.fixture
def hanging_query(place: SqlPlace) -> Iterator[Client]:
    """A server whose query has begun with its first micro-batch, of one record, and hangs in it."""
    hanging.entered.clear()
    hanging.gate.clear()
    client = place.server({**MODULES, "ksql.functions.python.timeout.ms": 60_000})
    client.ksql(f"{SOURCE} CREATE FUNCTION HANG AS 'tests.sql.server.hanging:block'; INSERT INTO S VALUES (1, 10);")
    client.ksql("CREATE STREAM T AS SELECT K, HANG(V) AS V FROM S;", streamsProperties=EARLIEST)
    assert hanging.entered.wait(SOON.total_seconds())
    yield client
    hanging.gate.set()


def test_query_is_starting_until_its_first_commit(hanging_query: Client) -> None:
    assert states(hanging_query) == ["STARTING"]
    # Where it reads from is settled with the first commit.
    assert details(hanging_query)["lag"] is None
    hanging.gate.set()
    hanging_query.settle()
    assert states(hanging_query) == ["RUNNING"]
    assert (details(hanging_query)["lag"], details(hanging_query)["restarts"]) == (0, 0)


def test_query_without_input_runs_as_well(client: Client) -> None:
    client.ksql(f"{SOURCE} CREATE STREAM T AS SELECT * FROM S;")
    until(lambda: states(client) == ["RUNNING"])


def test_lag_is_what_a_query_has_not_read(client: Client) -> None:
    client.ksql(f"{SOURCE} CREATE STREAM T AS SELECT * FROM S; INSERT INTO S VALUES (1, 1);")
    client.settle()
    client.ksql("PAUSE CSAS_T_0;")
    for key in range(5):
        client.ksql(f"INSERT INTO S VALUES ({key}, 1);")
    assert states(client) == ["PAUSED"]
    assert details(client)["lag"] == 5
    [summary] = client.ksql("DESCRIBE T EXTENDED;")[0]["sourceDescription"]["queryOffsetSummaries"]
    assert summary["groupId"] == "default_query_CSAS_T_0"
    [topic] = summary["topicSummaries"]
    assert topic["kafkaTopic"] == "s"
    assert [each["partition"] for each in topic["offsets"]] == [0, 1]
    assert sum(each["logEndOffset"] - each["consumerOffset"] for each in topic["offsets"]) == 5
    assert all(each["logStartOffset"] == 0 for each in topic["offsets"])


def test_failures_and_restarts_are_told(place: SqlPlace) -> None:
    client = place.server(MODULES)
    client.ksql(f"{SOURCE} CREATE FUNCTION REFUSE AS 'tests.sql.server.failing:Refuse';")
    begun_ms = time.time() * 1000
    client.ksql(
        "CREATE TABLE T AS SELECT K, REFUSE(CAST(V AS BIGINT)) AS V FROM S GROUP BY K; INSERT INTO S VALUES (1, 1234);"
    )
    until(lambda: details(client)["restarts"] >= 2)
    assert states(client) == ["ERROR"]
    found = details(client)
    # As many as there were, unless another one came between the two lines.
    assert 2 <= len(found["queryErrors"]) <= found["restarts"]
    assert all("1234 is too much" in error["errorMessage"] for error in found["queryErrors"])
    times = [error["timestamp"] for error in found["queryErrors"]]
    assert times == sorted(times)
    assert begun_ms <= times[0] <= time.time() * 1000
    shown = client.http.get("/console/api/queries/CTAS_T_0").json()
    assert shown["restarts"] >= found["restarts"]


class CountedStarts:
    """Engines in this process that count how many of them start at the same time, and wait for leave to commit."""

    def __init__(self) -> None:
        self.leave = threading.Semaphore(0)
        self.starting: set[str] = set()
        self.most = 0

    def __call__(
        self, topology: Topology, config: StreamsConfig, log: DurableLog, *, listener: Any, directory: Path
    ) -> Engine:
        name = config.application_id
        counted = self

        class Told:
            def on_started(self) -> None:
                counted.leave.acquire()
                counted.starting.discard(name)
                listener.on_started()

            def on_batch(self, batch: Any) -> None:
                listener.on_batch(batch)

            def on_restores(self, tasks: Any) -> None:
                listener.on_restores(tasks)

            def on_moves(self, tasks: Any) -> None:
                listener.on_moves(tasks)

        self.starting.add(name)
        self.most = max(self.most, len(self.starting))
        made = local_engine(topology, config, log, listener=Told(), directory=directory)
        assert isinstance(made, BatchEngine)
        return made


def test_starts_are_staggered(place: SqlPlace) -> None:
    first = place.server()
    first.ksql(SOURCE + "".join(f"CREATE STREAM T{number} AS SELECT * FROM S;" for number in range(30)))
    first.settle()
    first.close()
    engines = CountedStarts()
    again = place.server(engine=engines)

    def count() -> Mapping[str, int]:
        found = states(again)
        return {state: found.count(state) for state in found}

    until(lambda: len(engines.starting) == 8)
    assert count() == {"STARTING": 30}
    engines.leave.release()
    until(lambda: count() == {"STARTING": 29, "RUNNING": 1})
    for _ in range(29):
        engines.leave.release()
    until(lambda: count() == {"RUNNING": 30})
    assert engines.most == 8
