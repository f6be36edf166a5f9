from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import EmbeddedLog
from headrace.topics.journal import DurableLog
from tests.query.kit import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A log with a topic ``in`` of three partitions."""
    made = Place(tmp_path, **{"in": 3})
    yield made
    made.close()


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableLog]:
    """A log without topics, of either kind."""
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    with EmbeddedLog(tmp_path / "log", sync="none") as opened:
        yield opened
