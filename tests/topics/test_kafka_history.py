"""History of an application on Kafka: which of its records count."""

from __future__ import annotations

import msgspec
import pytest

pytest.importorskip("confluent_kafka")

from headrace.topics.kafka.history import RESET, RESET_DONE, TAKEOVER, History, Opener, entry_key


def opener(*tasks: str) -> bytes:
    return msgspec.msgpack.encode(Opener("somebody", 0, list(tasks)))


def test_reset_knows_the_tasks_of_a_driver_that_came_before_its_announcement() -> None:
    # Whoever resets had read up to offset 4; the driver came with offset 5.
    history = History().with_record(5, TAKEOVER, opener("0_0")).with_record(6, RESET, opener("0_1"))
    assert history.known_tasks == {"0_0", "0_1"}


def test_reset_that_was_begun_again_knows_the_tasks_of_the_first() -> None:
    history = History().with_record(5, RESET, opener("0_0")).with_record(6, RESET, opener())
    assert history.known_tasks == {"0_0"}


def test_application_that_was_reset_has_no_tasks() -> None:
    history = History().with_record(5, RESET, opener("0_0")).with_record(6, entry_key(RESET_DONE, 5), opener())
    assert history.known_tasks == set()
