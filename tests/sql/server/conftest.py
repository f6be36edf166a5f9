from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sql.server.kit import Client, SqlPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SqlPlace]:
    made = SqlPlace(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(place: SqlPlace) -> Client:
    """A server that runs queries in this process."""
    return place.server()
