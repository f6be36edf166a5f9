"""Topics of Kafka: what is particular to them, and the settings of its clients."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import TopicDescription  # type: ignore[attr-defined]  # the package does not list it

import headrace
from headrace.config import StreamsConfig
from headrace.errors import ConfigError, RetriableError, TopicError
from headrace.topics.consumer_group import GroupOffset
from headrace.topics.kafka import KafkaLog, administration, consumer_groups, time_lookup
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.client_errors import explain
from headrace.topics.kafka.settings import ClientSettings
from headrace.topics.log import Output
from tests.topics.kit import everything, keyed, record

pytestmark = pytest.mark.kafka


def test_records_come_back_as_they_were_but_for_time_zero(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    outputs: list[Output] = [
        (None, 5, b"k", b"v", ()),
        (None, -1, b"", b"", (("h", b"1"), ("h", None), ("ü", b""))),
        (None, 1, None, None, ()),
        (None, 7, b"\x00\xff", b"x" * 300_000, ()),
    ]
    assert kafka.append("t", outputs) == {0: (0, 4)}
    assert [(None, *rest) for _, *rest in kafka.read("t", 0, 0)] == outputs
    kafka.append("t", [record("a", "1", 0)])
    assert kafka.read("t", 0, 4)[0][1] == 1


def test_range_is_read_to_its_end_although_the_partition_has_ended_before(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    # The reader is kept. It is told of an end behind each of the following appends, before anybody asks it.
    assert kafka.read("t", 0, 0) == []
    for count in range(1, 4):
        kafka.append("t", [record("k", str(count))])
        time.sleep(0.3)
    assert [value for _, _, _, value, _ in kafka.read("t", 0, 0)] == [b"1", b"2", b"3"]


def test_time_in_the_far_future_is_refused_by_the_broker(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with pytest.raises(TopicError, match=r"message\.timestamp\.after\.max\.ms"):
        kafka.append("t", [record("a", "1", 1 << 60)])


def test_latest_time_of_a_long_range_is_asked_for(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_lookup, "READ", 1)
    kafka.create_topic("t")
    found = [100_000, 300_000, 200_000, 200_000, 500_000, 400_000, 600_000, 350_000]
    kafka.append("t", [record("k", "v", time_ms) for time_ms in found])
    for start in range(len(found)):
        for stop in range(start, len(found) + 1):
            latest = kafka.latest_time("t", 0, start, stop)
            if max(found[:start], default=0) <= max(found[start:stop], default=0):
                assert latest == max(found[start:stop], default=None)
            elif latest is not None:
                # A later record before the range hides which one in it is the latest.
                assert found[stop - 1] <= latest <= max(found[start:stop])


def test_compacted_records_leave_gaps(kafka: KafkaLog) -> None:
    configs = {"cleanup.policy": "compact", "segment.ms": 1, "min.cleanable.dirty.ratio": 0}
    kafka.create_topic("t", configs=configs)
    for number in range(6):
        # Every append closes the segment of the one before.
        kafka.append("t", [record("a", str(number), 1000 * number + 1), record(f"b{number}", "x", 1000 * number + 2)])
    # The open segment takes no part: of the others the last 'a' is kept, too.
    remaining = [1, 3, 5, 7, 8, 9, 10, 11]
    for _ in range(2000):
        offsets = [raw[0] for raw in everything(kafka, "t")]
        if offsets == remaining:
            break
    assert offsets == remaining
    for start in range(12):
        for stop in range(start, 13):
            assert [raw[0] for raw in kafka.read("t", 0, start, stop)] == [n for n in offsets if start <= n < stop]


def test_handle_pickles_and_opens_anew(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with pickle.loads(pickle.dumps(kafka)) as copy:
        copy.append("t", [record("a", "1")])
    assert [value for _, _, value in keyed(everything(kafka, "t"))] == ["1"]


def test_record_that_the_broker_refuses_is_explained(kafka: KafkaLog) -> None:
    kafka.create_topic("t", configs={"max.message.bytes": 1000})
    with pytest.raises(TopicError, match="too large"):
        kafka.append("t", [record("a", token_hex(5000))])


def test_unknown_client_setting_is_named(kafka: KafkaLog) -> None:
    kafka.create_topic("t")
    with KafkaLog(kafka.bootstrap_servers, consumer={"fetch.wait.max.mss": 1}) as log:
        with pytest.raises(ConfigError, match=r"fetch\.wait\.max\.mss"):
            log.read("t", 0, 0)
        assert log.topics() == ["t"]


def test_partition_that_has_no_leader_at_the_moment_counts(kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise keys would go to other partitions while a broker is away."""
    kafka.create_topic("t", partitions=3)
    ask = Administration._ask

    def ask_of_two_brokers(self: Administration, question: Any) -> Any:
        found = ask(self, question)
        if isinstance(found, TopicDescription):
            found.partitions[1].leader = None  # type: ignore[assignment]  # as the client has it
        return found

    monkeypatch.setattr(Administration, "_ask", ask_of_two_brokers)
    assert kafka.describe_topic("t").partitions == 3


def test_absent_broker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "FIRST_ANSWER_S", 0.3)
    with (
        KafkaLog("127.0.0.1:1") as log,
        pytest.raises(RetriableError, match=r"Kafka at '127\.0\.0\.1:1' did not answer"),
    ):
        log.topics()


@pytest.mark.parametrize("code", [KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN])
def test_broker_that_is_away_is_waited_for(code: int) -> None:
    assert isinstance(explain(KafkaError(code), "writing", "b:9092"), RetriableError)


def test_offsets_of_groups_are_not_asked_for() -> None:
    """The client dies if it asks a broker for them that has just come up; see ``tests/topics/start_soak.py``."""
    sources = Path(headrace.__file__).parent.rglob("*.py")
    assert [path for path in sources if "list_consumer_group_offsets" in path.read_text(encoding="utf-8")] == []


def test_offsets_of_a_group_are_asked_for_until_its_coordinator_is_there(
    kafka: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic("in")
    kafka.commit_group_offsets("app", {("in", 0): GroupOffset(3, "")})
    committed, refusals = (
        consumer_groups._read_offsets,
        iter([KafkaError.NOT_COORDINATOR, KafkaError.NOT_COORDINATOR]),
    )

    def refused_at_first(*args: Any) -> list[Any]:
        for code in refusals:
            raise KafkaException(KafkaError(code))
        return committed(*args)

    monkeypatch.setattr(consumer_groups, "_read_offsets", refused_at_first)
    assert kafka.group_offsets("app") == {("in", 0): GroupOffset(3, "")}


def test_settings_come_from_the_configuration_with_kafka_streams_prefixes() -> None:
    config = StreamsConfig(
        bootstrap_servers="b:9092",
        replication_factor=3,
        extras={
            "security.protocol": "SASL_SSL",
            "sasl.username": "user",
            "consumer.fetch.max.wait.ms": 50,
            "main.consumer.fetch.max.wait.ms": 60,
            "consumer.auto.offset.reset": "latest",
            "producer.max.request.size": 5_000_000,
            "producer.transaction.timeout.ms": 90_000,
            "admin.client.id": "boss",
        },
    )
    settings = ClientSettings.of(config)
    consumer = settings.for_consumer("group")
    assert (consumer["fetch.wait.max.ms"], consumer["auto.offset.reset"]) == (60, "error")
    assert consumer["isolation.level"] == "read_committed"
    assert settings.for_producer()["message.max.bytes"] == 5_000_000
    assert "transaction.timeout.ms" not in settings.for_producer()
    assert settings.for_producer("id")["transaction.timeout.ms"] == 90_000
    assert settings.for_admin()["client.id"] == "boss"
    assert settings.for_admin()["sasl.username"] == consumer["sasl.username"] == "user"
    assert settings.replication_factor == 3
    assert settings.task_timeout_s == 300
