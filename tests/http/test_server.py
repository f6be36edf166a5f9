"""The server on a real socket: its port, its end, TLS, and clients that are slow or talk nonsense."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from headrace.console.asgi_application import make_application
from headrace.console.recorder import Recorder
from headrace.errors import ConfigError
from headrace.http.server import Listening, Server
from tests.certificates import make_certificate
from tests.console.client import served
from tests.console.kit import FakeObserved


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[FakeObserved]:
    found = FakeObserved(tmp_path)
    yield found
    found.close()


def application_of(observed: FakeObserved) -> Starlette:
    return make_application(None, observed, Recorder(observed))


def test_it_answers_at_a_free_port_and_gives_it_back(observed: FakeObserved) -> None:
    with served(application_of(observed)) as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        port = server.port
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://localhost:{port}/healthz")
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_a_port_that_is_taken_is_told_at_once(observed: FakeObserved) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen at localhost:{port}"):
            Server(application_of(observed), Listening("localhost", port))


def test_a_host_that_is_not_this_machine_is_told_as_such(observed: FakeObserved) -> None:
    for host in ("nowhere.invalid", "192.0.2.1"):
        with pytest.raises(ConfigError, match=f"cannot listen at {host}:0: .*; choose a name or an address of this"):
            Server(application_of(observed), Listening(host, 0))


@pytest.mark.parametrize("address", ["", "here", "here:port", "localhost:99999", "localhost:"])
def test_an_address_must_have_a_port(address: str) -> None:
    with pytest.raises(ConfigError, match="must be host:port, with a port up to 65535"):
        Listening.at(address)


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belong together"):
        Listening.at("localhost:0", certificate=tmp_path)
    with pytest.raises(ConfigError, match="is not there"):
        Listening.at("localhost:0", certificate=tmp_path / "c.pem", key=tmp_path / "k.pem")


def test_it_speaks_tls(observed: FakeObserved, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    server = Server(application_of(observed), Listening.at("localhost:0", certificate=certificate, key=key))
    server.start()
    try:
        assert server.url.startswith("https://localhost:")
        trusting = ssl.create_default_context(cafile=certificate)
        assert httpx.get(f"{server.url}/healthz", verify=trusting).status_code == 200
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://localhost:{server.port}/healthz")
    finally:
        server.stop()


def test_a_stream_does_not_hold_up_the_end(observed: FakeObserved) -> None:
    with served(application_of(observed)) as server:
        begun = threading.Event()
        ended = threading.Event()

        def watch() -> None:
            with httpx.stream("GET", f"{server.url}/console/api/live", timeout=30) as answer:
                for _ in answer.iter_lines():
                    begun.set()
            ended.set()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        assert begun.wait(10)
    assert ended.wait(10)


def test_a_client_that_never_finishes_is_sent_away_and_blocks_nobody(observed: FakeObserved) -> None:
    with served(application_of(observed), head_seconds=0.5) as server:
        slow = []
        for sent in (
            b"",
            b"GET /healthz HT",
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ",
            b"\x16\x03\x01\x02",
        ):
            client = socket.create_connection(("localhost", server.port), timeout=20)
            client.sendall(sent)
            slow.append(client)
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        for client in slow:
            # Whatever it is told before, the connection is closed from the other side.
            while client.recv(65536):
                pass
            client.close()
        assert httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /healthz HTP/1.1\r\n\r\n",
        b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nContent-Length: x\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /console/static/../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /console/static/%2e%2e/%2e%2e/recorder.py HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        bytes(range(256)) * 4,
    ],
)
def test_nonsense_is_answered_with_an_error_and_harms_nobody(observed: FakeObserved, sent: bytes) -> None:
    with served(application_of(observed), head_seconds=0.5) as server:
        client = socket.create_connection(("localhost", server.port), timeout=20)
        answer = b""
        try:
            client.sendall(sent)
            while part := client.recv(65536):
                answer += part
        except ConnectionError:
            pass
        client.close()
        assert answer == b"" or answer.split(b" ")[1][:1] == b"4", answer[:200]
        assert b"root:" not in answer
        assert b"import" not in answer
        assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_reader_that_does_not_read_blocks_nobody(observed: FakeObserved) -> None:
    observed._log.append("words", [(0, 1, b"k", b'"' + b"x" * 4000 + b'"', ()) for _ in range(1000)])
    with served(application_of(observed)) as server:
        lazy = socket.create_connection(("localhost", server.port), timeout=20)
        for _ in range(20):
            lazy.sendall(b"GET /console/api/topics/words/records?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert httpx.get(f"{server.url}/healthz", timeout=20).status_code == 200
        lazy.close()
