"""The tables of the guide's page on security: all routes of both servers, and who gets an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from headrace.app.engine import local_engine
from headrace.console.asgi_application import make_application
from headrace.console.recorder import Recorder
from headrace.console.view_server import serve_views
from headrace.http.server import Listening, Server
from headrace.sql.server.headless import run_file
from headrace.sql.server.sql_server import SqlServer
from headrace.views.view_node import ViewNode
from tests.console.kit import FakeObserved
from tests.sql.server.kit import SqlPlace
from tests.views_http.kit import RunningInstance

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "security.md"
TOKEN = "open-sesame"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
ENDLESS = ("/console/api/live", "/stores/{store}/changes")
STATEMENTS = """
CREATE STREAM S (K INT KEY, V STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE N AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;
"""


def table(heading: str) -> dict[str, list[str]]:
    """Returns the rows of the first table behind a heading, by route."""
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")
    assert found, heading
    section = re.split(r"\n##", rest)[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if "`/" in line]
    routes = [row[0].strip("|` ") for row in rows if row[0].startswith(("`", "| `"))]
    assert len(routes) == len(set(routes))
    return dict(zip(routes, rows, strict=True))


def routes_of(application: Any) -> dict[str, set[str]]:
    """Returns the methods of every route, HEAD left out, which comes with GET."""
    found: dict[str, set[str]] = {}
    for route in application.routes:
        assert isinstance(route, Route | WebSocketRoute), f"{route}: a kind of route that nobody looks at"
        methods = {"websocket"} if isinstance(route, WebSocketRoute) else set(route.methods or ()) - {"HEAD"}
        found.setdefault(route.path, set()).update(methods)
    return found


def filled(path: str) -> str:
    names = {"store": "counts", "key:path": "a", "topic": "words", "name:path": "dom.js", "name": "auto.offset.reset"}
    return re.sub(r"\{([^}]+)\}", lambda match: names.get(match[1], "x"), path)


@dataclass(frozen=True)
class Subject:
    """A server and what is known of it."""

    url: str
    application: Starlette
    client: httpx.Client


@contextmanager
def subject_of(server: Server | SqlServer, application: Starlette) -> Iterator[Subject]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield Subject(server.url, application, client)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    observed = FakeObserved(tmp_path_factory.mktemp("application"))
    instance = RunningInstance(observed._log, observed.topology, observed.config)
    made = make_application(instance, observed, Recorder(observed), token=TOKEN)
    server = Server(made, Listening.at("localhost:0"))
    server.start()
    with subject_of(server, made) as subject:
        yield subject
    server.stop()
    instance.close()
    observed.close()


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    directory = tmp_path_factory.mktemp("view")
    observed = FakeObserved(directory, http_token=TOKEN)
    node = ViewNode(observed.topology, observed.config, observed._log, directory / "views")
    server = serve_views(node)
    with subject_of(server, server._application) as subject:
        yield subject
    server.stop()
    node.close()
    observed.close()


def sql_server(directory: Path, *, headless: bool) -> Iterator[Subject]:
    place = SqlPlace(directory)
    settings = {"state.dir": str(directory), "log.sync": "none", "http.token": TOKEN}
    server = SqlServer(
        settings, listen="localhost:0", log=place.log, engine=local_engine, accepts_statements=not headless
    )
    if headless:
        (directory / "statements.sql").write_text(STATEMENTS)
        run_file(server.service, directory / "statements.sql")
    server.start()
    with subject_of(server, server.application) as subject:
        yield subject
    server.stop()
    place.close()


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    yield from sql_server(tmp_path_factory.mktemp("sql"), headless=False)


@pytest.fixture(scope="module")
def headless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    yield from sql_server(tmp_path_factory.mktemp("headless"), headless=True)


def test_the_page_lists_all_routes_with_their_methods(application: Subject, view: Subject, sql: Subject) -> None:
    listed = {path: set(row[1].split(", ")) for path, row in table("Applications and views").items()}
    assert routes_of(application.application) == listed
    own = routes_of(view.application)
    assert own == {path: listed[path] for path in own}
    assert {path for path in listed if path.startswith("/stores")} <= own.keys()
    assert routes_of(sql.application) == {path: set(row[1].split(", ")) for path, row in table("SQL server").items()}


@pytest.mark.parametrize("kind", ["application", "view", "sql", "headless"])
def test_no_route_answers_without_the_token(kind: str, request: pytest.FixtureRequest) -> None:
    subject: Subject = request.getfixturevalue(kind)
    for path, methods in [*routes_of(subject.application).items(), ("/nowhere", {"GET"})]:
        if "websocket" in methods:
            with (
                pytest.raises(InvalidStatus) as denied,
                connect(f"{subject.url.replace('http', 'ws')}{filled(path)}"),
            ):
                pass
            assert denied.value.response.status_code == 401, path
            continue
        for method in METHODS:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Headrace-Peer 1.00"}):
                found = subject.client.request(method, filled(path), headers=headers)
                assert found.status_code == 401, (method, path)


@pytest.mark.parametrize("kind", ["application", "view", "sql", "headless"])
def test_other_methods_than_those_listed_are_not_answered(kind: str, request: pytest.FixtureRequest) -> None:
    subject: Subject = request.getfixturevalue(kind)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for path, methods in routes_of(subject.application).items():
        for method in set(METHODS) - methods - {"HEAD"}:
            if "websocket" not in methods:
                found = subject.client.request(method, filled(path), headers=headers)
                # Below some paths there are others with another method.
                assert found.status_code in (404, 405), (method, path, found.text)


def test_headless_server_refuses_what_the_page_says(headless: Subject) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    bodies = {
        "/ksql": {"ksql": "DROP TABLE N;"},
        "/query": {"ksql": "SELECT * FROM N;"},
        "/query-stream": {"sql": "SELECT * FROM N;"},
        "/console/api/run": {"sql": "DROP TABLE N;"},
    }
    refused = set()
    for path, row in table("SQL server").items():
        if path in ENDLESS or "websocket" in row[1]:
            continue
        found = subject_answer(headless, row[1], path, bodies.get(path, {}), headers)
        if found.status_code == 400 and "read-only" in found.text:
            refused.add(path)
        elif path in bodies and path != "/console/api/run":
            assert found.status_code == 200, found.text
        elif path == "/console/api/run":
            assert "takes no others" in found.text
    assert refused == {path for path, row in table("SQL server").items() if row[3].strip("| ") == "refused"}
    # All of it was looked at and nothing has happened.
    catalog = subject_answer(headless, "GET", "/console/api/catalog", {}, headers).text
    assert '"N"' in catalog


def subject_answer(
    subject: Subject, method: str, path: str, body: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    if method == "POST":
        return subject.client.post(filled(path), json=body, headers=headers)
    return subject.client.request(method, filled(path), headers=headers)
