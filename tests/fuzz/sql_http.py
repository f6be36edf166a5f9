"""Requests to the SQL server: every route, with bodies that are right, wrong and strange."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
from starlette.routing import Route

from headrace.sql.server.errors import COMMANDS_TIMED_OUT
from headrace.sql.server.settings import statement_settings
from tests.fuzz.mutation import ODD, damaged_bytes, damaged_text
from tests.fuzz.statements import SOURCES, WORDS, statement
from tests.sql.server.kit import Client, SqlPlace

_FIELDS = (
    *("ksql", "sql", "streamsProperties", "properties", "settings", "sessionVariables", "variables", "target"),
    *("commandSequenceNumber", "queryId", "deleteTopicList", "x"),
)
_TYPES = (
    *("application/json", "application/vnd.ksql.v1+json", "application/vnd.ksqlapi.delimited.v1", "text/html"),
    *("application/vnd.ksql.v1+protobuf", "*/*", "x", "application/json;q=x", ""),
)
_READ_BYTES = 1 << 16
_SETTLED_SECONDS = 30.0


@contextmanager
def opened(directory: Path) -> Iterator[Callable[[Random], str]]:
    with served(directory) as client:
        paths = sorted({route.path for route in client.server.application.routes if isinstance(route, Route)})
        yield lambda random: _trial(client, paths, random)


@contextmanager
def served(directory: Path) -> Iterator[Client]:
    """A server with two sources; statements of trials add to them, and take away from them."""
    place = SqlPlace(directory)
    try:
        client = place.server()
        client.ksql(SOURCES)
        yield client
    finally:
        place.close()


def text_of(random: Random) -> str:
    """Returns statements, some of them damaged."""
    several = [statement(random) for _ in range(random.choice((1, 1, 1, 2)))]
    # What waits for a topic is right to take its time.
    text = " ".join(each for each in several if not each.startswith("ASSERT"))
    return damaged_text(text, random, WORDS) if random.random() < 0.4 else text


# Any: what JSON holds.
def body_of(random: Random) -> dict[str, Any]:
    """Returns the body of a request: what it should have, or something else."""
    text = text_of(random)
    body: dict[str, Any] = {"ksql": text, "sql": text, "target": random.choice(("s", "S", "`s`", "u", "nothing"))}
    for _ in range(random.choice((0, 0, 1, 2))):
        body[random.choice(_FIELDS)] = _value(random)
    if random.random() < 0.3:
        names = (*statement_settings(), "state.dir", "spark.x", "ksql.x", "x")
        body[random.choice(("streamsProperties", "properties", "settings"))] = {random.choice(names): _value(random)}
    return body


def _value(random: Random) -> Any:
    return random.choice(
        (
            None,
            True,
            -1,
            0,
            5,
            10**30,
            1.5,
            "",
            "earliest",
            [],
            [".*"],
            ["("],
            {},
            {"a": "b"},
            {"a": {}},
            random.choice(ODD),
        )
    )


def _trial(client: Client, paths: list[str], random: Random) -> str:
    path = random.choice((*paths, "/ksql", "/ksql", "/query", "/query-stream", "/inserts-stream", "/console/api/run"))
    names = ("CSAS_X1_0", "auto.offset.reset", "s", "../x", "stream/`S`/create", *ODD)
    for part in ("{name}", "{command:path}", "{query:path}", "{topic}", "{name:path}"):
        path = path.replace(part, quote(random.choice(names), safe=""))
    body = json.dumps(body_of(random)).encode()
    if path == "/inserts-stream":
        body += b"\n" + b"\n".join(json.dumps({"k": _value(random), "v": _value(random)}).encode() for _ in range(2))
    if random.random() < 0.2:
        body = damaged_bytes(body, random)
    method = random.choice(("POST", "POST", "POST", "GET", "HEAD", "DELETE"))
    headers = {"Accept": random.choice(_TYPES)} if random.random() < 0.5 else {}
    outcome = _ask(client.http, client.http.build_request(method, path, content=body, headers=headers))
    if random.random() < 0.05:
        _check_alive(client)
    return outcome


def _ask(http: httpx.Client, request: httpx.Request) -> str:
    said = f"{request.method} {request.url} {request.content!r}"
    try:
        answer = http.send(request, stream=True)
    except httpx.LocalProtocolError:
        return "no request"
    try:
        text = _beginning(answer)
        # Somebody who waits for a command that never comes is told so.
        is_right = answer.status_code < 500 or f'"error_code":{COMMANDS_TIMED_OUT}' in text
        assert is_right, f"{said}: {answer.status_code} {text[:500]}"
        if answer.status_code >= 400 and request.method != "HEAD":
            found = json.loads(text)
            # The topics of the console are answered as those of an application.
            assert {"@type", "error_code", "message"} <= set(found) or set(found) == {"error"}, f"{said}: {text[:500]}"
        return str(answer.status_code)
    finally:
        answer.close()


def _beginning(answer: httpx.Response) -> str:
    """Reads an answer; of one that may have no end, nothing."""
    path, asked = answer.request.url.path, answer.request.content.upper()
    may_wait = path == "/console/api/live" or any(word in asked for word in (b"EMIT", b"PRINT", b"\\U"))
    read = b""
    if answer.status_code != 200 or not may_wait:
        for piece in answer.iter_raw():
            read += piece
            if len(read) > _READ_BYTES:
                break
    return read.decode(errors="replace")


def _check_alive(client: Client) -> None:
    """Complains about a server that does not answer, or keeps queries that nobody reads."""
    assert client.http.get("/info").status_code == 200
    wait_until_closed(client)
    # Queries of trials would become ever more.
    client.http.post("/ksql", json={"ksql": "TERMINATE ALL;"})
    for kind, name in [(each.kind, each.name) for each in client.server.service.engine.catalog.sources.values()]:
        client.http.post("/ksql", json={"ksql": f"DROP {kind} `{name}`;"})
    found = client.http.post("/ksql", json={"ksql": SOURCES})
    assert found.status_code == 200, found.text


def wait_until_closed(client: Client) -> None:
    """Waits until the server has ended all queries, whose clients have gone."""
    deadline = time.monotonic() + _SETTLED_SECONDS
    while found := client.server.service.open_queries.push_queries():
        assert time.monotonic() < deadline, f"queries are open that nobody reads: {[each.text for each in found]}"
        time.sleep(0.01)
