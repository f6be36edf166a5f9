"""A Connect worker for the tests, real or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.connect.connect_worker import connect_worker
from tests.sql.connect.stub_worker import StubWorker, serving


@pytest.fixture
def stub() -> Iterator[StubWorker]:
    with serving(StubWorker()) as worker:
        yield worker


@pytest.fixture(scope="session")
def worker_url(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a worker that all tests of a run share; it has the connectors for files."""
    with connect_worker(broker, tmp_path_factory.mktemp("connect")) as url:
        yield url
