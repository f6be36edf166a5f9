"""Particularities of applications whose topics are in Kafka."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from secrets import token_hex
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from headrace import JoinWindows, Materialized, Produced, Serdes, Streams, StreamsBuilder, TimeWindows
from headrace.errors import (
    IncompatibleTopologyError,
    MissingSourceTopicError,
    TopicError,
    TopologyError,
)
from headrace.state.engines.memory import MemoryEngine
from headrace.topics.kafka import KafkaLog
from tests.batches.failed_batch import check_that_all_results_come_once
from tests.spark.stand import LONG, Stand
from tests.topics.journals import group_offsets
from tests.topics.kit import everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SECOND = timedelta(seconds=1)


def counts(builder: StreamsBuilder) -> None:
    table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
    table.to_stream().to("out", Produced(value_serde=Serdes.json()))


def copy(builder: StreamsBuilder) -> None:
    builder.stream("in").to("out")


def running(streams: Streams, until: Callable[[Any], bool]) -> threading.Event:
    """Returns an event that is set when a batch fulfils a condition."""
    seen = threading.Event()

    def listen(batch: Any) -> None:
        if until(batch):
            seen.set()

    streams.add_batch_listener(listen)
    return seen


def test_internal_topics_are_made_as_kafka_streams_makes_them(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in", 3)

    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        grouped.count(materialized=Materialized("all"))
        grouped.windowed_by(TimeWindows.of_size_and_grace(60 * SECOND, SECOND)).count(materialized=Materialized("last"))

    stand.run(build)
    every, last = kafka.describe_topic("app-all-changelog"), kafka.describe_topic("app-last-changelog")
    own_times = {"message.timestamp.type": "CreateTime"}
    assert (every.partitions, every.configs) == (3, {"cleanup.policy": "compact", **own_times})
    # Rows expire by stream time, never by the clock of a broker.
    unlimited = {"retention.ms": "-1", "retention.bytes": "-1"}
    assert last.configs.items() >= {"cleanup.policy": "compact,delete", "retention.ms": "-1"}.items()
    assert last.configs.items() <= {"cleanup.policy": "compact,delete", **unlimited, **own_times}.items()


def test_offsets_of_the_consumer_group_follow_the_positions(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in", 2)
    stand.write("in", *((f"k{number}", number, 1000 + number) for number in range(20)))
    stand.run(counts)
    ends = kafka.end_offsets([("in", 0), ("in", 1)])
    assert kafka.positions("app") == ends
    assert group_offsets(kafka, "app", ends) == ends


def test_an_empty_directory_goes_on_from_kafka_alone(stand: Stand) -> None:
    stand.topic("in")
    stand.topic("out")
    stand.write("in", ("a", 1, 1), ("a", 1, 2))
    stand.run(counts)
    before = stand.read("out")
    (stand.directory / "app").rename(stand.directory / "gone")
    stand.write("in", ("a", 1, 3))
    stand.run(counts)
    assert (before, stand.read("out")) == ([("a", 2, 2)], [("a", 3, 3)])


def test_new_partitions_are_read_by_who_remembers_nothing(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in", 1)
    stand.write("in", ("a", 1, 1))
    streams = stand.streams(copy, **{"consumer.auto.offset.reset": "latest"})
    first = running(streams, lambda batch: True)
    second = running(streams, lambda batch: batch.records_in == 1)
    with streams:
        assert first.wait(LONG.total_seconds())
        kafka._administration.grow("in", 2)
        kafka.append("in", [(1, 5, b"b", b"2", ())])
        assert second.wait(LONG.total_seconds())
    assert [value for _, value, _ in stand.read("out")] == [2]


def test_new_partitions_stop_who_has_state(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in", 1)
    streams = stand.streams(counts)
    first = running(streams, lambda batch: True)
    streams.start()
    assert first.wait(LONG.total_seconds())
    kafka._administration.grow("in", 2)
    with pytest.raises(IncompatibleTopologyError, match=r"'in' had 1 part.*has 2.*headrace grow app .*in=2"):
        streams.wait(LONG)
    with pytest.raises(IncompatibleTopologyError, match="'in' had 1 partitions and now has 2"):
        stand.streams(counts).start()


def test_topic_that_is_deleted_while_it_is_read_is_named(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in")
    streams = stand.streams(copy)
    first = running(streams, lambda batch: True)
    streams.start()
    assert first.wait(LONG.total_seconds())
    kafka.delete_topic("in")
    with pytest.raises(MissingSourceTopicError, match=r"application 'app': 'in', which it reads, was deleted"):
        streams.wait(LONG)


def test_record_that_the_broker_refuses_is_explained(stand: Stand) -> None:
    stand.topic("in")
    stand.topic("out", max_message_bytes="1000")
    stand.write("in", ("a", token_hex(5000), 1))
    streams = stand.streams(copy).start(until_end=True)
    with pytest.raises(TopicError, match=r"too large .* writing to topic 'out' .* raise 'max\.message\.bytes'"):
        streams.wait(LONG)
    assert stand.read("out") == []


def test_a_record_that_cannot_be_read_loses_no_results_of_others(stand: Stand, kafka: KafkaLog) -> None:
    check_that_all_results_come_once(kafka, stand.run)


def test_inputs_of_a_join_need_equally_many_partitions(stand: Stand) -> None:
    stand.topic("orders", 2)
    stand.topic("payments", 3)

    def build(builder: StreamsBuilder) -> None:
        windows = JoinWindows.of_time_difference_with_no_grace(SECOND)
        builder.stream("orders").join(builder.stream("payments"), lambda one, two: one, windows=windows).to("out")

    with pytest.raises(TopologyError, match=r"'orders' has 2 .*'payments' has 3|co-partitioned"):
        stand.streams(build).start()


def test_missing_topic_is_told_before_anything_starts(stand: Stand) -> None:
    stand.topic("inn")
    with pytest.raises(MissingSourceTopicError, match="'in', which sub-topology 0 reads, does not; did you mean 'inn'"):
        stand.streams(copy).start()


def test_loss_by_retention_can_be_left_behind_and_is_logged(
    stand: Stand, kafka: KafkaLog, caplog: pytest.LogCaptureFixture
) -> None:
    stand.topic("in")
    stand.write("in", ("a", 1, 1))
    stand.run(copy)
    stand.write("in", ("a", 2, 2), ("a", 3, 3))
    kafka.delete_records({("in", 0): 2})
    with caplog.at_level(logging.WARNING):
        stand.run(copy, on_offset_out_of_range="earliest")
    assert [value for _, value, _ in stand.read("out")] == [1, 3]
    assert "offset 1 is gone; going on at 2" in caplog.text


def test_at_least_once_needs_no_transactions(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in", 2)
    stand.write("in", *((f"k{number}", number, 1000 + number) for number in range(20)))
    stand.run(counts, processing_guarantee="at_least_once")
    stand.write("in", ("k1", 1, 2000))
    stand.run(counts, processing_guarantee="at_least_once")
    found = stand.read("out")
    assert len(found) == 21
    assert ("k1", 2, 2000) in found
    # The end of a transaction would take an offset.
    assert sum(kafka.end_offsets([("out", 0), ("out", 1)]).values()) == 21


def test_changelog_that_the_broker_has_compacted_rebuilds_the_store(stand: Stand, kafka: KafkaLog) -> None:
    stand.topic("in")
    # Every batch closes the segment before, and what is closed can be compacted.
    settings = {"topic.segment.ms": 1, "topic.min.cleanable.dirty.ratio": 0}
    expected: dict[str, int] = {}
    for number in range(2):
        for key in ("a", "b", f"c{number}"):
            expected[key] = expected.get(key, 0) + 1
            stand.write("in", (key, number, 1000 * number + 1))
        stand.run(counts, **settings)
    changelog = "app-counts-changelog"
    for _ in range(2000):
        left = everything(kafka, changelog)
        if len(left) < 6:
            break
    assert len(left) < 6, "the broker compacts it within some seconds"
    builder = StreamsBuilder()
    counts(builder)
    store = builder.build().store_builders["counts"].build(MemoryEngine(), default_key_serde=Serdes.string())
    store.restore([(key, value, time_ms) for _, time_ms, key, value, _ in left if key is not None])
    assert {key: row.value for key, row in store.all()} == expected
