"""Tests that take ``log`` are the contract of ``TopicLog``: they run on every log that ``--log`` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog

# Where Kafka cannot do what the contract says. tests/topics/test_kafka.py says what it does instead.
KAFKA_DIFFERENCES = {
    "test_records_come_back_as_they_were": "brokers refuse times in the far future, and the client cannot write time 0",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "log" in metafunc.fixturenames:
        names = metafunc.config.getoption("--log") or ["embedded", "kafka"]
        metafunc.parametrize("log", [_log(name, metafunc.function.__name__) for name in names], indirect=True)


def _log(name: str, test: str) -> object:
    if name != "kafka":
        return name
    marks = [pytest.mark.kafka]
    if test in KAFKA_DIFFERENCES:
        marks.append(pytest.mark.xfail(reason=KAFKA_DIFFERENCES[test], strict=True))
    return pytest.param(name, marks=marks)


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TopicLog]:
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    log: TopicLog = EmbeddedLog(tmp_path / "log", map_size=1 << 20, sync="none")
    yield log
    log.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", map_size=1 << 20, sync="none") as log:
        yield log
