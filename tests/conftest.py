"""Options of the whole suite, logs without topics, and the Kafka broker of those tests that ask for one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.topics.journal import DurableLog
    from headrace.topics.kafka import KafkaLog
    from tests.secured_listener import SecuredListener


LOGS = ("embedded", "kafka")

# The same examples each time: a run judges a change, not its luck. HYPOTHESIS_PROFILE=drawn draws new ones.
# How long an example takes is no matter of tests.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("drawn", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So it is for what a shell starts in the background, and for all that this starts in turn.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--log",
        action="append",
        choices=LOGS,
        help="run tests that take a log on this one only; may be repeated. By default those of the topic log run on "
        "all, and those on Spark on the embedded log, and on Kafka if they say so",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "kafka" in (config.getoption("--log") or LOGS):
        return
    skip = pytest.mark.skip(reason="needs a Kafka broker, and --log says that there is none")
    for item in items:
        if item.get_closest_marker("kafka") is not None:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def secured_listener(tmp_path_factory: pytest.TempPathFactory) -> SecuredListener:
    from tests.secured_listener import SecuredListener

    return SecuredListener.make(tmp_path_factory.mktemp("secured"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, secured_listener: SecuredListener) -> Iterator[str]:
    """The address of a broker that all tests of a run share."""
    # Imported here: only those who ask for it have its client.
    from headrace.devtools.kafka_broker import start_broker, stop_broker
    from headrace.topics.kafka import KafkaLog

    directory = tmp_path_factory.mktemp("kafka")
    # Compaction is looked for after fifteen seconds otherwise, and transactions that take too long after ten.
    settings = {
        "log.cleaner.backoff.ms": "100",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        **secured_listener.broker_settings,
    }
    started = start_broker(directory, port=secured_listener.plain_port, settings=settings)
    address = started.address
    # It belongs to nobody, so that it would outlive tests that are killed.
    watch = 'while kill -0 "$1"; do sleep 1; done; case "$(ps -ww -o command= -p "$2")" in *"$3"*) kill "$2";; esac'
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", watch, "sh", str(os.getpid()), str(started.pid), str(started.directory)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # Clients are shared as long as one handle is open.
        with KafkaLog(address):
            yield address
    finally:
        stop_broker(directory)
        watcher.kill()
        watcher.wait()


@pytest.fixture
def secured(broker: str, secured_listener: SecuredListener) -> SecuredListener:
    """How the broker is reached by those who have a password."""
    return secured_listener


@pytest.fixture
def kafka(broker: str) -> Iterator[KafkaLog]:
    """A log on the broker, without topics."""
    from headrace.topics.kafka import KafkaLog

    with KafkaLog(broker) as log:
        yield log
    # At once: readers of topics that are left go on asking the broker for more.
    with KafkaLog(broker) as log:
        # Those with the progress of applications among them, which are otherwise never deleted.
        for name in log._administration.names():
            log.delete_topic(name)
        for application in ("app", "one", "two"):
            log.reset_application(application)


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableLog]:
    """A log without topics, of either kind."""
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    from headrace.topics.embedded import EmbeddedLog

    with EmbeddedLog(tmp_path / "log", sync="none") as opened:
        yield opened
