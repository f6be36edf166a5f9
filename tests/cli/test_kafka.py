from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Command

pytest.importorskip("confluent_kafka")

pytestmark = pytest.mark.kafka


def test_broker_is_started_once_and_stopped(headrace: Command, state_dir: Path) -> None:
    address = headrace("kafka", "start", "--port", 0).out.strip()
    try:
        assert address.startswith("127.0.0.1:")
        assert (state_dir / "kafka" / "data").is_dir()
        again = headrace("kafka", "start", code=1)
        assert f"a broker runs in '{state_dir}/kafka' already" in again.err
        assert address in again.err
    finally:
        assert f"the broker on {address} is gone" in headrace("kafka", "stop").err
    assert f"no broker runs in '{state_dir}/kafka'" in headrace("kafka", "stop").err


def test_broker_that_does_not_start_says_why(headrace: Command, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    failed = headrace("kafka", "start", "--data-dir", tmp_path / "taken", code=2)
    assert "taken" in failed.err


def test_broker_does_not_start_at_a_port_where_somebody_answers(headrace: Command, state_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        told = headrace("kafka", "start", "--port", port, code=1).err
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use; choose another port" in told
    assert not (state_dir / "kafka").exists()
