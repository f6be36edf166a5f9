"""The typed producer and consumer of scripts and tests."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

import pytest

from headrace import (
    ConfigError,
    ConsumedRecord,
    Consumer,
    DeserializationError,
    EmbeddedLog,
    Producer,
    Serdes,
    SerializationError,
    StreamsConfig,
    StreamsError,
    TimeWindow,
    Windowed,
)
from headrace.errors import TopicError, UnknownTopicError
from headrace.topics.partitioner import partition_for

TEXT, NUMBER = Serdes.string(), Serdes.integer()


def send_ages(config: StreamsConfig, partitions: int = 2) -> None:
    with Producer(config, "ages", TEXT, NUMBER, partitions=partitions) as producer:
        producer.send("ada", 36, timestamp_ms=1_000)
        producer.send("bob", 41, timestamp_ms=2_000, headers=[("from", b"web")])
        producer.send("ada", None, timestamp_ms=3_000)


def test_what_was_sent_is_consumed_with_everything_that_a_record_has(config: StreamsConfig) -> None:
    send_ages(config)
    with Consumer(config, "ages", TEXT, NUMBER) as ages:
        records = list(ages)
    assert [(each.key, each.value, each.timestamp_ms) for each in records] == [
        ("ada", 36, 1_000),
        ("bob", 41, 2_000),
        ("ada", None, 3_000),
    ]
    assert records[1].headers.last("from") == b"web"
    assert [each.partition for each in records] == [partition_for(each.key.encode(), 2) for each in records]
    assert records[0].position == f"ages-{records[0].partition} offset 0"


def test_types_come_from_the_serdes(tmp_path: Path) -> None:
    config = {"state.dir": tmp_path}
    with Producer(config, "ages", TEXT, NUMBER, partitions=1) as producer:
        assert_type(producer, Producer[str, int])
    with Consumer(config, "ages", TEXT, NUMBER) as consumer:
        assert_type(consumer, Consumer[str, int])
        assert_type(list(consumer), list[ConsumedRecord[str, int]])
    with Consumer(config, "ages") as plain:
        assert_type(plain, Consumer[Any, Any])
    with Consumer(config, "ages", value_serde=NUMBER) as values:
        assert_type(values, Consumer[Any, int])


def test_iterating_again_gives_what_came_since(config: StreamsConfig) -> None:
    send_ages(config)
    with Consumer(config, "ages", TEXT, NUMBER) as ages, Producer(config, "ages", TEXT, NUMBER) as producer:
        assert next(iter(ages)).value == 36
        assert [each.value for each in ages] == [41, None]
        assert list(ages) == []
        producer.send("eve", 29)
        producer.flush()
        assert [each.value for each in ages] == [29]


def test_follow_waits_for_records_of_others(config: StreamsConfig) -> None:
    send_ages(config)
    with Consumer(config, "ages", TEXT, NUMBER, start="latest", follow=True) as ages:
        sender = threading.Thread(target=lambda: send_ages(config))
        sender.start()
        following = iter(ages)
        assert {next(following).value for _ in range(3)} == {36, 41, None}
        sender.join()


def test_timeout_ends_when_nothing_comes(config: StreamsConfig) -> None:
    send_ages(config)
    with Consumer(config, "ages", TEXT, NUMBER, timeout=timedelta(milliseconds=1)) as ages:
        assert [each.value for each in ages] == [36, 41, None]


def test_start_and_partition(config: StreamsConfig) -> None:
    send_ages(config)
    bob = partition_for(b"bob", 2)
    with (
        Consumer(config, "ages", TEXT, NUMBER, start=2_000) as later,
        Consumer(config, "ages", TEXT, NUMBER, start="latest") as none,
        Consumer(config, "ages", TEXT, NUMBER, partition=bob) as one,
    ):
        assert [each.timestamp_ms for each in later] == [2_000, 3_000]
        assert list(none) == []
        assert [each.key for each in one] == ["bob"]


def test_many_records_in_a_loop_are_all_there_in_order(config: StreamsConfig) -> None:
    with Producer(config, "numbers", TEXT, NUMBER, partitions=1) as producer:
        for number in range(2_500):
            producer.send("a", number, timestamp_ms=number + 1)
    with Consumer(config, "numbers", TEXT, NUMBER) as numbers:
        assert [each.value for each in numbers] == list(range(2_500))


def test_records_are_written_soon_without_flush(config: StreamsConfig) -> None:
    with (
        Producer(config, "ages", TEXT, NUMBER, partitions=1) as producer,
        Consumer(config, "ages", TEXT, NUMBER, follow=True) as ages,
    ):
        producer.send("ada", 36)
        assert next(iter(ages)).value == 36


def test_windowed_key_goes_where_its_plain_key_goes(config: StreamsConfig) -> None:
    serde = Serdes.time_windowed(TEXT, 10)
    with Producer(config, "counts", serde, NUMBER, partitions=4) as producer:
        producer.send(Windowed("ada", TimeWindow(20, 30)), 1)
    with Consumer(config, "counts", serde, NUMBER) as counts:
        (record,) = counts
    assert (record.partition, record.key) == (partition_for(b"ada", 4), Windowed("ada", TimeWindow(20, 30)))


def test_what_cannot_be_read_is_named_and_can_be_skipped(config: StreamsConfig) -> None:
    with Producer(config, "ages", TEXT, TEXT, partitions=1) as producer:
        producer.send("ada", "a lot", timestamp_ms=1)
        producer.send("bob", "1234", timestamp_ms=2)
    with Consumer(config, "ages", TEXT, NUMBER) as ages:
        with pytest.raises(DeserializationError, match="partition 0, offset 0: value of topic 'ages'"):
            list(ages)
        assert [each.value for each in ages] == [int.from_bytes(b"1234")]


def test_what_cannot_be_written_is_refused_at_once_and_spoils_nothing(tmp_path: Path) -> None:
    config = {"state.dir": tmp_path}
    with Producer(config, "ages", TEXT, NUMBER, partitions=2) as producer:
        producer.send("ada", 36)
        with pytest.raises(SerializationError, match="value of topic 'ages': the integer serde needs"):
            producer.send("ada", "a lot")  # type: ignore[arg-type]  # this is the mistake
        with pytest.raises(TopicError, match="has partitions 0 to 1"):
            producer.send("ada", 37, partition=2)
        with pytest.raises(TopicError, match="timestamp_ms must be a whole number, at least 0; found float 1"):
            producer.send("ada", 37, timestamp_ms=1.5)  # type: ignore[arg-type]
        with pytest.raises(StreamsError, match="a header is a pair of str and bytes"):
            producer.send("ada", 37, headers=[("from", "web")])  # type: ignore[list-item]
    with Consumer(config, "ages", TEXT, NUMBER) as ages:
        assert [each.value for each in ages] == [36]


def test_compacted_topic_needs_keys(tmp_path: Path) -> None:
    config = {"state.dir": tmp_path}
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("users", configs={"cleanup.policy": "compact"})
    with Producer(config, "users") as users, pytest.raises(TopicError, match="is compacted, so its records need keys"):
        users.send(value={"age": 36})


def test_unknown_topic_says_how_to_make_it(config: StreamsConfig) -> None:
    send_ages(config)
    with pytest.raises(UnknownTopicError, match=r"Consumer: there is no topic 'agse' in .*; did you mean 'ages'\?"):
        Consumer(config, "agse")
    with pytest.raises(UnknownTopicError, match=r"create it with Producer\(…, partitions=1\)"):
        Producer(config, "orders")


def test_failure_in_the_background_is_raised_by_the_next_call(tmp_path: Path) -> None:
    config = {"state.dir": tmp_path}
    producer = Producer(config, "ages", partitions=1)
    with EmbeddedLog(tmp_path / "log") as log:
        log.delete_topic("ages")
    producer.send("ada", 36)
    with pytest.raises(StreamsError, match="there is no topic 'ages'"):
        # Whoever writes the group, the timer or this call.
        producer.close()
    with pytest.raises(StreamsError, match="Producer of 'ages' is closed; make another one"):
        producer.send("ada", 37)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "earlist"}, r"start must be 'earliest', 'latest', or a time in milliseconds; .*did you mean"),
        ({"start": -1}, "found int -1"),
        ({"partition": 2}, "the topic has partitions 0 to 1; found 2"),
        ({"key_serde": str}, r"key_serde must be a serde; found type <class 'str'>; use for example Serdes.string"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    config = {"state.dir": tmp_path}
    Producer(config, "ages", partitions=2).close()
    with pytest.raises((ConfigError, TopicError), match=message):
        Consumer(config, "ages", **options)


def test_closed_consumer_says_so(tmp_path: Path) -> None:
    config = {"state.dir": tmp_path}
    send_ages(StreamsConfig.of(config))
    ages = Consumer(config, "ages", TEXT, NUMBER)
    ages.close()
    ages.close()
    with pytest.raises(StreamsError, match="Consumer of 'ages' is closed"):
        list(ages)
