"""HTTP/2 on the port of the server: many requests at once, long bodies, streams given up, and nonsense."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, Event, StreamEnded

from headrace.http.http2 import PREFACE
from tests.sql.server.kit import SOON, Client

STREAM = "CREATE STREAM s (k STRING KEY, v STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"


@pytest.fixture
def url(client: Client) -> str:
    client.ksql(STREAM)
    return client.server.url


def _http2(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, http1=False, http2=True, timeout=SOON.total_seconds())


def test_many_requests_share_a_connection(url: str) -> None:
    async def ask() -> list[httpx.Response]:
        async with _http2(url) as http:
            return await asyncio.gather(*(http.get("/info") for _ in range(50)))

    answers = asyncio.run(ask())
    assert {(answer.http_version, answer.status_code) for answer in answers} == {("HTTP/2", 200)}


def test_bodies_larger_than_any_window(client: Client, url: str) -> None:
    long = "x" * 300_000

    async def inserted_and_read() -> list[object]:
        async with _http2(url) as http:
            rows = json.dumps({"target": "s"}) + "\n" + json.dumps({"k": "a", "v": long}) + "\n"
            answer = await http.post("/inserts-stream", content=rows)
            assert answer.json() == {"status": "ok", "seq": 0}
            found = await http.post("/query-stream", json={"sql": "SELECT v FROM s;"})
            return [json.loads(line) for line in found.text.splitlines()]

    assert asyncio.run(inserted_and_read())[1] == [long]


@pytest.mark.parametrize("http2", [False, True])
def test_rows_that_come_one_by_one_are_all_taken(client: Client, url: str, http2: bool) -> None:  # noqa: FBT001
    async def lines() -> AsyncIterator[bytes]:
        yield b'{"target":"s"}\n'
        for each in range(5):
            await asyncio.sleep(0.01)
            yield b'{"k":"a","v":"%d"}\n' % each

    async def inserted() -> list[str]:
        async with httpx.AsyncClient(base_url=url, http1=not http2, http2=http2, timeout=SOON.total_seconds()) as http:
            answer = await http.post("/inserts-stream", content=lines())
            return [json.loads(line)["status"] for line in answer.text.splitlines()]

    assert asyncio.run(inserted()) == ["ok"] * 5
    assert [row["V"] for row in client.values("s")] == list("01234")


@pytest.fixture
def connection(url: str) -> Iterator[socket.socket]:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=SOON.total_seconds()) as opened:
        yield opened


def test_nonsense_ends_the_connection(connection: socket.socket) -> None:
    connection.sendall(PREFACE + b"\x00" * 9)
    while connection.recv(4096):
        pass


def test_preface_in_pieces_and_a_request_that_only_starts_like_it(connection: socket.socket) -> None:
    for byte in PREFACE[:10]:
        connection.sendall(bytes([byte]))
    connection.sendall(PREFACE[10:])
    assert connection.recv(4096)[3] == 4, "a frame of settings"


def test_method_that_begins_like_the_preface(connection: socket.socket) -> None:
    connection.sendall(b"P")
    connection.sendall(b"OST /info HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 ")


class _Raw:
    """A connection whose frames a test sends itself."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._http = H2Connection()
        self._http.initiate_connection()
        self._send()

    def _send(self) -> None:
        self._socket.sendall(self._http.data_to_send())

    def ask(self, method: str, path: str, body: bytes = b"") -> int:
        number = self._http.get_next_available_stream_id()
        pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        self._http.send_headers(number, [*pseudo, ("content-type", "application/json")])
        self._http.send_data(number, body, end_stream=True)
        self._send()
        return number

    def give_up(self, number: int) -> None:
        self._http.reset_stream(number, 8)
        self._send()

    def pieces(self, number: int) -> list[bytes]:
        """Returns the body of an answer as it comes."""
        found: list[bytes] = []
        while data := self._socket.recv(65536):
            for event in self._http.receive_data(data):
                if isinstance(event, DataReceived) and event.stream_id == number:
                    found.append(event.data)
                elif isinstance(event, StreamEnded) and event.stream_id == number:
                    return found
            self._send()
        pytest.fail("the connection has ended before the answer")

    def wait_for(self, kind: type[Event], number: int | None) -> None:
        while data := self._socket.recv(65536):
            events = self._http.receive_data(data)
            self._send()
            if any(isinstance(event, kind) and getattr(event, "stream_id", None) == number for event in events):
                return
        pytest.fail(f"the connection has ended before {kind.__name__}")


def test_push_query_that_is_given_up_ends_and_the_connection_does_not(
    client: Client, connection: socket.socket
) -> None:
    opened = client.server.application.state.endpoint.push_queries
    raw = _Raw(connection)
    number = raw.ask("POST", "/query-stream", b'{"sql": "SELECT * FROM s EMIT CHANGES;"}')
    raw.wait_for(DataReceived, number)
    assert len(opened()) == 1
    raw.give_up(number)
    deadline = time.monotonic() + SOON.total_seconds()
    while opened():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    raw.wait_for(DataReceived, raw.ask("GET", "/info"))


def test_client_that_only_gives_up_is_sent_away(connection: socket.socket) -> None:
    raw = _Raw(connection)
    connection.settimeout(10)  # less than the patience with a connection that does nothing
    with suppress(ConnectionError):  # it is closed while this side still sends
        for _ in range(500):
            raw.give_up(raw.ask("POST", "/query-stream"))
        while connection.recv(65536):
            pass


def test_other_hosts_are_refused(client: Client, url: str) -> None:
    async def ask() -> httpx.Response:
        async with _http2(url) as http:
            return await http.get("/info", headers={"Host": "elsewhere.example"})

    assert asyncio.run(ask()).status_code >= 400


def test_each_row_of_a_push_query_is_a_piece_of_its_own(client: Client, connection: socket.socket) -> None:
    for each in range(4):
        client.ksql(f"INSERT INTO S VALUES ('a', '{each}');")
    raw = _Raw(connection)
    sql = "SELECT V FROM S EMIT CHANGES LIMIT 4;"
    body = {"sql": sql, "properties": {"auto.offset.reset": "earliest"}}
    pieces = raw.pieces(raw.ask("POST", "/query-stream", json.dumps(body).encode()))
    assert [piece for piece in pieces if piece][1:] == [b'["%d"]\n' % each for each in range(4)]


def _h2c(body: bytes, method: str = "POST", path: str = "/ksql") -> tuple[bytes, bytes]:
    """Returns the head of a request that offers HTTP/2, as Java's client sends it, and its body."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        f"HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode(), body


def _answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """Returns the first line of an answer in HTTP/1.1, and its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return lines[0], body


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_offer_of_h2c_keeps_the_body(connection: socket.socket, pieces: int) -> None:
    head, body = _h2c(json.dumps({"ksql": "SHOW STREAMS;"}).encode())
    # On one connection: the offer may be made again, and a request without it follows.
    for _ in range(2):
        data = head + body
        size = -(-len(data) // pieces)
        for start in range(0, len(data), size):
            connection.sendall(data[start : start + size])
            time.sleep(0.005)
        status, found = _answer(connection)
        assert (status, json.loads(found)[0]["@type"]) == (b"HTTP/1.1 200 OK", "streams")
    connection.sendall(b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert _answer(connection)[0] == b"HTTP/1.1 200 OK"


def test_offer_of_h2c_without_body_is_answered(connection: socket.socket) -> None:
    connection.sendall(_h2c(b"", "GET", "/info")[0])
    status, found = _answer(connection)
    assert (status, "KsqlServerInfo" in json.loads(found)) == (b"HTTP/1.1 200 OK", True)


def test_head_and_a_long_body_in_one_piece(connection: socket.socket) -> None:
    body = json.dumps({"ksql": f"SHOW STREAMS; -- {'x' * 200_000}"}).encode()
    head = f"POST /ksql HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connection.sendall(head + body)
    assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
