"""Obstacles to a takeover: each is named before anything is changed.

Kafka Streams itself is not needed here: what it leaves are topics, and offsets with metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer

from headrace import Grouped, Materialized, Processor, Serdes, Stores, Streams, StreamsBuilder, StreamsConfig, Topology
from headrace.app.engine import local_engine
from headrace.change.takeover.handing_back import hand_back
from headrace.change.takeover.taking_over import examine, take_over
from headrace.errors import BatchError, ChangeRefusedError, IncompatibleTopologyError
from headrace.topics.consumer_group import GroupOffset, OffsetMetadata
from headrace.topics.kafka import KafkaLog
from tests.topics.journals import open_transaction
from tests.topics.kit import record

pytestmark = pytest.mark.kafka

CHANGELOG = "app-counts-changelog"
METADATA = OffsetMetadata(1_000).encode()
ONE = (1).to_bytes(8)


def counting(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by_key(Grouped(key_serde=Serdes.string(), value_serde=Serdes.string()))
    counts = grouped.count(materialized=Materialized("counts", value_serde=Serdes.long()))
    counts.to_stream().to("out")


class Left:
    """An application of Kafka Streams that was closed after it had counted one record of each of two keys."""

    def __init__(self, log: KafkaLog, directory: Path) -> None:
        self.log = log
        self.config = StreamsConfig.of(
            {
                "application_id": "app",
                "bootstrap.servers": log.bootstrap_servers,
                "state_dir": str(directory),
                "statestore.cache.max.bytes": 0,
                "default.value.serde": Serdes.string(),
            }
        )
        for topic in ("in", "out"):
            log.create_topic(topic)
        log.create_topic(CHANGELOG, configs={"cleanup.policy": "compact"})
        log.append("in", [record("a", "x"), record("b", "x")])
        log.append(CHANGELOG, [(0, 1_000, b"a", ONE, ()), (0, 1_000, b"b", ONE, ())])
        self.commit(2)

    def commit(self, offset: int, metadata: str = METADATA, topic: str = "in") -> None:
        self.log.commit_group_offsets("app", {(topic, 0): GroupOffset(offset, metadata)})

    def topology(self, build: Callable[[StreamsBuilder], Any] = counting) -> Topology:
        builder = StreamsBuilder(self.config)
        build(builder)
        return builder.build(self.config)

    def examine(self, build: Callable[[StreamsBuilder], Any] = counting, **options: Any) -> Any:
        return examine(self.topology(build), self.config, self.log, **options)

    def take_over(self, build: Callable[[StreamsBuilder], Any] = counting) -> None:
        take_over(self.topology(build), self.config, self.log, self.examine(build))

    def run(self, build: Callable[[StreamsBuilder], Any] = counting) -> None:
        Streams(self.topology(build), self.config, log=self.log, engine=local_engine).run(until_end=True)

    def counted(self) -> list[tuple[bytes | None, int]]:
        return [(key, int.from_bytes(value or b"")) for _, _, key, value, _ in self.log.read("out", 0, 0)]


@pytest.fixture
def left(kafka: KafkaLog, tmp_path: Path) -> Left:
    return Left(kafka, tmp_path)


def test_counts_go_on_where_they_were(left: Left) -> None:
    with pytest.raises(IncompatibleTopologyError, match="headrace takeover app"):
        left.run()
    left.take_over()
    left.log.append("in", [record("a", "x"), record("c", "x")])
    left.run()
    assert left.counted() == [(b"a", 2), (b"c", 1)]
    with pytest.raises(ChangeRefusedError, match="just start it"):
        left.examine()


def test_kafka_streams_that_ran_beside_is_noticed_at_the_next_start(left: Left) -> None:
    left.take_over()
    left.log.append("in", [record("a", "x"), record("a", "x")])
    left.run()
    left.log.append(CHANGELOG, [(0, 1_000, b"a", (9).to_bytes(8), ())])
    left.commit(4)
    with pytest.raises(BatchError, match=r"has run under this application\.id since"):
        left.run()
    with pytest.raises(ChangeRefusedError, match=r"has run under this application\.id since"):
        hand_back(left.topology(), left.config, left.log)
    left.take_over()
    left.log.append("in", [record("a", "x")])
    left.run()
    assert left.counted()[-1] == (b"a", 10)


def test_a_handed_back_application_has_to_be_taken_over(left: Left) -> None:
    with pytest.raises(ChangeRefusedError, match="nothing to hand back"):
        hand_back(left.topology(), left.config, left.log)
    left.take_over()
    left.run()
    hand_back(left.topology(), left.config, left.log)
    assert left.log.group_offsets("app") == {("in", 0): GroupOffset(2, METADATA)}
    with pytest.raises(BatchError, match="was handed back"):
        left.run()
    left.take_over()
    left.run()


def test_an_interrupted_takeover_is_finished_by_the_next_one(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(KafkaLog, "commit_group_offsets", fail)
        with pytest.raises(KeyboardInterrupt):
            left.take_over()
    with pytest.raises(BatchError, match="`headrace takeover app"):
        left.run()
    take_over(left.topology(), left.config, left.log, left.examine())
    left.log.append("in", [record("a", "x")])
    left.run()
    assert left.counted() == [(b"a", 2)]


def test_somebody_who_writes_meanwhile_is_noticed(left: Left) -> None:
    found = left.examine()
    left.log.append(CHANGELOG, [(0, 1_000, b"a", (9).to_bytes(8), ())])
    with pytest.raises(ChangeRefusedError, match=f"still writes.*{CHANGELOG}/0"):
        take_over(left.topology(), left.config, left.log, found)


def test_members_of_the_group_are_named(left: Left) -> None:
    settings = {
        "bootstrap.servers": left.log.bootstrap_servers,
        "group.id": "app",
        "client.id": "their-consumer",
        "session.timeout.ms": 6_000,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe(["in"])
        while not consumer.assignment():
            consumer.poll(0.1)
        with pytest.raises(ChangeRefusedError, match=r"has members: their-consumer.*session\.timeout\.ms"):
            left.examine()
    finally:
        consumer.close()


def test_an_open_transaction_is_waited_for_and_named(left: Left) -> None:
    producer = open_transaction(left.log, "0_0", CHANGELOG, [record("k", "v")])
    with pytest.raises(ChangeRefusedError, match=f"a transaction is open in {CHANGELOG}/0"):
        left.examine(wait=timedelta(seconds=0.5))
    producer.abort_transaction(10)


def test_other_topics_than_those_of_the_topology_are_named(left: Left) -> None:
    def renamed(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(materialized=Materialized("totals"))

    with pytest.raises(ChangeRefusedError, match=r"'app-totals-changelog' is missing; '.*' is not known"):
        left.examine(renamed)
    with pytest.raises(ChangeRefusedError, match=r"'Sub-topology: 7' in line 2 .*'Sub-topology: 0' in"):
        left.examine(description="Topologies:\n  Sub-topology: 7\n")
    left.log.grow_topic("in", 2)
    with pytest.raises(ChangeRefusedError, match=f"'{CHANGELOG}' must have 2 partitions"):
        left.examine()


def test_offsets_that_do_not_fit_are_named(left: Left) -> None:
    left.commit(2, "something else")
    with pytest.raises(ChangeRefusedError, match="metadata that is not of Kafka Streams"):
        left.examine()
    left.commit(3)
    with pytest.raises(ChangeRefusedError, match="read up to offset 3"):
        left.examine()
    left.commit(2)
    left.commit(0, topic="out")
    with pytest.raises(ChangeRefusedError, match="has read 'out', which the topology does not read"):
        left.examine()


def test_state_without_offsets_is_refused(kafka: KafkaLog, tmp_path: Path) -> None:
    left = Left(kafka, tmp_path)
    kafka.reset_application("app")
    with pytest.raises(ChangeRefusedError, match="records would count twice"):
        left.examine()


def test_a_store_that_is_only_on_javas_disks_has_to_be_given_up_by_name(left: Left) -> None:
    def unlogged(builder: StreamsBuilder) -> None:
        counting(builder)
        supplier = Stores.persistent_key_value_store("notes")
        builder.add_state_store(Stores.key_value_store_builder(supplier).with_logging_disabled())
        builder.stream("in").process(Noting, "notes")

    with pytest.raises(ChangeRefusedError, match=r"'notes'.*--lose notes"):
        left.examine(unlogged)
    assert left.examine(unlogged, lost=["notes"]).records == {"counts": 2}


class Noting(Processor[Any, Any, Any, Any]):
    """A processor that does nothing."""

    def process(self, record: Any) -> None: ...


def test_a_key_that_the_serde_writes_otherwise_is_named(left: Left) -> None:
    def as_json(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key(Grouped(key_serde=Serdes.json()))
        grouped.count(materialized=Materialized("counts", key_serde=Serdes.json())).to_stream().to("out")

    with pytest.raises(ChangeRefusedError, match=f"store 'counts', record 0 of {CHANGELOG}/0: the key b'a' is written"):
        left.examine(as_json)


def test_a_suppressed_row_of_an_old_version_is_named(left: Left) -> None:
    def suppressed(builder: StreamsBuilder) -> None:
        from headrace import BufferConfig, Suppressed

        counts = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
        wait = Suppressed.until_time_limit(timedelta(seconds=1), BufferConfig.unbounded(), name="wait")
        counts.suppress(wait).to_stream().to("out")

    left.log.create_topic("app-wait-store-changelog", configs={"cleanup.policy": "compact"})
    left.log.append("app-wait-store-changelog", [(0, 1_000, b"a", bytes(60), (("v", b"\2"),))])
    with pytest.raises(ChangeRefusedError, match=r"record 0 of app-wait-store-changelog/0: .* in the format 2"):
        left.examine(suppressed)


def test_unread_records_of_repartitions_come_first_the_deepest_before_all(kafka: KafkaLog, tmp_path: Path) -> None:
    def twice(builder: StreamsBuilder) -> None:
        text = Grouped(key_serde=Serdes.string(), value_serde=Serdes.string(), name="first")
        first = (
            builder.stream("in")
            .group_by(lambda _, value: value, text)
            .reduce(lambda total, new: f"{total}{new}", materialized=Materialized("seen", value_serde=Serdes.string()))
        )
        behind = Grouped(key_serde=Serdes.string(), value_serde=Serdes.string(), name="second")
        second = (
            first.to_stream()
            .group_by(lambda _key, _value: "all", behind)
            .reduce(lambda total, new: f"{total},{new}", materialized=Materialized("all", value_serde=Serdes.string()))
        )
        second.to_stream().to("out")

    config = StreamsConfig.of(
        {
            "application_id": "app",
            "bootstrap.servers": kafka.bootstrap_servers,
            "state_dir": str(tmp_path),
            "default.value.serde": Serdes.string(),
            "statestore.cache.max.bytes": 0,
        }
    )
    for topic in ("in", "out", "app-first-repartition", "app-second-repartition"):
        kafka.create_topic(topic)
    for topic in ("app-seen-changelog", "app-all-changelog"):
        kafka.create_topic(topic, configs={"cleanup.policy": "compact"})
    # One record was read everywhere; the others got stuck at a level each, the oldest in the deepest.
    kafka.append("in", [record("k", "1"), record("k", "2"), record("k", "3"), record("k", "4")])
    kafka.append("app-first-repartition", [record("1", "1"), record("2", "2"), record("3", "3")])
    kafka.append("app-second-repartition", [record("all", "1"), record("all", "2")])
    kafka.append("app-seen-changelog", [(0, 1_000, b"1", b"1", ()), (0, 1_000, b"2", b"2", ())])
    kafka.append("app-all-changelog", [(0, 1_000, b"all", b"1", ())])
    read = {("in", 0): 3, ("app-first-repartition", 0): 2, ("app-second-repartition", 0): 1}
    kafka.commit_group_offsets("app", {target: GroupOffset(at, METADATA) for target, at in read.items()})
    builder = StreamsBuilder(config)
    twice(builder)
    topology = builder.build(config)
    found = examine(topology, config, kafka)
    assert found is not None
    assert found.legacy.unread == {("app-first-repartition", 0): 1, ("app-second-repartition", 0): 1}
    take_over(topology, config, kafka, found)
    with pytest.raises(ChangeRefusedError, match="still to be read"):
        hand_back(topology, config, kafka)
    Streams(topology, config, log=kafka, engine=local_engine).run(until_end=True)
    assert [value for _, _, _, value, _ in kafka.read("out", 0, 0)] == [b"1,2", b"1,2,3", b"1,2,3,4"]
    offsets = hand_back(topology, config, kafka).offsets
    assert {target: at.offset for target, at in offsets.items()} == {
        ("in", 0): 4,
        ("app-first-repartition", 0): 3,
        ("app-second-repartition", 0): 2,
    }
