"""Tests that take ``log`` are the contract of ``TopicLog``: they run on every log that ``--log`` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "log" in metafunc.fixturenames:
        metafunc.parametrize("log", metafunc.config.getoption("--log") or ["embedded"], indirect=True)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[TopicLog]:
    log: TopicLog = EmbeddedLog(tmp_path / "log", map_size=1 << 20, sync="none")
    yield log
    log.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", map_size=1 << 20, sync="none") as log:
        yield log
