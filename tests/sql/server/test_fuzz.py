"""Random requests that no client would send: the server answers them, and goes on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.sql.server.kit import SOON, Client, SqlPlace

QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
POSTS = ("/ksql", "/query", "/query-stream", "/inserts-stream", "/close-query", "/ksql/terminate", "/heartbeat")
FIELDS = (
    *("ksql", "sql", "streamsProperties", "properties", "sessionVariables", "commandSequenceNumber", "target"),
    *("queryId", "deleteTopicList", "requestProperties", "x"),
)
STREAM = "CREATE STREAM s (k STRING KEY, v STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
TEXTS = (
    *("SHOW STREAMS;", "SHOW QUERIES EXTENDED;", "SHOW PROPERTIES;", "SHOW ALL TOPICS EXTENDED;", "DESCRIBE s;"),
    *("SELECT * FROM s;", "SELECT * FROM", "SELECT COUNT(*) FROM s EMIT CHANGES LIMIT 0;", "PRINT 's' LIMIT 0;"),
    *("DROP STREAM nothing;", "DROP STREAM s;", STREAM, "CREATE STREAM t AS SELECT * FROM s;", "DROP STREAM t;"),
    *("INSERT INTO s VALUES ('a', 'b');", "INSERT INTO s (k) VALUES (1);", "EXPLAIN SELECT 1 FROM s;", "TERMINATE a;"),
    *("DEFINE a = 'b';", "${a}", "SET 'auto.offset.reset'='earliest';", "ASSERT TOPIC s;", "s", ";", "--", "/*", "'"),
)
SURPRISES = ("\ud800", "\x00", "\U0001f600", "1e999", "NaN")

texts = st.sampled_from(TEXTS) | st.sampled_from(SURPRISES) | st.text(max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
whole = st.dictionaries(st.sampled_from(FIELDS), values | st.lists(texts, max_size=3).map("".join), max_size=4)
bodies = whole.map(json.dumps).map(str.encode)
broken = st.tuples(bodies, st.integers(0, 40)).map(lambda pair: pair[0][: -pair[1] or None])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = SqlPlace(Path(tmp_path_factory.mktemp("fuzzed")))
    client = place.server()
    client.ksql(STREAM)
    yield client
    place.close()


def check(status: int, text: str, *, where: object) -> None:
    """Complains about an answer that is a failure of the server, or an error of another shape than ksqlDB's."""
    assert status < 500, (where, text)
    if status >= 400:
        assert {"@type", "error_code", "message"} <= set(json.loads(text)), (where, text)


@QUICK
@given(path=st.sampled_from(POSTS), body=bodies | broken | st.binary(max_size=40))
def test_every_body_is_answered(client: Client, path: str, body: bytes) -> None:
    answer = client.http.post(path, content=body, headers={"Content-Type": "application/json"})
    check(answer.status_code, answer.text, where=(path, body))


@QUICK
@given(
    target=st.sampled_from([b'{"target": "S"}', b'{"target": "S", "properties": {"a": 1}}', b'{"target": 1}', b""]),
    lines=st.lists(values.map(json.dumps).map(str.encode) | st.binary(max_size=20), max_size=4),
)
def test_every_line_of_rows_is_answered(client: Client, target: bytes, lines: list[bytes]) -> None:
    client.http.post("/ksql", json={"ksql": STREAM})
    answer = client.http.post("/inserts-stream", content=b"\n".join([target, *lines]))
    check(answer.status_code, answer.text, where=(target, lines))
    if answer.status_code == 200:
        for line in answer.text.splitlines():
            assert json.loads(line).get("error_code", 40000) < 50000, (lines, line)


@QUICK
@given(request=bodies | broken)
def test_every_request_of_a_websocket_is_answered(client: Client, request: bytes) -> None:
    url = f"{client.server.url.replace('http', 'ws')}/ws/query?request={quote(request)}"
    with connect(url, open_timeout=SOON.total_seconds()) as opened, suppress(ConnectionClosed):
        for _ in opened:
            pass
    assert opened.close_code in (1000, 1003), (request, opened.close_reason)


def _routes(client: Client) -> list[str]:
    found = [route.path for route in client.server.application.routes if isinstance(route, Route)]
    # Those of the page have tests of their own.
    return [path for path in found if not path.startswith("/console")]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"])
def test_every_route_answers_every_method(client: Client, method: str) -> None:
    paths = _routes(client)
    assert {"/ksql", "/query", "/query-stream", "/inserts-stream", "/info", "/healthcheck"} <= set(paths)
    for path in paths:
        filled = path.replace("{name}", "x").replace("{command:path}", "x/y/z")
        answer = client.http.request(method, filled, follow_redirects=False)
        assert answer.status_code < 500, (method, filled, answer.text)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"ksql":' * 50_000,
        b'{"ksql": "SHOW STREAMS;", "commandSequenceNumber": ' + b"9" * 5000 + b"}",
        b'{"ksql": "SHOW STREAMS;", "commandSequenceNumber": 1e400}',
        b'{"ksql": "' + b"(" * 50_000 + b'"}',
        b'{"ksql": "SELECT ' + b"-" * 20_000 + b'1 FROM s;"}',
        b'{"ksql": "' + b"SHOW STREAMS;" * 2_000 + b'"}',
        b'{"sql": "SELECT ' + b"NOT " * 20_000 + b'TRUE FROM s;"}',
        b'\xff\xfe{"ksql": "SHOW STREAMS;"}',
        b'{"ksql": "SHOW \\ud800;"}',
        b'{"ksql": "DROP STREAM `\\ud800`;"}',
        b'{"ksql": "SHOW STREAMS;", "ksql": 1}',
    ],
    ids=range(12),
)
@pytest.mark.parametrize("path", POSTS)
def test_bodies_that_break_parsers_are_answered(client: Client, path: str, body: bytes) -> None:
    answer = client.http.post(path, content=body)
    check(answer.status_code, answer.text, where=(path, body[:60]))


@pytest.mark.parametrize("path", POSTS)
def test_huge_bodies_are_refused(client: Client, path: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"ksql": "'
        for _ in range(17):
            yield b"x" * (1 << 20)
        yield b'"}'

    # With its length, and without.
    for body in (b"".join(pieces()), pieces()):
        answer = client.http.post(path, content=body)
        assert answer.status_code in (400, 413), answer.text
        check(answer.status_code, answer.text, where=path)


REQUEST = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("ending", ["kept", "half closed", "closed", "reset"])
@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"PO",
        REQUEST,
        REQUEST + b"Content-Length: 100\r\n\r\n",
        REQUEST + b'Content-Length: 100\r\n\r\n{"ksql": "SHOW',
        REQUEST + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"ks',
        REQUEST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        REQUEST + b"Content-Length: -1\r\n\r\n",
        REQUEST + b"Content-Length: 9999999999999999999999\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\xff\x99\x99garbage",
    ],
    ids=range(11),
)
def test_connections_that_stop_in_the_middle_disturb_nobody(client: Client, start: bytes, ending: str) -> None:
    address = urlsplit(client.server.url)
    sockets: list[socket.socket] = []
    try:
        for path in POSTS:
            made = socket.create_connection((address.hostname, address.port), timeout=SOON.total_seconds())
            sockets.append(made)
            made.sendall(start.replace(b"%s", path.encode()))
            _end(made, ending)
        assert client.http.get("/info").status_code == 200
        assert client.http.post("/ksql", json={"ksql": "SHOW STREAMS;"}).status_code == 200
    finally:
        for made in sockets:
            made.close()


def _end(made: socket.socket, ending: str) -> None:
    match ending:
        case "half closed":
            made.shutdown(socket.SHUT_WR)
            # It answers, or it closes: it does not keep what will never be whole.
            _read_all(made)
        case "closed":
            made.close()
        case "reset":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            made.close()


def _read_all(made: socket.socket) -> None:
    try:
        while made.recv(65536):
            pass
    except ConnectionError:
        return


# Any: a value as JSON has it.
def _nested(depth: int) -> Any:
    return [] if depth == 0 else [_nested(depth - 1)]


def test_values_that_are_nested_deeply_are_answered(client: Client) -> None:
    body = {"ksql": "SHOW STREAMS;", "streamsProperties": {"ksql.x": _nested(400)}}
    check((answer := client.http.post("/ksql", json=body)).status_code, answer.text, where="nested")
