"""Tests that take ``log`` run on the embedded log; on Kafka, too, or only there, if they say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog
from tests.logs import run_on_logs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run_on_logs(metafunc, "log")


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableLog]:
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        yield log
