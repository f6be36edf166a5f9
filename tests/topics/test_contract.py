"""Contract of every topic log."""

from __future__ import annotations

import threading

import pytest

from headrace.errors import (
    LogError,
    OffsetOutOfRangeError,
    TopicError,
    TopicExistsError,
    UnknownTopicError,
)
from headrace.topics.log import Output, TopicLog
from headrace.topics.partitioner import partition_for
from tests.topics.kit import AT_ONCE, SOON, everything, keyed, record

BIG = "x" * 1000


def test_topics_are_created_described_listed_and_deleted(log: TopicLog) -> None:
    log.create_topic("users", partitions=3, configs={"cleanup.policy": "compact", "delete.retention.ms": 5})
    log.create_topic("orders")
    assert log.topics() == ["orders", "users"]
    users = log.describe_topic("users")
    assert (users.name, users.partitions, users.is_compacted) == ("users", 3, True)
    assert users.configs["delete.retention.ms"] == "5"
    log.delete_topic("users")
    assert log.topics() == ["orders"]
    with pytest.raises(UnknownTopicError, match="no topic 'users'"):
        log.describe_topic("users")


def test_existing_topic_is_not_created_again(log: TopicLog) -> None:
    log.create_topic("users", partitions=2)
    with pytest.raises(TopicExistsError, match="'users' is there already, with 2 partitions"):
        log.create_topic("users", partitions=2)


def test_topic_made_anew_is_empty(log: TopicLog) -> None:
    log.create_topic("users", replicas=1)
    log.append("users", [record("a", "1")])
    before = log.topic_id("users")
    assert log.topic_id("users") == before
    log.delete_topic("users")
    with pytest.raises(UnknownTopicError, match="no topic 'users'"):
        log.topic_id("users")
    log.create_topic("users", partitions=2)
    assert log.topic_id("users") != before
    assert log.end_offsets([("users", 0), ("users", 1)]) == {("users", 0): 0, ("users", 1): 0}
    assert log.append("users", [record("b", "2", partition=1)]) == {1: (0, 1)}


def test_topic_gets_more_partitions(log: TopicLog) -> None:
    log.create_topic("users", partitions=2, configs={"cleanup.policy": "compact"})
    log.append("users", [record("a", "1", partition=1)])
    before = log.topic_id("users")
    log.grow_topic("users", 4)
    log.grow_topic("users", 4)
    assert (log.partitions_of("users"), log.describe_topic("users").is_compacted) == (4, True)
    assert log.topic_id("users") == before
    assert log.append("users", [record("b", "2", partition=3)]) == {3: (0, 1)}
    assert log.end_offsets([("users", n) for n in range(4)]) == {("users", n): n % 2 for n in range(4)}
    with pytest.raises(TopicError, match="'users' has 4 partitions, and can never have fewer; 3 were asked for"):
        log.grow_topic("users", 3)
    with pytest.raises(UnknownTopicError, match="no topic 'user'"):
        log.grow_topic("user", 3)


@pytest.mark.parametrize("name", ["", ".", "two words", "x" * 250, "ü"])
def test_impossible_topic_name_is_refused(log: TopicLog, name: str) -> None:
    with pytest.raises(TopicError, match="a topic name has 1 to 249"):
        log.create_topic(name)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"cleanup.policy": "never"}, "cleanup.policy must be 'delete', 'compact'"),
        ({"retention.ms": "soon"}, "retention.ms must be a whole number, at least -1; found str 'soon'"),
        ({"min.cleanable.dirty.ratio": 2}, "must be a number from 0 to 1"),
        ({"retention.msec": 1}, "did you mean 'retention.ms'"),
    ],
)
def test_impossible_setting_is_refused(log: TopicLog, configs: dict[str, object], message: str) -> None:
    with pytest.raises(TopicError, match=message):
        log.create_topic("users", configs=configs)


def test_unknown_topic_is_named_with_a_guess(log: TopicLog) -> None:
    log.create_topic("purchases")
    with pytest.raises(UnknownTopicError, match="no topic 'purchase' in the log; did you mean 'purchases'"):
        log.append("purchase", [record("a", "1")])
    with pytest.raises(UnknownTopicError, match="create it first"):
        log.read("zebra", 0, 0)


def test_records_come_back_as_they_were(log: TopicLog) -> None:
    log.create_topic("t")
    outputs: list[Output] = [
        (None, 5, b"k", b"v", ()),
        (None, -1, b"", b"", (("h", b"1"), ("h", None), ("ü", b""))),
        (None, 1 << 60, None, None, ()),
        (0, 0, b"\x00\xff", b"x" * 300_000, ()),
    ]
    assert log.append("t", outputs) == {0: (0, 4)}
    assert [(None if offset < 3 else 0, *rest) for offset, *rest in log.read("t", 0, 0)] == outputs


def test_keys_go_where_kafka_puts_them(log: TopicLog) -> None:
    log.create_topic("t", partitions=5)
    log.append("t", [record(f"key-{n}", str(n)) for n in range(100)])
    for partition in range(5):
        for _, _, key, _, _ in log.read("t", partition, 0):
            assert key is not None
            assert partition_for(key, 5) == partition


def test_records_without_key_stick_to_a_partition_and_reach_all(log: TopicLog) -> None:
    log.create_topic("t", partitions=3)
    small = log.append("t", [record(None, "x"), record(None, "y")])
    assert len(small) == 1
    assert len(log.append("t", [record(None, BIG) for _ in range(100)])) == 3


def test_record_for_a_missing_partition_is_refused_with_all_others(log: TopicLog) -> None:
    log.create_topic("t", partitions=2)
    with pytest.raises(TopicError, match="partitions 0 to 1; a record was written to partition 2"):
        log.append("t", [record("a", "1"), record("b", "2", partition=2)])
    with pytest.raises(TopicError, match="partitions 0 to 1"):
        log.read("t", 2, 0)
    assert log.end_offsets([("t", 0), ("t", 1)]) == {("t", 0): 0, ("t", 1): 0}


def test_compacted_topic_refuses_records_without_key(log: TopicLog) -> None:
    log.create_topic("t", configs={"cleanup.policy": "compact"})
    with pytest.raises(TopicError, match="'t' is compacted, so its records need keys"):
        log.append("t", [record("a", "1"), record(None, "2")])


def test_read_keeps_to_range_and_limits(log: TopicLog) -> None:
    log.create_topic("t")
    for start in range(0, 100, 10):
        log.append("t", [record("k", str(n)) for n in range(start, start + 10)])
    values = [value for _, _, value in keyed(log.read("t", 0, 15, 38))]
    assert values == [str(n) for n in range(15, 38)]
    assert [raw[0] for raw in log.read("t", 0, 95, 1000)] == [95, 96, 97, 98, 99]
    assert [raw[0] for raw in log.read("t", 0, 7, max_records=5)] == [7, 8, 9, 10, 11]
    assert 1 <= len(log.read("t", 0, 0, max_bytes=1)) <= 10
    assert log.read("t", 0, 100) == log.read("t", 0, 50, 50) == []
    assert [raw[0] for raw in everything(log, "t", max_records=7)] == list(range(100))


def test_nothing_to_append_is_nothing(log: TopicLog) -> None:
    log.create_topic("t")
    assert log.append("t", []) == {}
    assert log.append("t", iter([record("a", "1")])) == {0: (0, 1)}


def test_offset_outside_the_log_is_refused(log: TopicLog) -> None:
    log.create_topic("t")
    log.append("t", [record("a", str(n)) for n in range(10)])
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 10; offset 11 was asked for") as caught:
        log.read("t", 0, 11)
    assert (caught.value.begin, caught.value.end) == (0, 10)
    log.delete_records({("t", 0): 4})
    with pytest.raises(OffsetOutOfRangeError, match="offset 3 was asked for; what lay before was removed"):
        log.read("t", 0, 3)


def test_deleted_records_are_gone_and_offsets_stay(log: TopicLog) -> None:
    log.create_topic("t")
    log.append("t", [record("a", str(n)) for n in range(10)])
    log.delete_records({("t", 0): 4})
    assert log.begin_offsets([("t", 0)]) == {("t", 0): 4}
    assert [raw[0] for raw in log.read("t", 0, 4)] == [4, 5, 6, 7, 8, 9]
    log.delete_records({("t", 0): 2})
    log.delete_records({("t", 0): 100})
    assert log.begin_offsets([("t", 0)]) == log.end_offsets([("t", 0)], stable=False) == {("t", 0): 10}


def test_offset_for_time_is_the_first_record_not_before_it(log: TopicLog) -> None:
    log.create_topic("t")
    times = [10, 30, 20, 20, 50, 40, 60, 55]
    for time_ms in times:
        log.append("t", [record("k", "v", time_ms)])
    for asked in range(0, 70, 5):
        expected = next((offset for offset, time_ms in enumerate(times) if time_ms >= asked), None)
        assert log.offsets_for_time({("t", 0): asked}) == {("t", 0): expected}
    log.delete_records({("t", 0): 5})
    assert log.offsets_for_time({("t", 0): 0}) == {("t", 0): 5}


def test_times_within_a_range(log: TopicLog) -> None:
    log.create_topic("t")
    times = [10, 30, 20, 20, 50, 40, 60]
    # One blob of three, one of four, so that ranges begin and end within blobs and between them.
    log.append("t", [record("k", "v", time_ms) for time_ms in times[:3]])
    log.append("t", [record("k", "v", time_ms) for time_ms in times[3:]])
    for start in range(len(times)):
        for stop in range(start, len(times) + 1):
            part = times[start:stop]
            assert log.latest_time("t", 0, start, stop) == max(part, default=None)
            for asked in (0, 10, 20, 35, 60):
                later = next((place for place, time_ms in enumerate(part, start) if time_ms > asked), None)
                assert log.offset_after("t", 0, start, stop, asked) == later


def test_size_of_a_record_is_about_right(log: TopicLog) -> None:
    log.create_topic("t")
    assert log.record_bytes([("t", 0)]) == {("t", 0): 0}
    log.append("t", [record("key", "v" * 1000)] * 100)
    assert 1000 < log.record_bytes([("t", 0)])["t", 0] < 1100


def test_waiting_ends_with_data_or_with_the_time(log: TopicLog) -> None:
    log.create_topic("t", partitions=2)
    ends = {("t", 0): 0, ("t", 1): 0}
    assert not log.wait_for_data(ends, AT_ONCE)
    thread = threading.Timer(0.02, lambda: log.append("t", [record("a", "1", partition=1)]))
    thread.start()
    assert log.wait_for_data(ends, SOON)
    thread.join()
    assert log.wait_for_data(ends, AT_ONCE)
    assert not log.wait_for_data({("t", 0): 0, ("t", 1): 1}, AT_ONCE)


def test_closed_log_says_so(log: TopicLog) -> None:
    log.close()
    log.close()
    with pytest.raises(LogError, match="is closed; open it again"):
        log.topics()
