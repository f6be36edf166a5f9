"""Sockets of the SQL server: requests of all kinds, messages that nobody wants, clients that leave."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from urllib.parse import quote

from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import connect

from tests.fuzz.mutation import damaged_bytes
from tests.fuzz.sql_http import body_of, served, wait_until_closed
from tests.sql.server.kit import Client

_SECONDS = 30.0
_CLOSE_SECONDS = 0.5
"""Behind bytes that were no frame the server may take a goodbye for part of one."""
_CODES = (1000, 1002, 1003, 1005, 1006, 1007, 1009, None)


@contextmanager
def opened(directory: Path) -> Iterator[Callable[[Random], str]]:
    with served(directory) as client:
        yield lambda random: _trial(client, random)


def _trial(client: Client, random: Random) -> str:
    body = body_of(random)
    if random.random() < 0.5:
        body["ksql"] = random.choice(
            (
                *("SELECT * FROM s EMIT CHANGES;", "SELECT * FROM s;", "SELECT k FROM u;", "PRINT 's';"),
                *("PRINT 's' FROM BEGINNING LIMIT 1;", "SELECT COUNT(*) FROM s GROUP BY k EMIT CHANGES;"),
            )
        )
    request = json.dumps(body).encode()
    if random.random() < 0.2:
        request = damaged_bytes(request, random)
    url = f"{client.server.url.replace('http', 'ws')}/ws/query?request={quote(request)}"
    try:
        outcome = _talk(url, random)
    except (InvalidStatus, InvalidMessage):
        outcome = "not opened"
    wait_until_closed(client)
    assert client.http.get("/info").status_code == 200
    return outcome


def _talk(url: str, random: Random) -> str:
    with connect(url, open_timeout=_SECONDS, close_timeout=_CLOSE_SECONDS) as opened, suppress(ConnectionClosed):
        for _ in range(random.randint(0, 3)):
            match random.randrange(5):
                case 0:
                    opened.send(random.randbytes(random.randint(0, 100)))
                case 1:
                    opened.send("x" * random.choice((0, 10, 100_000)))
                case 2:
                    opened.ping()
                case 3:
                    # Not a frame at all.
                    with suppress(OSError):
                        opened.socket.sendall(random.randbytes(20))
                case _:
                    with suppress(TimeoutError):
                        opened.recv(timeout=0.05)
        if random.random() < 0.3:
            with suppress(OSError):
                opened.socket.shutdown(socket.SHUT_RDWR)
    code = opened.close_code
    reason = f"{code}: {opened.close_reason!r} for {url}"
    assert code in _CODES, reason
    return str(code)
