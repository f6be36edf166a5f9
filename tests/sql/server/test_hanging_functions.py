"""Functions that never return: they hold up their own query, and nothing else."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.sql.server import hanging
from tests.sql.server.kit import SOON, Client, SqlPlace, until
from tests.sql.server.process import ServerProcess

ALLOWED = "ksql.functions.python.modules"
SETUP = (
    "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    "CREATE FUNCTION HANG AS 'tests.sql.server.hanging:{function}';"
)
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture(params=["block", "spin"])
def client(place: SqlPlace, request: pytest.FixtureRequest) -> Iterator[Client]:
    hanging.entered.clear()
    hanging.gate.clear()
    limits = {"ksql.functions.python.timeout.ms": 300, "ksql.streams.shutdown.timeout.ms": 300}
    made = place.server({ALLOWED: "tests.sql.server", **limits})
    made.ksql(SETUP.format(function=request.param))
    yield made
    # The server stops while they hang; what they do later must find nothing to disturb.
    made.close()
    hanging.gate.set()


@contextmanager
def read(client: Client, text: str) -> Iterator[tuple[str, list[str], threading.Thread]]:
    """Gives the id of a query that hangs, the lines of its answer, and the thread that reads them."""
    lines: list[str] = []
    first = threading.Event()

    def follow() -> None:
        body = {"sql": text, "properties": EARLIEST}
        with httpx.stream("POST", f"{client.server.url}/query-stream", json=body, timeout=None) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                first.set()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        assert first.wait(SOON.total_seconds())
        assert hanging.entered.wait(SOON.total_seconds())
        yield json.loads(lines[0])["queryId"], lines, thread
    finally:
        hanging.gate.set()
        thread.join(SOON.total_seconds())


def test_persistent_query_is_dropped_while_its_function_hangs(client: Client) -> None:
    client.ksql(
        "CREATE STREAM STUCK AS SELECT K, HANG(V) AS V FROM S; CREATE STREAM FREE AS SELECT K, V + 1 AS V FROM S;"
        "INSERT INTO S VALUES (1, 10);"
    )
    assert hanging.entered.wait(SOON.total_seconds())
    until(lambda: client.values("FREE") == [{"V": 11}])
    until(lambda: [each["state"] for each in client.ksql("SHOW QUERIES;")[0]["queries"]][1] == "RUNNING")
    assert len(client.query("SELECT * FROM S;")) == 3
    client.ksql("PAUSE CSAS_STUCK_0; RESUME CSAS_STUCK_0; TERMINATE CSAS_STUCK_0;")
    hanging.gate.set()
    # What comes back now is nobody's any more.
    until(lambda: not any("CSAS_STUCK_0" in thread.name for thread in threading.enumerate()))
    assert client.values("STUCK") == []
    client.ksql("DROP STREAM STUCK DELETE TOPIC;")
    assert "STUCK" not in client.server.log.topics()


def test_query_that_was_replaced_goes_on_when_the_function_returns(client: Client) -> None:
    client.ksql("CREATE STREAM STUCK AS SELECT K, HANG(V) AS V FROM S; INSERT INTO S VALUES (1, 10);")
    assert hanging.entered.wait(SOON.total_seconds())
    client.ksql("CREATE OR REPLACE STREAM STUCK AS SELECT K, HANG(V) AS V FROM S WHERE V > 0;")
    hanging.gate.set()
    until(lambda: client.values("STUCK") == [{"V": 10}])


@pytest.mark.parametrize(
    "text",
    ["SELECT K, HANG(V) FROM S EMIT CHANGES;", "SELECT K, SUM(HANG(V)) FROM S GROUP BY K EMIT CHANGES;"],
)
def test_push_query_is_terminated_while_its_function_hangs(client: Client, text: str) -> None:
    client.ksql("INSERT INTO S VALUES (1, 10);")
    with read(client, text) as (query_id, lines, thread):
        listed = client.ksql("SHOW QUERIES;")[0]["queries"]
        assert [(each["id"], each["queryType"], each["queryString"]) for each in listed] == [(query_id, "PUSH", text)]
        [answer] = client.ksql(f"TERMINATE {query_id};")
        assert (answer["@type"], answer["queryId"], answer["wasTerminated"]) == ("terminate_query", query_id, True)
        thread.join(SOON.total_seconds())
        assert not thread.is_alive()
        assert len(lines) == 1
        assert client.ksql("SHOW QUERIES;")[0]["queries"] == []
        assert client.server.log.topics() == ["_headrace_sql_default__commands", "_headrace_sql_default__servers", "s"]


def test_query_of_the_console_is_terminated_while_its_function_hangs(client: Client) -> None:
    client.ksql("INSERT INTO S VALUES (1, 10);")
    body = {"sql": "SELECT K, HANG(V) FROM S EMIT CHANGES; SHOW STREAMS;", "settings": EARLIEST}
    with client.http.stream("POST", "/console/api/run", json=body) as answer:
        lines = answer.iter_lines()
        assert "statement" in json.loads(next(lines))
        query_id = json.loads(next(lines))["query_id"]
        assert hanging.entered.wait(SOON.total_seconds())
        client.ksql(f"TERMINATE {query_id};")
        assert [next(iter(json.loads(line))) for line in lines] == ["done", "session"]


def test_pull_query_is_closed_while_its_function_hangs(client: Client) -> None:
    client.ksql("INSERT INTO S VALUES (1, 10);")
    with read(client, "SELECT HANG(V) FROM S;") as (query_id, lines, thread):
        assert client.http.post("/close-query", json={"queryId": query_id}).status_code == 200
        thread.join(SOON.total_seconds())
        assert not thread.is_alive()
        assert len(lines) == 1


@pytest.mark.parametrize(
    ("text", "path"),
    [("INSERT INTO S VALUES (HANG(1), 1);", "/ksql"), ("SELECT * FROM N WHERE K = HANG(1);", "/query")],
)
def test_statement_does_not_wait_for_ever_for_one_value(client: Client, text: str, path: str) -> None:
    client.ksql("CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;")
    status, error = client.error(text, path)
    assert (status, error["error_code"]) == (400, 40001)
    assert "Failed to evaluate HANG(1) for column K: it has not returned within 0.3 s" in error["message"]


def test_process_ends_while_a_function_hangs(tmp_path: Path, start: Callable[..., ServerProcess]) -> None:
    process = start(tmp_path, f"{ALLOWED}=tests.sql.server")
    setup = SETUP.format(function="block")
    text = f"{setup} CREATE STREAM STUCK AS SELECT K, HANG(V) AS V FROM S; INSERT INTO S VALUES (1, 10);"
    assert httpx.post(f"{process.url}/ksql", json={"ksql": text}, timeout=60).status_code == 200
    assert process.end(signal.SIGTERM) == 0
