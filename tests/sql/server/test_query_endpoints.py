"""The endpoints of queries: shapes of answers, and what ends a query."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from base64 import b64decode
from typing import Any
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from tests.sql.server.kit import SOON, Client

SETUP = (
    "CREATE STREAM S (K INT KEY, V STRING, P DECIMAL(4, 2)) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    "CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;"
    "INSERT INTO S VALUES (1, 'a', 1.5); INSERT INTO S VALUES (2, 'a', 2); INSERT INTO S VALUES (3, 'b', NULL);"
)
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture
def filled(client: Client) -> Client:
    client.ksql(SETUP)
    client.settle()
    return client


def _opened(client: Client) -> tuple[str, ...]:
    found: tuple[str, ...] = client.server.application.state.endpoint.push_queries()
    return found


def _wait_until_closed(client: Client) -> None:
    deadline = time.monotonic() + SOON.total_seconds()
    while _opened(client):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_pull_query_answers_header_and_rows(filled: Client) -> None:
    header, row = filled.query("SELECT V, N FROM N WHERE V = 'a';")
    assert header["header"]["schema"] == "`V` STRING KEY, `N` BIGINT"
    assert row == {"row": {"columns": ["a", 2]}}


def test_push_query_ends_with_its_limit(filled: Client) -> None:
    parts = filled.query("SELECT K, P FROM S EMIT CHANGES LIMIT 3;", **EARLIEST)
    assert [part["row"]["columns"] for part in parts[1:-1]] == [[1, 1.5], [2, 2.0], [3, None]]
    assert parts[-1] == {"finalMessage": "Limit Reached"}
    _wait_until_closed(filled)


def test_query_stream_is_delimited(filled: Client) -> None:
    body = {"sql": "SELECT K, P FROM S EMIT CHANGES LIMIT 2;", "properties": EARLIEST}
    found = filled.http.post("/query-stream", json=body)
    assert found.headers["content-type"].startswith("application/vnd.ksqlapi.delimited.v1")
    header, *rows = found.text.splitlines()
    assert json.loads(header)["columnNames"] == ["K", "P"]
    assert json.loads(header)["columnTypes"] == ["INTEGER", "DECIMAL(4, 2)"]
    assert rows == ["[1,1.50]", "[2,2.00]"]


def test_query_stream_as_one_array(filled: Client) -> None:
    body = {"sql": "SELECT V, N FROM N WHERE V = 'b';"}
    found = filled.http.post("/query-stream", json=body, headers={"Accept": "application/json"})
    header, row = found.json()
    assert (header["columnNames"], row) == (["V", "N"], ["b", 1])


def test_rows_as_protobuf(filled: Client) -> None:
    headers = {"Accept": "application/vnd.ksql.v1+protobuf"}
    found = filled.http.post("/query", json={"ksql": "SELECT V, N FROM N WHERE V = 'a';"}, headers=headers).json()
    assert "int64 N = 2;" in found[0]["header"]["protoSchema"]
    assert b64decode(found[1]["row"]["protobufBytes"]) == b"\n\x01a\x10\x02"


def test_columns_that_protobuf_cannot_name_are_refused(filled: Client) -> None:
    headers = {"Accept": "application/vnd.ksql.v1+protobuf"}
    found = filled.http.post("/query", json={"ksql": "SELECT V AS `a b` FROM N WHERE V = 'a';"}, headers=headers)
    assert found.status_code == 400
    assert "does not support the name 'a b'" in found.json()["message"]


def test_unknown_form_of_answer_is_refused(filled: Client) -> None:
    found = filled.http.post("/query", json={"ksql": "SELECT * FROM N;"}, headers={"Accept": "text/html"})
    assert found.status_code == 406


def test_close_query_ends_it(filled: Client) -> None:
    lines: list[str] = []
    first = threading.Event()

    def read() -> None:
        body = {"sql": "SELECT K FROM S EMIT CHANGES;", "properties": EARLIEST}
        with filled.http.stream("POST", "/query-stream", json=body) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                first.set()

    thread = threading.Thread(target=read)
    thread.start()
    assert first.wait(SOON.total_seconds())
    found = filled.http.post("/close-query", json={"queryId": json.loads(lines[0])["queryId"]})
    assert found.status_code == 200
    thread.join(SOON.total_seconds())
    assert not thread.is_alive()
    assert not _opened(filled)


def test_query_that_nobody_reads_ends(filled: Client) -> None:
    body = {"ksql": "SELECT K FROM S EMIT CHANGES;", "streamsProperties": EARLIEST}
    with filled.http.stream("POST", "/query", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert len(_opened(filled)) == 1
    _wait_until_closed(filled)


def test_websocket_sends_columns_and_rows(filled: Client) -> None:
    request = {"ksql": "SELECT K, V FROM S EMIT CHANGES LIMIT 2;", "streamsProperties": EARLIEST}
    url = f"{filled.server.url.replace('http', 'ws')}/ws/query?request={quote(json.dumps(request))}"
    with connect(url) as socket:
        messages = [json.loads(message) for message in socket]
        assert socket.close_code == 1000
    assert [column["name"] for column in messages[0]] == ["K", "V"]
    assert [message["row"]["columns"] for message in messages[1:3]] == [[1, "a"], [2, "a"]]


def test_websocket_tells_what_is_wrong(filled: Client) -> None:
    request = {"ksql": "SELECT * FROM NOPE;"}
    url = f"{filled.server.url.replace('http', 'ws')}/ws/query?request={quote(json.dumps(request))}"
    with connect(url) as socket:
        with pytest.raises(ConnectionClosedError, match="NOPE"):
            socket.recv()
        assert socket.close_code == 1003


@pytest.mark.parametrize("text", ["SHOW STREAMS;", "", "SELECT * FROM N; SELECT * FROM N;", "SELECT * FROM NOPE;"])
def test_only_one_query_can_be_read(filled: Client, text: str) -> None:
    status, error = filled.error(text, "/query")
    assert (status, error["@type"], error["error_code"]) == (400, "statement_error", 40001)


@pytest.mark.parametrize("leaving", ["closed", "aborted"])
def test_websocket_notices_that_its_client_has_gone(client: Client, leaving: str) -> None:
    client.ksql(SETUP)
    # No row ever comes, so nothing is sent that could fail.
    request = json.dumps({"ksql": "SELECT K, V FROM S EMIT CHANGES;"})
    url = f"{client.server.url.replace('http', 'ws')}/ws/query?request={quote(request)}"
    with connect(url) as opened:
        assert json.loads(opened.recv(SOON.total_seconds()))
        assert len(client.server.service.open_queries.push_queries()) == 1
        if leaving == "aborted":
            opened.socket.shutdown(socket.SHUT_RDWR)
    _wait_until_closed(client)


@pytest.mark.parametrize("path", ["/query", "/query-stream", "/console/api/run"])
def test_query_whose_client_left_before_the_answer_began_is_ended(client: Client, path: str) -> None:
    client.ksql(SETUP)
    text = "SELECT K, V FROM S EMIT CHANGES;"
    body = json.dumps({"ksql": text, "sql": text}).encode()

    async def ask() -> None:
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(messages, {"type": "http.disconnect"})

        async def send(_message: Any) -> None:
            return

        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await client.server.application(scope, receive, send)

    asyncio.run(ask())
    _wait_until_closed(client)
