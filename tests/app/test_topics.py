"""The topics around a topology: what must be there, what is made, and what does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    BufferConfig,
    Grouped,
    JoinWindows,
    KTable,
    Materialized,
    Processor,
    Record,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from headrace.app.topics import (
    WantedTopic,
    check_sources,
    external_partitions,
    internal_topics,
    make_internal,
    make_outputs,
)
from headrace.errors import (
    MisconfiguredInternalTopicError,
    MissingInternalTopicsError,
    MissingSourceTopicError,
    TopicError,
)
from headrace.topics.embedded import EmbeddedLog
from headrace.topology.queryable_stores import queryable_stores
from tests.app.kit import config, counting

SECOND = timedelta(seconds=1)
BACK_EDGE = "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000013-topic"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", sync="none") as opened:
        yield opened


def prepare(log: EmbeddedLog, topology: Topology, tmp_path: Path, **settings: Any) -> None:
    settled = config(tmp_path, **settings)
    make_outputs(topology, settled, log, external_partitions(topology, "app", log))
    wanted = internal_topics(topology, settled, external_partitions(topology, "app", log))
    make_internal(wanted, settled, log, [topic.name for topic in wanted])


def foreign_key_join() -> Topology:
    builder = StreamsBuilder()
    orders: KTable[str, Any] = builder.table("orders", materialized=Materialized("orders-store"))
    users: KTable[str, Any] = builder.table("users")
    orders.join(users, lambda order, user: order, foreign_key=lambda order: order["user"]).to_stream().to("out")
    return builder.build()


def partitions(log: EmbeddedLog) -> dict[str, int]:
    return {name: log.describe_topic(name).partitions for name in log.topics()}


def test_all_missing_sources_are_named_with_the_command_that_makes_them() -> None:
    builder = StreamsBuilder()
    builder.stream(["orders", "order"]).to("out")
    builder.global_table("rates")
    with pytest.raises(MissingSourceTopicError) as caught:
        check_sources(builder.build(), {"orders": 4})
    message = str(caught.value)
    assert "'order', which sub-topology 0 reads, does not; did you mean 'orders'?" in message
    assert "'rates', which a global table reads, does not" in message
    assert "`headrace topics create order --partitions 4` and `headrace topics create rates --partitions 1`" in message


def test_outputs_are_made_with_as_many_partitions_as_tasks_write_them(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=3)
    log.create_topic("there", partitions=7)
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.to("out")
    stream.to("there")
    moved = stream.repartition(Repartitioned(name="moved", partitions=5))
    moved.to("wide")
    moved.to("out")
    prepare(log, builder.build(), tmp_path, errors_dead_letter_queue_topic_name="failed")
    assert partitions(log) == {"in": 3, "there": 7, "out": 5, "wide": 5, "failed": 1}


def test_what_flows_forward_is_not_in_the_log_and_back_edges_are(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("orders", partitions=3)
    log.create_topic("users", partitions=2)
    prepare(log, foreign_key_join(), tmp_path, extras={"topic.segment.bytes": 1000})
    made = {name: number for name, number in partitions(log).items() if name.startswith("app-")}
    changelogs = {
        "app-orders-store-changelog": 3,
        "app-users-STATE-STORE-0000000002-changelog": 2,
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000009-changelog": 2,
    }
    assert made == {BACK_EDGE: 3, **changelogs}
    assert log.describe_topic(BACK_EDGE).configs == {
        "cleanup.policy": "delete",
        "segment.bytes": "1000",
        "retention.ms": "-1",
        "message.timestamp.type": "CreateTime",
    }


def test_changelogs_have_the_settings_of_their_stores(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=2)
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    own: Materialized[Any, Any] = Materialized("own", log_config={"segment.ms": "5"})
    grouped.count(materialized=own)
    windows = TimeWindows.of_size_with_no_grace(SECOND)
    grouped.windowed_by(windows).count(materialized=Materialized("windowed", retention=SECOND))
    extras = {"topic.segment.ms": 6, "topic.delete.retention.ms": "7"}
    prepare(log, builder.build(), tmp_path, extras=extras)
    # Else brokers may put their own times into records, and rows would come back with those.
    common = {"delete.retention.ms": "7", "message.timestamp.type": "CreateTime"}
    assert log.describe_topic("app-own-changelog").configs == common | {"cleanup.policy": "compact", "segment.ms": "5"}
    assert log.describe_topic("app-windowed-changelog").configs == common | {
        "cleanup.policy": "compact,delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "segment.ms": "6",
    }


def test_wrong_setting_of_internal_topics_is_named(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("in")
    with pytest.raises(TopicError, match=r"'app-counts-changelog': there is no setting 'segment\.byte'"):
        prepare(log, counting(), tmp_path, extras={"topic.segment.byte": 1000})


def test_topics_that_fit_are_taken_as_they_are(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=2)
    for _ in range(2):
        prepare(log, counting(), tmp_path)
    assert partitions(log) == {"in": 2, "out": 2, "app-counts-changelog": 2}


def test_internal_topic_with_another_partition_count(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("in", partitions=2)
    log.create_topic("app-counts-changelog", partitions=3, configs={"cleanup.policy": "compact"})
    log.append("app-counts-changelog", [(2, 0, b"k", b"v", ())])
    with pytest.raises(MisconfiguredInternalTopicError, match=r"must have 2 partitions, .*found 3; .*`headrace reset"):
        prepare(log, counting(), tmp_path)


def test_internal_topic_that_a_reset_has_emptied_is_made_anew_if_it_does_not_fit(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    log.create_topic("in", partitions=2)
    log.create_topic("app-counts-changelog", partitions=3, configs={"cleanup.policy": "compact"})
    log.append("app-counts-changelog", [(2, 0, b"k", b"v", ())])
    log.delete_records({("app-counts-changelog", 2): 1})
    prepare(log, counting(), tmp_path)
    assert partitions(log)["app-counts-changelog"] == 2


def test_changelog_that_is_not_compacted(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("in")
    log.create_topic("app-counts-changelog")
    with pytest.raises(MisconfiguredInternalTopicError, match=r"must be compacted; its cleanup\.policy is 'delete'"):
        prepare(log, counting(), tmp_path)


@pytest.mark.parametrize("lost", [BACK_EDGE, "app-orders-store-changelog"])
def test_internal_topic_that_is_gone_after_a_batch(log: EmbeddedLog, tmp_path: Path, lost: str) -> None:
    log.create_topic("orders")
    log.create_topic("users")
    prepare(log, foreign_key_join(), tmp_path)
    log.delete_topic(lost)
    prepare(log, foreign_key_join(), tmp_path)
    assert lost in log.topics(), "nothing was in it yet"
    log.open_journal("app", []).commit(0, [])
    log.delete_topic(lost)
    with pytest.raises(MissingInternalTopicsError, match=r"is gone; .*headrace reset app") as caught:
        prepare(log, foreign_key_join(), tmp_path)
    assert caught.value.topics == (lost,)
    # One that the application never had is made: it belongs to a store that is new.
    make_internal([WantedTopic(lost, 1, {"cleanup.policy": "compact"})], config(tmp_path), log)
    assert lost in log.topics()


def test_pattern_does_not_match_the_applications_own_topics(log: EmbeddedLog, tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile(".*")).group_by_key().count(materialized=Materialized("counts"))
    topology = builder.build()
    log.create_topic("in", partitions=2)
    log.create_topic("app-counts-changelog", partitions=9)
    assert external_partitions(topology, "app", log) == {"in": 2}


class Keep(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None: ...


def key_value(name: str) -> Any:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), Serdes.string(), Serdes.string())


def test_stores_that_can_be_queried_are_those_that_were_named() -> None:
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    grouped = one.group_by_key()
    grouped.count()
    grouped.count(materialized=Materialized("quiet", logging=False))
    named = grouped.count(materialized=Materialized("named"))
    named.suppress(Suppressed.until_time_limit(SECOND, BufferConfig.unbounded(), name="later"))
    one.group_by(lambda key, value: value, Grouped("by")).count(materialized=Materialized("regrouped"))
    joined: StreamJoined[Any, Any, Any] = StreamJoined(name="pair", store_name="pair")
    one.outer_join(two, lambda a, b: a, windows=JoinWindows.of_time_difference_with_no_grace(SECOND), joined=joined)
    builder.table("three")
    builder.table("four", materialized=Materialized("four-store")).filter(lambda key, value: True)
    builder.global_table("five", materialized=Materialized("five-store"))
    builder.add_state_store(key_value("mine"))
    builder.add_state_store(key_value("unused"))
    one.process(Keep, "mine")
    assert queryable_stores(builder.build()) == {"named", "regrouped", "four-store", "mine"}


def test_table_whose_topic_is_its_changelog_has_no_other() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized("rows"))
    assert queryable_stores(builder.build()) == {"rows"}
    assert queryable_stores(builder.build({"topology.optimization": "all"})) == set()


def test_read_only_store_has_no_changelog_of_its_own() -> None:
    topology = Topology().add_read_only_state_store(key_value("prices"), "source", "prices", "update", Keep)
    assert queryable_stores(topology) == set()
