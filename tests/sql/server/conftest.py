from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sql.server.kit import Client, SqlPlace
from tests.sql.server.process import ServerProcess


@pytest.fixture
def start() -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers in processes of their own, none of which outlives the test."""
    started: list[ServerProcess] = []

    def start(directory: Path, *settings: str) -> ServerProcess:
        started.append(ServerProcess(directory, *settings))
        return started[-1]

    yield start
    for process in started:
        process.end(signal.SIGKILL)


@pytest.fixture
def client(place: SqlPlace) -> Client:
    """A server that runs queries in this process."""
    return place.server()
