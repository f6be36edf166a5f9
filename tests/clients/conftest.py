"""Tests that take ``config`` run on the embedded log and on Kafka; ``--log`` chooses one."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import StreamsConfig


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "config" in metafunc.fixturenames:
        names = metafunc.config.getoption("--log") or ["embedded", "kafka"]
        logs = [pytest.param(name, marks=pytest.mark.kafka) if name == "kafka" else name for name in names]
        metafunc.parametrize("config", logs, indirect=True)


@pytest.fixture
def config(request: pytest.FixtureRequest, tmp_path: Path) -> StreamsConfig:
    if request.param == "kafka":
        return StreamsConfig(bootstrap_servers=request.getfixturevalue("kafka").bootstrap_servers)
    return StreamsConfig(state_dir=tmp_path, log_sync="none")
