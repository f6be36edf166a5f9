"""Tests that take ``log`` run on the embedded log; on Kafka, too, or only there, if they say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "log" in metafunc.fixturenames:
        marked = [name for name in ("both_logs", "kafka") if metafunc.definition.get_closest_marker(name)]
        usual = {"both_logs": ["embedded", "kafka"], "kafka": ["kafka"]}[marked[0]] if marked else ["embedded"]
        names = usual if "kafka" in marked else metafunc.config.getoption("--log") or usual
        logs = {"embedded": pytest.param("embedded"), "kafka": pytest.param("kafka", marks=pytest.mark.kafka)}
        metafunc.parametrize("log", [logs[name] for name in names], indirect=True)


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableLog]:
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        yield log
