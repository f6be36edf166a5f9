"""Options of the whole suite, and the Kafka broker of those tests that ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--log",
        action="append",
        choices=["embedded", "kafka"],
        help="run the contract of the topic log on this one; with kafka also the tests that need a broker",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "kafka" in (config.getoption("--log") or []) or "kafka" in config.getoption("-m"):
        return
    skip = pytest.mark.skip(reason="needs a Kafka broker: say --log kafka")
    for item in items:
        if item.get_closest_marker("kafka") is not None:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that all tests of a run share."""
    # Imported here: only those who ask for it have its client.
    from headrace.kafka_broker import start_broker, stop_broker
    from headrace.topics.kafka import KafkaLog

    directory = tmp_path_factory.mktemp("kafka")
    # Compaction is looked for after fifteen seconds otherwise.
    address = start_broker(directory, settings={"log.cleaner.backoff.ms": "100"}).bootstrap_servers
    try:
        # Clients are shared as long as one handle is open.
        with KafkaLog(address):
            yield address
    finally:
        stop_broker(directory)


@pytest.fixture
def kafka(broker: str) -> Iterator[KafkaLog]:
    """A log on the broker, without topics."""
    from headrace.topics.kafka import KafkaLog

    with KafkaLog(broker) as log:
        for name in log.topics():
            log.delete_topic(name)
        for application in ("app", "one", "two"):
            log.reset_application(application)
        yield log
