from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sql.places import QueryPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[QueryPlace]:
    """A log without topics, and everything that queries need."""
    made = QueryPlace(tmp_path)
    yield made
    made.close()
