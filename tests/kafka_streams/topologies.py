"""The topologies of conformance/kafka_streams/…/Topologies.java, call by call."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    FixedKeyProcessor,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Printed,
    Processor,
    Produced,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StoreBuilder,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindows,
    UnlimitedWindows,
    ValueTransformerWithKey,
)

Stream = KStream[Any, Any]
Table = KTable[Any, Any]
Build = Callable[[StreamsBuilder], Any]

STRING = Serdes.string()
TOPOLOGIES: dict[str, Build] = {}
EXPLICIT: dict[str, Build] = {}


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


TUMBLING = TimeWindows.of_size_and_grace(ms(10), ms(5))
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(ms(10), ms(5))
SLIDING = SlidingWindows.of_time_difference_and_grace(ms(10), ms(5))
WITHIN = JoinWindows.of_time_difference_and_grace(ms(10), ms(5))
UNTIL_CLOSED = Suppressed.until_window_closes(BufferConfig.unbounded())


class Pass(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        self.context.forward(record)


class PassValues(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        self.context.forward(record)


class Nothing(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


class Tag(ValueTransformerWithKey[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        return f"{key}{value}"


def store(name: str) -> StoreBuilder:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), STRING, STRING)


class PassWithStores(Pass):
    stores = (store("own"),)


class PassValuesWithStores(PassValues):
    stores = (store("own"),)


def both(left: Any, right: Any) -> str:
    return f"{left}{right}"


def add(_key: str, value: str, total: str) -> str:
    return total + value


def same(value: Any) -> Any:
    return value


def value_of(_key: str, value: str) -> str:
    return value


def swapped(key: str, value: str) -> tuple[str, str]:
    return value, key


def yes(_key: str, _value: str) -> bool:
    return True


def first(_topic: str, _key: Any, _value: Any, _partitions: int) -> int:
    return 0


def rekeyed(b: StreamsBuilder, topic: str) -> Stream:
    return b.stream(topic).select_key(value_of)


def unmatched_window_store(name: str) -> Any:
    return Stores.in_memory_window_store(name, ms(25), ms(20), retain_duplicates=True)


def topology(build: Build) -> Build:
    TOPOLOGIES[build.__name__] = build
    return build


def explicit(build: Build) -> Build:
    EXPLICIT[build.__name__.removeprefix("explicit_")] = build
    return build


@topology
def source_pattern(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*")).to("out")


@topology
def source_pattern_named_and_topic(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*"), Consumed(name="many")).merge(b.stream("other")).to("out")


@topology
def source_pattern_twice(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*")).to("out-1")
    b.stream(re.compile("in-.*")).to("out-2")


@topology
def source_pattern_counted(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*")).group_by(value_of).count().to_stream().to("out")


@topology
def source_same_topic_twice(b: StreamsBuilder) -> None:
    b.stream("in").filter(yes).to("out-1")
    b.stream("in").map_values(same).to("out-2")


@topology
def source_overlapping_topics(b: StreamsBuilder) -> None:
    b.stream(["a", "b"]).to("out-1")
    b.stream(["b"]).to("out-2")


@topology
def print(b: StreamsBuilder) -> None:
    b.stream("in").print(Printed.to_sys_out())


@topology
def print_named(b: StreamsBuilder) -> None:
    b.stream("in").print(Printed(name="show", label="label"))


@topology
def transform_values(b: StreamsBuilder) -> None:
    b.table("in").transform_values(Tag).to_stream().to("out")


@topology
def transform_values_named(b: StreamsBuilder) -> None:
    b.table("in").transform_values(Tag, name="tag").to_stream().to("out")


@topology
def transform_values_store(b: StreamsBuilder) -> None:
    b.add_state_store(store("seen"))
    b.table("in").transform_values(Tag, "seen").to_stream().to("out")


@topology
def transform_values_materialized(b: StreamsBuilder) -> None:
    b.add_state_store(store("seen"))
    tagged = b.table("in").transform_values(Tag, "seen", materialized=Materialized("tagged"), name="tag")
    tagged.to_stream().to("out")


@topology
def transform_values_materialized_with(b: StreamsBuilder) -> None:
    with_serdes = Materialized(key_serde=STRING, value_serde=STRING)
    b.table("in").transform_values(Tag, materialized=with_serdes).to_stream().to("out")


@topology
def transform_values_joined(b: StreamsBuilder) -> None:
    b.table("a").transform_values(Tag).join(b.table("b"), both).to_stream().to("out")


@topology
def map_values_materialized_with(b: StreamsBuilder) -> None:
    with_serdes = Materialized(key_serde=STRING, value_serde=STRING)
    mapped = b.table("in").map_values(same, materialized=with_serdes)
    mapped.filter(yes, materialized=with_serdes).to_stream().to("out")


@topology
def suppress_session(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().windowed_by(SESSIONS).count().suppress(UNTIL_CLOSED).to_stream().to("out")


@topology
def suppress_session_named(b: StreamsBuilder) -> None:
    counts = b.stream("in").group_by_key().windowed_by(SESSIONS)
    table = counts.count(name="count", materialized=Materialized("sessions"))
    table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded(), name="final")).to_stream().to("out")


@topology
def suppress_sliding(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().windowed_by(SLIDING).count().suppress(UNTIL_CLOSED).to_stream().to("out")


@topology
def suppress_sliding_named_after_map(b: StreamsBuilder) -> None:
    table = b.stream("in").group_by_key().windowed_by(SLIDING).count().map_values(same)
    table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded(), name="final")).to_stream().to("out")


@topology
def suppress_twice(b: StreamsBuilder) -> None:
    once = b.table("in").suppress(Suppressed.until_time_limit(ms(5), BufferConfig.max_records(5)))
    once.suppress(Suppressed.until_time_limit(ms(5), BufferConfig.max_bytes(500))).to_stream().to("out")


@topology
def unlimited_count(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().windowed_by(UnlimitedWindows.of()).count().to_stream().to("out")


@topology
def unlimited_reduce_named(b: StreamsBuilder) -> None:
    grouped = rekeyed(b, "in").group_by_key(Grouped("group")).windowed_by(UnlimitedWindows(5))
    grouped.reduce(both, name="reduce", materialized=Materialized("all")).to_stream().to("out")


@topology
def table_joined_named(b: StreamsBuilder) -> None:
    left, right = b.table("a"), b.table("b")
    joined = left.join(
        right, both, foreign_key=same, table_joined=TableJoined(name="fk"), materialized=Materialized("joined")
    )
    joined.to_stream().to("out")


@topology
def table_joined_partitioners(b: StreamsBuilder) -> None:
    left, right = b.table("a"), b.table("b")
    option: TableJoined[Any, Any] = TableJoined(partitioner=first, other_partitioner=first)
    left.left_join(right, both, foreign_key=same, table_joined=option).to_stream().to("out")


@topology
def table_joined_self(b: StreamsBuilder) -> None:
    users = b.table("a")
    users.join(users, both, foreign_key=same).to_stream().to("out")


@topology
def table_joined_of_aggregates(b: StreamsBuilder) -> None:
    left = b.stream("a").group_by(value_of).reduce(both)
    right = b.table("b").filter(yes)
    left.left_join(right, both, foreign_key=same).to_stream().to("out")


@topology
def repartition_partitions(b: StreamsBuilder) -> None:
    b.stream("in").repartition(Repartitioned(partitions=3)).to("out")


@topology
def repartition_partitioner_named(b: StreamsBuilder) -> None:
    b.stream("in").repartition(Repartitioned("spread", partitioner=first)).to("out")


@topology
def repartition_of_repartition(b: StreamsBuilder) -> None:
    once = rekeyed(b, "in").repartition(Repartitioned("one"))
    once.select_key(value_of).repartition().group_by_key().count().to_stream().to("out")


@topology
def repartition_join_partitions(b: StreamsBuilder) -> None:
    left = rekeyed(b, "a").repartition(Repartitioned("left", partitions=4))
    left.join(rekeyed(b, "b"), both, windows=WITHIN).to("out")


@topology
def repartition_merged(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a").repartition(Repartitioned("one"))
    one.merge(rekeyed(b, "b").repartition(), name="both").group_by_key().count().to_stream().to("out")


@topology
def rekeyed_merged_counted(b: StreamsBuilder) -> None:
    rekeyed(b, "a").merge(rekeyed(b, "b")).group_by_key().count().to_stream().to("out")


@topology
def split_function(b: StreamsBuilder) -> None:
    split = b.stream("in").split()
    split.branch(yes, Branched(function=lambda s: s.map_values(same)))
    split.branch(yes, Branched("second", function=lambda s: s.filter(yes)))
    for name, branch in sorted(split.default_branch(Branched(function=same)).items()):
        branch.to(f"out-{name}")


@topology
def split_consumer(b: StreamsBuilder) -> None:
    split = b.stream("in").split(name="split-")
    split.branch(yes, Branched(consumer=lambda s: s.to("one")))
    split.branch(yes, Branched("two", consumer=lambda s: s.map_values(same).to("two")))
    split.default_branch(Branched("rest", consumer=lambda s: s.to("rest")))


@topology
def split_nested(b: StreamsBuilder) -> None:
    def inner(stream: Stream) -> None:
        split = stream.split(name="inner-").branch(yes, Branched("one", consumer=lambda i: i.to("one")))
        split.default_branch(Branched("two", consumer=lambda i: i.to("two")))

    def unnamed(stream: Stream) -> None:
        stream.split().branch(yes, Branched(consumer=lambda i: i.to("three"))).no_default_branch()

    split = b.stream("in").split(name="outer-").branch(yes, Branched("nested", consumer=inner))
    split.branch(yes, Branched(consumer=unnamed)).no_default_branch()


@topology
def split_rekeyed_counted(b: StreamsBuilder) -> None:
    split = rekeyed(b, "in").split()
    split.branch(yes, Branched(consumer=lambda s: s.group_by_key().count().to_stream().to("one")))
    split.default_branch(Branched(consumer=lambda s: s.repartition().to("two")))


@topology
def cogroup_named_repartitions(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a").group_by_key(Grouped("one"))
    two = b.stream("b").group_by(value_of, Grouped("two"))
    three = b.stream("c").group_by_key()
    groups = one.cogroup(add).cogroup(two, add).cogroup(three, add)
    groups.aggregate(str, name="cogroup", materialized=Materialized("groups")).to_stream().to("out")


@topology
def cogroup_windowed_named(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a").group_by_key(Grouped("one"))
    two = rekeyed(b, "b").group_by_key(Grouped("two"))
    one.cogroup(add).cogroup(two, add).windowed_by(TUMBLING).aggregate(str, name="cogroup").to_stream().to("out")


@topology
def cogroup_sessions(b: StreamsBuilder) -> None:
    one, two = b.stream("a").group_by_key(), b.stream("b").group_by_key()
    groups = one.cogroup(add).cogroup(two, add).windowed_by(SESSIONS)
    groups.aggregate(str, lambda _, x, y: x + y, materialized=Materialized("sessions")).to_stream().to("out")


@topology
def cogroup_same_group_twice(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a").group_by_key(Grouped("one"))
    one.count().to_stream().map_values(str).to("counts")
    one.cogroup(add).aggregate(str).to_stream().to("out")


@topology
def process_connected_stores(b: StreamsBuilder) -> None:
    b.stream("in").process(PassWithStores).to("out")


@topology
def process_connected_stores_named(b: StreamsBuilder) -> None:
    b.add_state_store(store("extra"))
    b.stream("in").process(PassWithStores, "extra", name="pass").to("out")


@topology
def process_values_connected_stores(b: StreamsBuilder) -> None:
    b.stream("in").process_values(PassValuesWithStores).group_by_key().count().to_stream().to("out")


@topology
def process_then_group(b: StreamsBuilder) -> None:
    b.stream("in").process(Pass).group_by_key().count().to_stream().to("out")


@topology
def process_shared_store(b: StreamsBuilder) -> None:
    b.add_state_store(store("shared"))
    b.stream("a").process(Pass, "shared").to("out-a")
    b.stream("b").process(Pass, "shared", name="second").to("out-b")


@topology
def global_store(b: StreamsBuilder) -> None:
    b.add_global_store(store("global"), "facts", Consumed(STRING, STRING), Nothing)
    b.stream("in").to("out")


@topology
def global_store_named(b: StreamsBuilder) -> None:
    b.stream("in").to("out")
    b.add_global_store(store("global"), "facts", Consumed(name="facts"), Nothing)


@topology
def global_table_join(b: StreamsBuilder) -> None:
    facts = b.global_table("facts", materialized=Materialized("facts-store"))
    once = b.stream("in").join(facts, both, key_selector=value_of, name="enrich")
    once.left_join(facts, both, key_selector=value_of).to("out")


@topology
def table_materialized_with(b: StreamsBuilder) -> None:
    b.table("in", materialized=Materialized(key_serde=STRING, value_serde=STRING)).to_stream().to("out")


@topology
def table_in_memory(b: StreamsBuilder) -> None:
    b.table("in", materialized=Materialized(Stores.in_memory_key_value_store("rows"))).to_stream().to("out")


@topology
def table_no_caching_no_logging(b: StreamsBuilder) -> None:
    table: Table = b.table("in", Consumed(name="rows"), Materialized("store", caching=False, logging=False))
    table.to_stream(name="stream").to("out")


@topology
def count_in_memory(b: StreamsBuilder) -> None:
    memory: Materialized[Any, int] = Materialized(Stores.in_memory_key_value_store("counts"))
    b.stream("in").group_by_key().count(materialized=memory).to_stream().to("out")


@topology
def count_in_memory_unnamed(b: StreamsBuilder) -> None:
    memory: Materialized[Any, int] = Materialized(store_type="memory")
    b.stream("in").group_by_key().count(materialized=memory).to_stream().to("out")


@topology
def window_count_supplier(b: StreamsBuilder) -> None:
    memory: Materialized[Any, int] = Materialized(Stores.in_memory_window_store("counts", ms(20), ms(10)))
    b.stream("in").group_by_key().windowed_by(TUMBLING).count(materialized=memory).to_stream().to("out")


@topology
def session_count_supplier(b: StreamsBuilder) -> None:
    memory: Materialized[Any, int] = Materialized(Stores.in_memory_session_store("counts", ms(20)))
    sessions = b.stream("in").group_by_key().windowed_by(SESSIONS).emit_strategy(EmitStrategy.on_window_close())
    sessions.count(materialized=memory).to_stream().to("out")


@topology
def to_table_named(b: StreamsBuilder) -> None:
    b.stream("in").to_table(name="rows").to_stream().to("out")


@topology
def to_table_rekeyed_named(b: StreamsBuilder) -> None:
    rekeyed(b, "in").to_table(Materialized("store"), name="rows").to_stream().to("out")


@topology
def to_table_materialized_with(b: StreamsBuilder) -> None:
    table = rekeyed(b, "in").to_table(Materialized(key_serde=STRING, value_serde=STRING))
    table.filter(yes).to_stream().to("out")


@topology
def to_table_joined(b: StreamsBuilder) -> None:
    left = b.stream("a").to_table()
    left.outer_join(rekeyed(b, "b").to_table(), both, name="both").to_stream().to("out")


@topology
def stream_joined_named(b: StreamsBuilder) -> None:
    left, right = b.stream("a"), b.stream("b")
    left.join(right, both, windows=WITHIN, joined=StreamJoined(name="pair", store_name="stores")).to("out")


@topology
def stream_joined_left_named_rekeyed(b: StreamsBuilder) -> None:
    left, right = rekeyed(b, "a"), rekeyed(b, "b")
    left.left_join(right, both, windows=WITHIN, joined=StreamJoined(name="pair", store_name="stores")).to("out")


@topology
def stream_joined_outer_name_only(b: StreamsBuilder) -> None:
    left, right = rekeyed(b, "a"), b.stream("b")
    left.outer_join(right, both, windows=WITHIN, joined=StreamJoined(name="pair")).to("out")


@topology
def stream_joined_suppliers(b: StreamsBuilder) -> None:
    left, right = b.stream("a"), b.stream("b")
    mine, yours = unmatched_window_store("mine"), unmatched_window_store("yours")
    joined: StreamJoined[Any, Any, Any] = StreamJoined(this_store_supplier=mine, other_store_supplier=yours)
    left.join(right, both, windows=WITHIN, joined=joined).to("out")


@topology
def stream_joined_outer_suppliers_named(b: StreamsBuilder) -> None:
    left, right = b.stream("a"), b.stream("b")
    mine, yours = unmatched_window_store("mine"), unmatched_window_store("yours")
    joined: StreamJoined[Any, Any, Any] = StreamJoined(
        name="pair", store_name="stores", this_store_supplier=mine, other_store_supplier=yours
    )
    left.outer_join(right, both, windows=WITHIN, joined=joined).to("out")


@topology
def stream_joined_one_supplier(b: StreamsBuilder) -> None:
    left, right = b.stream("a"), b.stream("b")
    joined: StreamJoined[Any, Any, Any] = StreamJoined(other_store_supplier=unmatched_window_store("yours"))
    left.left_join(right, both, windows=WITHIN, joined=joined).to("out")


@topology
def stream_joined_in_memory(b: StreamsBuilder) -> None:
    left, right = b.stream("a"), b.stream("b")
    joined: StreamJoined[Any, Any, Any] = StreamJoined(dsl_store="memory", logging=False)
    left.left_join(right, both, windows=WITHIN, joined=joined).to("out")


@topology
def joined_named_rekeyed(b: StreamsBuilder) -> None:
    rekeyed(b, "a").join(b.table("b"), both, joined=Joined(name="enrich")).to("out")


@topology
def joined_left_rekeyed(b: StreamsBuilder) -> None:
    rekeyed(b, "a").left_join(b.table("b"), both).to("out")


@topology
def joined_grace_named(b: StreamsBuilder) -> None:
    left = rekeyed(b, "a")
    versions = Stores.persistent_versioned_key_value_store("versions", ms(100))
    table = b.table("b", materialized=Materialized(versions))
    left.join(table, both, joined=Joined(name="enrich", grace_period=ms(10))).to("out")


@topology
def joined_twice(b: StreamsBuilder) -> None:
    left = rekeyed(b, "a")
    left.join(b.table("b"), both).to("out-1")
    left.join(b.table("c"), both).to("out-2")


@topology
def self_join(b: StreamsBuilder) -> None:
    one = b.stream("a")
    one.join(one, both, windows=WITHIN).to("out")


@topology
def self_join_named(b: StreamsBuilder) -> None:
    one = b.stream("a")
    one.join(one, both, windows=WITHIN, joined=StreamJoined(name="pair", store_name="stores")).to("out")


@topology
def self_join_two_handles(b: StreamsBuilder) -> None:
    b.stream("a").join(b.stream("a"), both, windows=WITHIN).to("out")


@topology
def self_join_filtered(b: StreamsBuilder) -> None:
    one = b.stream("a").filter(yes)
    one.join(one, both, windows=WITHIN).to("out")


@topology
def self_join_of_mapped(b: StreamsBuilder) -> None:
    one = b.stream("a")
    one.map_values(same).join(one, both, windows=WITHIN).to("out")


@topology
def self_join_rekeyed(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a")
    one.join(one, both, windows=WITHIN).to("out")


@topology
def self_join_three_way(b: StreamsBuilder) -> None:
    one = b.stream("a")
    one.join(one, both, windows=WITHIN).join(one, both, windows=WITHIN).to("out")


@topology
def several_subtopologies(b: StreamsBuilder) -> None:
    b.stream("a").group_by(value_of).count().to_stream().to("out-1")
    b.table("b").group_by(swapped).reduce(both, both).to_stream().to("out-2")
    b.stream("c").repartition(Repartitioned("again")).to("out-3")
    b.stream("d").to("out-4")


@topology
def optimized_many_groups(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a")
    one.group_by_key().count().to_stream().to("out-1")
    one.map_values(same).filter(yes).group_by_key().reduce(both).to_stream().to("out-2")
    one.group_by_key(Grouped("third")).windowed_by(TUMBLING).count().to_stream().to("out-3")


@topology
def optimized_group_and_join(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a")
    sums = one.group_by_key().reduce(both)
    one.join(sums, both).to("out-1")
    one.join(b.stream("b"), both, windows=WITHIN).to("out-2")
    one.to("out-3")


@topology
def optimized_table_source(b: StreamsBuilder) -> None:
    rows = b.table("a", materialized=Materialized("rows"))
    rows.filter(yes).to_stream().to("out-1")
    b.table("b").join(rows, both).to_stream().to("out-2")


@topology
def optimized_merge_after_rekey(b: StreamsBuilder) -> None:
    two = rekeyed(b, "a").merge(b.stream("b"))
    two.group_by_key().count().to_stream().to("out-1")
    two.map_values(same).group_by_key().count().to_stream().to("out-2")


@topology
def optimized_explicit_repartition(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a").repartition(Repartitioned("spread"))
    one.group_by_key().count().to_stream().to("out-1")
    one.select_key(value_of).group_by_key(Grouped("again")).count().to_stream().to("out-2")


@topology
def optimized_process_between(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a").process_values(PassValues)
    one.group_by_key().count().to_stream().to("out-1")
    one.flat_map_values(lambda value: [value]).group_by_key().count().to_stream().to("out-2")


@topology
def optimized_everything(b: StreamsBuilder) -> None:
    one = rekeyed(b, "a")
    rows = b.table("rows")
    counts = one.group_by_key().count(materialized=Materialized("counts"))
    one.join(rows, both).to("out-1")
    counts.to_stream().map_values(str).join(rows, both).to("out-2")
    two = b.stream("b")
    two.join(two, both, windows=WITHIN).group_by_key().windowed_by(SLIDING).count().to_stream().to("out-3")
    rows.group_by(swapped, Grouped("by-value")).count().to_stream().to("out-4")


@topology
def sink_named_partitioner(b: StreamsBuilder) -> None:
    b.stream("in").to("out", Produced(name="sink", partitioner=first))


@explicit
def explicit_count(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count().to_stream().to("out")


@explicit
def explicit_count_named(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


@explicit
def explicit_rekeyed_count(b: StreamsBuilder) -> None:
    rekeyed(b, "in").group_by_key().count().to_stream().to("out")


@explicit
def explicit_rekeyed_count_store_named(b: StreamsBuilder) -> None:
    rekeyed(b, "in").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


@explicit
def explicit_rekeyed_count_group_named(b: StreamsBuilder) -> None:
    rekeyed(b, "in").group_by_key(Grouped("group")).count().to_stream().to("out")


@explicit
def explicit_rekeyed_count_named(b: StreamsBuilder) -> None:
    grouped = rekeyed(b, "in").group_by_key(Grouped("group"))
    grouped.count(materialized=Materialized("counts")).to_stream().to("out")


@explicit
def explicit_table(b: StreamsBuilder) -> None:
    b.table("in").to_stream().to("out")


@explicit
def explicit_table_joined(b: StreamsBuilder) -> None:
    b.table("a").join(b.table("b"), both).to_stream().to("out")


@explicit
def explicit_table_group(b: StreamsBuilder) -> None:
    b.table("a").group_by(swapped).count().to_stream().to("out")


@explicit
def explicit_table_group_named(b: StreamsBuilder) -> None:
    grouped = b.table("a").group_by(swapped, Grouped("group"))
    grouped.count(materialized=Materialized("counts")).to_stream().to("out")


@explicit
def explicit_repartition(b: StreamsBuilder) -> None:
    b.stream("in").repartition().to("out")


@explicit
def explicit_repartition_named(b: StreamsBuilder) -> None:
    b.stream("in").repartition(Repartitioned("again")).to("out")


@explicit
def explicit_stream_join(b: StreamsBuilder) -> None:
    b.stream("a").join(b.stream("b"), both, windows=WITHIN).to("out")


@explicit
def explicit_stream_outer_join(b: StreamsBuilder) -> None:
    rekeyed(b, "a").outer_join(b.stream("b"), both, windows=WITHIN).to("out")


@explicit
def explicit_stream_join_name_only(b: StreamsBuilder) -> None:
    rekeyed(b, "a").left_join(b.stream("b"), both, windows=WITHIN, joined=StreamJoined(name="pair")).to("out")


@explicit
def explicit_stream_join_named(b: StreamsBuilder) -> None:
    joined: StreamJoined[Any, Any, Any] = StreamJoined(name="pair", store_name="stores")
    rekeyed(b, "a").left_join(b.stream("b"), both, windows=WITHIN, joined=joined).to("out")


@explicit
def explicit_stream_table_join(b: StreamsBuilder) -> None:
    rekeyed(b, "a").join(b.table("b"), both).to("out")


@explicit
def explicit_stream_table_join_named(b: StreamsBuilder) -> None:
    left = rekeyed(b, "a")
    left.join(b.table("b", materialized=Materialized("rows")), both, joined=Joined(name="enrich")).to("out")


@explicit
def explicit_suppress(b: StreamsBuilder) -> None:
    b.table("in").suppress(Suppressed.until_time_limit(ms(5), BufferConfig.unbounded())).to_stream().to("out")


@explicit
def explicit_suppress_named(b: StreamsBuilder) -> None:
    table = b.table("in", materialized=Materialized("rows"))
    table.suppress(Suppressed.until_time_limit(ms(5), BufferConfig.unbounded(), name="wait")).to_stream().to("out")


@explicit
def explicit_to_table(b: StreamsBuilder) -> None:
    rekeyed(b, "in").to_table().to_stream().to("out")


@explicit
def explicit_to_table_named(b: StreamsBuilder) -> None:
    rekeyed(b, "in").to_table(Materialized("store"), name="rows").to_stream().to("out")


@explicit
def explicit_foreign_key_join(b: StreamsBuilder) -> None:
    b.table("a").join(b.table("b"), both, foreign_key=same).to_stream().to("out")


@explicit
def explicit_cogroup(b: StreamsBuilder) -> None:
    rekeyed(b, "a").group_by_key().cogroup(add).aggregate(str).to_stream().to("out")


@explicit
def explicit_global_table(b: StreamsBuilder) -> None:
    facts = b.global_table("facts")
    b.stream("in").join(facts, both, key_selector=value_of).to("out")


@explicit
def explicit_window_count(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().windowed_by(TUMBLING).count().to_stream().to("out")


@explicit
def explicit_map_values_materialized_with(b: StreamsBuilder) -> None:
    with_serdes = Materialized(key_serde=STRING, value_serde=STRING)
    table = b.table("in", materialized=Materialized("rows"))
    table.map_values(same, materialized=with_serdes).to_stream().to("out")
