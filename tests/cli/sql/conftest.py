"""A server in this process for all tests of a module, and a session on it that prints to the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.cli.sql.client import SqlClient
from headrace.cli.sql.embedded import ServerConnection, embedded_server
from headrace.cli.sql.screen import Screen
from headrace.cli.sql.session import Session
from tests.cli.sql.kit import Typed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerConnection]:
    settings = {"state.dir": str(tmp_path_factory.mktemp("server")), "log.sync": "none"}
    with embedded_server(settings, "process") as reached:
        yield reached


@pytest.fixture
def client(server: ServerConnection) -> SqlClient:
    return SqlClient(server.address, token=server.token)


@pytest.fixture
def typed(server: ServerConnection, client: SqlClient, capsys: pytest.CaptureFixture[str]) -> Typed:
    session = Session(client, Screen(), settle=server.settle)
    session.settings["auto.offset.reset"] = "earliest"
    return Typed(session, capsys)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "script.sql"
        path.write_text(text, encoding="utf-8")
        return path

    return write
