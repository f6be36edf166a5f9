"""A second server with the same service id, which shares nothing with the first but the log."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import pytest

from headrace import EmbeddedLog
from tests.sql.server.failover import Load, check_results, statements
from tests.sql.server.kit import SOON
from tests.sql.server.process import ServerProcess

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

Start = Callable[..., ServerProcess]


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=SOON.total_seconds(), trust_env=False) as client:
        yield client


def killed_under_load(http: httpx.Client, first: ServerProcess, second: ServerProcess, prefix: str) -> Load:
    load = Load(http, first, second)
    load.ask(statements(prefix))
    load.insert(30)
    killing = threading.Timer(0.1, first.end, (signal.SIGKILL,))
    killing.start()
    # Most of them while nobody runs the queries; the second server takes the rows all the same.
    load.insert(90)
    killing.join()
    return load


def test_second_server_takes_over(tmp_path: Path, start: Start, http: httpx.Client) -> None:
    log = f"log.dir={tmp_path / 'log'}"
    first, second = (start(tmp_path / name, log) for name in ("one", "two"))
    load = killed_under_load(http, first, second, "")
    with EmbeddedLog(tmp_path / "log", sync="none") as opened:
        check_results(load, opened, "")
        # The first one comes back, and leaves the queries where they are.
        third = start(tmp_path / "one", log)
        again = Load(http, third)
        again.sent = load.sent
        again.insert(5)
        check_results(again, opened, "")
    second.end(signal.SIGTERM)
    third.end(signal.SIGTERM)


@pytest.mark.kafka
def test_second_server_on_kafka_takes_over_with_an_empty_directory(
    tmp_path: Path, start: Start, kafka: KafkaLog, http: httpx.Client
) -> None:
    own = f"t{uuid4().hex[:8]}"
    settings = f"bootstrap.servers={kafka.bootstrap_servers}", f"ksql.service.id={own}_"
    first, second = (start(tmp_path / name, *settings) for name in ("one", "two"))
    load = killed_under_load(http, first, second, f"{own}-")
    check_results(load, kafka, f"{own}-")
    second.end(signal.SIGTERM)
