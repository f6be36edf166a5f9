"""Topologies that cannot be built, and what the error says."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    TopologyError,
)

SECOND = timedelta(seconds=1)
WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


def versioned(name: str = "versions", seconds: int = 10) -> Materialized[Any, Any]:
    return Materialized(Stores.persistent_versioned_key_value_store(name, timedelta(seconds=seconds)))


def pair(a: Any, b: Any) -> tuple[Any, Any]:
    return a, b


def table_and_stream(builder: StreamsBuilder) -> None:
    builder.table("in")
    builder.stream("in")


def two_tables(builder: StreamsBuilder) -> None:
    builder.table("in")
    builder.table("in")


def overlapping_topics(builder: StreamsBuilder) -> None:
    builder.stream(["a", "b"])
    builder.stream("b")


def different_resets(builder: StreamsBuilder) -> None:
    builder.stream("in", Consumed(offset_reset="earliest"))
    builder.stream("in", Consumed(offset_reset="latest"))


def pattern_over_topic(builder: StreamsBuilder) -> None:
    builder.stream("orders-eu")
    builder.stream(re.compile("orders-.*"))


def duplicate_name(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.filter(lambda _k, _v: True, name="twice").filter(lambda _k, _v: True, name="twice")


def duplicate_store(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count(materialized=Materialized("rows"))
    builder.stream("b").group_by_key().count(materialized=Materialized("rows"))


def duplicate_user_store(builder: StreamsBuilder) -> None:
    supplier = Stores.in_memory_key_value_store("rows")
    builder.add_state_store(Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.string()))
    builder.stream("b").group_by_key().count(materialized=Materialized("rows"))


def unnamed_cogroup(builder: StreamsBuilder) -> None:
    add: Callable[..., int] = lambda _k, _v, total: total + 1  # noqa: E731
    first = builder.stream("a").group_by(lambda _k, v: v)
    second = builder.stream("b").group_by(lambda _k, v: v)
    first.cogroup(add).cogroup(second, add).aggregate(lambda: 0, materialized=Materialized("rows"))


def unknown_store(builder: StreamsBuilder) -> None:
    builder.stream("in").process(Idle, "missing")


def versioned_global_table(builder: StreamsBuilder) -> None:
    builder.global_table("in", materialized=versioned())


def suppressed_versions(builder: StreamsBuilder) -> None:
    wait = Suppressed.until_time_limit(SECOND, BufferConfig.unbounded())
    builder.table("in", materialized=versioned()).suppress(wait)


def suppressed_inherited_versions(builder: StreamsBuilder) -> None:
    wait = Suppressed.until_time_limit(SECOND, BufferConfig.unbounded())
    builder.table("in", materialized=versioned()).map_values(str).suppress(wait)


def suppressed_without_windows(builder: StreamsBuilder) -> None:
    builder.table("in").suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))


def grace_without_versions(builder: StreamsBuilder) -> None:
    builder.stream("s").join(builder.table("t"), pair, joined=Joined(name="j", grace_period=SECOND))


def grace_on_computed_table(builder: StreamsBuilder) -> None:
    table = builder.table("t").map_values(str)
    builder.stream("s").join(table, pair, joined=Joined(name="j", grace_period=SECOND))


def grace_longer_than_history(builder: StreamsBuilder) -> None:
    table = builder.table("t", materialized=versioned(seconds=1))
    builder.stream("s").join(table, pair, joined=Joined(name="j", grace_period=2 * SECOND))


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (table_and_stream, "topic 'in' has already been registered"),
        (two_tables, "topic 'in' has already been registered"),
        (overlapping_topics, r"overlapping but not equal ones \(b\)"),
        (different_resets, "different offset reset policies"),
        (pattern_over_topic, "matches 'orders-eu', which is already read"),
        (duplicate_name, "'twice' is already added"),
        (duplicate_store, "found different stores of that name at '.*' and '.*'"),
        (duplicate_user_store, "a different store has already been added with the name 'rows'"),
        (unnamed_cogroup, "'rows-repartition-filter' is already added"),
        (unknown_store, "store 'missing' is not added yet"),
        (versioned_global_table, "GlobalTables cannot be versioned"),
        (suppressed_versions, r"suppress\(\) is only supported for non-versioned KTables"),
        (suppressed_inherited_versions, r"suppress\(\) is only supported for non-versioned KTables"),
        (suppressed_without_windows, r"found none in \[KTABLE-SOURCE-0000000002\]"),
        (grace_without_versions, "join 'j': the KTable must be versioned"),
        (grace_on_computed_table, "join 'j': the KTable must be versioned"),
        (grace_longer_than_history, "history retention of store 'versions' must be at least the grace period, 2000 ms"),
    ],
)
def test_topology_is_refused(define: Callable[[StreamsBuilder], None], message: str) -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=message):
        build(builder, define)


def build(builder: StreamsBuilder, define: Callable[[StreamsBuilder], None]) -> None:
    define(builder)
    builder.build()


def unnamed_everything(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by(lambda _k, v: v).count()
    builder.stream("b").join(builder.stream("c"), pair, windows=WITHIN)


def named_everything(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by(lambda _k, v: v, Grouped("by-value")).count(materialized=Materialized("counts"))
    builder.stream("b").join(builder.stream("c"), pair, windows=WITHIN, joined=StreamJoined(name="bc", store_name="bc"))


def test_configuration_can_demand_names() -> None:
    strict = StreamsConfig(ensure_explicit_internal_resource_naming=True)
    builder = StreamsBuilder(strict)
    unnamed_everything(builder)
    with pytest.raises(TopologyError) as caught:
        builder.build()
    text = str(caught.value)
    assert "KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog" in text
    assert "KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition" in text
    assert "KSTREAM-JOINTHIS-0000000011-store" in text


def test_named_topology_satisfies_the_demand() -> None:
    builder = StreamsBuilder(StreamsConfig(ensure_explicit_internal_resource_naming=True))
    named_everything(builder)
    builder.build()


def test_fixed_partition_numbers_of_a_join_must_agree() -> None:
    builder = StreamsBuilder()
    left = builder.stream("a").repartition(Repartitioned("left", partitions=2))
    right = builder.stream("b").repartition(Repartitioned("right", partitions=3))
    left.join(right, pair, windows=WITHIN)
    with pytest.raises(TopologyError, match="left-repartition"):
        builder.build()


def test_windows_before_the_suppression_may_be_further_up() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_and_grace(SECOND, SECOND)
    counts = builder.stream("in").group_by_key().windowed_by(windows).count().map_values(str)
    counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded(), name="final"))
    operation: Any = builder.build().processor_nodes[-1].operation
    assert (operation.wait_ms, operation.by_window_end) == (1_000, True)
