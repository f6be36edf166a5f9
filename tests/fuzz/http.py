"""Requests to an application: every route, with parameters that are right, wrong and strange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from urllib.parse import quote

import httpx
from starlette.routing import Route

from tests.fuzz.mutation import ODD, damaged_text
from tests.views_http.running import Running

_STORES = ("counts", "windows", "sessions", "history", "everywhere", "rows", "nothing", "")
_TOPICS = ("in", "app-counts-changelog", "app-views", "nothing", "../in")
_PARAMETERS = (
    *(
        "limit",
        "cursor",
        "from",
        "to",
        "prefix",
        "order",
        "time_from_ms",
        "time_to_ms",
        "as_of_ms",
        "wait_ms",
        "partition",
    ),
    *("snapshot", "last_event_id", "offset", "topic", "seconds", "x"),
)
_VALUES = (
    *(
        "0",
        "1",
        "-1",
        "100",
        "1001",
        "ascending",
        "descending",
        "true",
        "false",
        "a",
        "k001",
        "41.7",
        "",
        "earliest",
        "latest",
    ),
    *("9" * 30, "1e3", "NaN", "\x00", "😀", "%", "{}", "null", "2026-01-01T00:00:00Z"),
)
_HEADERS = (
    ("Headrace-Position", ('{"in": {"0": 5}}', "in:0:5", "{", "", "x" * 1000, '{"in": {"0": "x"}}')),
    ("Headrace-Forwarded", ("1", "")),
    ("Last-Event-ID", ("1.2", "x", "9" * 40)),
    ("Accept", ("application/json", "text/html", "*/*;q=x")),
    ("Origin", ("http://evil.example", "null")),
    ("Host", ("localhost", "evil.example", "")),
    ("Authorization", ("Bearer x", "Basic x", "Headrace-Peer 1.2")),
    ("If-None-Match", ("*", '"x"')),
    ("Range", ("bytes=0-5", "x")),
)
_STATUSES = (200, 206, 304, 307, 400, 403, 404, 405, 410, 413, 416, 421, 503)
# Streams have no end; the trial reads how they begin.
_ENDLESS = ("/console/api/live", "/changes")


@contextmanager
def opened(directory: Path) -> Iterator[Callable[[Random], str]]:
    running = Running(directory)
    server = running.streams._serving._server
    assert server is not None
    paths = sorted({route.path for route in server._application.routes if isinstance(route, Route)})
    try:
        yield lambda random: _trial(running.client, paths, random)
    finally:
        running.close()


def _trial(client: httpx.Client, paths: list[str], random: Random) -> str:
    path = random.choice(paths)
    named = {
        "{store}": random.choice(_STORES),
        "{topic}": random.choice(_TOPICS),
        "{key:path}": random.choice(("a", "k001", "b/c d", '{"x": 1}', *ODD)),
        "{name:path}": random.choice(("dom.js", "../recorder.py", "%2e%2e/x", "")),
    }
    for name, value in named.items():
        path = path.replace(name, quote(value, safe=random.choice(("", "/"))))
    if random.random() < 0.1:
        path = "/" + quote(damaged_text(path, random, ("stores", "..", "/", "%00")), safe="/%")
    parameters = [(random.choice(_PARAMETERS), random.choice(_VALUES)) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    if "wait_ms" in dict(parameters):
        # Waiting is what it is for; a trial has no time.
        parameters = [(name, "1" if name == "wait_ms" else value) for name, value in parameters]
    headers = [(name, random.choice(values)) for name, values in random.sample(_HEADERS, random.choice((0, 0, 1, 2)))]
    method = random.choice(("GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE", "OPTIONS"))
    body = random.randbytes(random.choice((0, 10, 70_000))) if random.random() < 0.1 else None
    try:
        request = client.build_request(
            method, path, params=httpx.QueryParams(tuple(parameters)), headers=headers, content=body
        )
    except httpx.InvalidURL:
        return "no request"
    said = f"{method} {request.url} {headers}"
    try:
        answer = client.send(request, stream=True)
    except httpx.LocalProtocolError:
        return "no request"
    try:
        if answer.status_code != 200 or not any(each in path for each in _ENDLESS):
            answer.read()
            said = f"{said}: {answer.status_code} {answer.text[:300]}"
        assert answer.status_code in _STATUSES, said
        if answer.status_code >= 400 and method != "HEAD" and path not in ("/healthz", "/readyz"):
            body_read = answer.json()
            assert set(body_read) == {"error"}, said
            assert set(body_read["error"]) == {"code", "message"}, said
        return str(answer.status_code)
    finally:
        answer.close()
