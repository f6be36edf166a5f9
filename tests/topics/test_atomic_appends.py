"""Appends that are there as a whole or not at all: staged by several processes, or in a transaction of Kafka."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace import EmbeddedLog
from headrace.errors import LogError, TaskMigratedError, TopicError
from headrace.topics.embedded.staged_append import StagedAppend
from headrace.topics.log import Output

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

TOPIC = ("t", 0)


def outputs(first: int, count: int, size: int = 100) -> list[Output]:
    return [(0, n, str(n).encode(), b"x" * size, ()) for n in range(first, first + count)]


def failing() -> Iterator[Sequence[Output]]:
    yield outputs(0, 2_000)
    message = "no more"
    raise ValueError(message)


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        log.create_topic("t")
        yield log


def begun(embedded: EmbeddedLog, name: str) -> StagedAppend:
    append = embedded.staged_append(name)
    append.begin()
    return append


def staged(embedded: EmbeddedLog) -> list[Path]:
    return sorted((Path(embedded.directory) / "staging").glob("*/*"))


def test_staged_parts_become_visible_together_and_in_order(embedded: EmbeddedLog) -> None:
    append = begun(embedded, "a")
    # The first part is too large for its receipt, the second is not.
    parts = [
        append.stage("0", "t", [outputs(0, 1_000), outputs(1_000, 1_000)]),
        append.stage("1", "t", [outputs(5_000, 2)]),
    ]
    assert len(staged(embedded)) == 1
    assert embedded.end_offsets([TOPIC]) == {TOPIC: 0}
    assert append.commit(parts) == {TOPIC: (0, 2_002)}
    assert [int(key or b"") for _, _, key, _, _ in embedded.read("t", 0, 0)] == [*range(2_000), 5_000, 5_001]
    assert staged(embedded) == []


def test_part_that_fails_and_append_that_is_given_up_leave_nothing(embedded: EmbeddedLog) -> None:
    append = begun(embedded, "a")
    with pytest.raises(ValueError, match="no more"):
        append.stage("0", "t", failing())
    assert staged(embedded) == []
    append.stage("1", "t", [outputs(0, 2_000)])
    append.discard()
    # It may be said twice.
    append.discard()
    assert staged(embedded) == []
    assert embedded.end_offsets([TOPIC]) == {TOPIC: 0}


def test_part_that_is_staged_after_the_end_is_refused_and_leaves_nothing(embedded: EmbeddedLog) -> None:
    append = begun(embedded, "a")

    def late() -> Iterator[Sequence[Output]]:
        yield outputs(0, 10)
        append.discard()
        yield outputs(10, 2_000)

    with pytest.raises(LogError, match="cannot be written"):
        append.stage("0", "t", late())
    assert list((Path(embedded.directory) / "staging").iterdir()) == []


def test_commit_that_cannot_read_a_part_adds_nothing(embedded: EmbeddedLog) -> None:
    append = begun(embedded, "a")
    parts = [append.stage(str(n), "t", [outputs(n * 2_000, 2_000)]) for n in range(2)]
    staged(embedded)[1].unlink()
    with pytest.raises(LogError, match="cannot be read"):
        append.commit(parts)
    assert embedded.end_offsets([TOPIC]) == {TOPIC: 0}


def test_commit_to_a_topic_that_was_deleted_adds_nothing(embedded: EmbeddedLog) -> None:
    append = begun(embedded, "a")
    embedded.create_topic("u")
    parts = [append.stage("0", "t", [outputs(0, 2)]), append.stage("1", "u", [outputs(0, 2)])]
    embedded.delete_topic("u")
    with pytest.raises(TopicError, match="there is no topic 'u'"):
        append.commit(parts)
    assert embedded.end_offsets([TOPIC]) == {TOPIC: 0}


def test_parts_that_nobody_has_committed_for_a_week_are_removed_by_another_append(embedded: EmbeddedLog) -> None:
    for name in ("old", "young"):
        begun(embedded, name).stage("0", "t", [outputs(0, 2_000)])
    [old, young] = [path.parent for path in staged(embedded)]
    eight_days = time.time() - 8 * 24 * 3600
    os.utime(old, (eight_days, eight_days))
    embedded.staged_append("other").discard()
    assert [path.parent for path in staged(embedded)] == [young]


@pytest.mark.kafka
def test_transaction_of_kafka_is_there_as_a_whole_or_not_at_all(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with pytest.raises(ValueError, match="no more"):
        kafka.append_in_transaction("t", failing(), "frame-0")
    assert kafka.read("t", 0, 0) == []
    written = kafka.append_in_transaction("t", [outputs(0, 100), outputs(100, 100)], "frame-0")
    # Brokers show what is committed a little later.
    assert kafka.wait_for_data({TOPIC: written[0][1] - 1}, timedelta(minutes=1))
    assert [int(key or b"") for _, _, key, _, _ in kafka.read("t", 0, 0)] == list(range(200))


@pytest.mark.kafka
def test_fenced_append_cannot_commit(kafka: KafkaLog) -> None:
    kafka.create_topic("t")

    def fenced() -> Iterator[Sequence[Output]]:
        yield outputs(0, 100)
        kafka.fence("t", ["frame-0", "frame-1"])
        yield outputs(100, 100)

    with pytest.raises(TaskMigratedError, match="taken over"):
        kafka.append_in_transaction("t", fenced(), "frame-0")
    assert kafka.read("t", 0, 0) == []
