"""The calls of conformance/kafka_streams/…/BuildErrors.java."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headrace import (
    Branched,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Produced,
    Repartitioned,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from headrace.dsl import BufferConfig
from tests.kafka_streams.topologies import (
    SESSIONS,
    TUMBLING,
    UNTIL_CLOSED,
    WITHIN,
    Pass,
    both,
    ms,
    store,
    value_of,
    yes,
)

CALLS: dict[str, Callable[[StreamsBuilder], Any]] = {}
FIVE = Suppressed.until_time_limit(ms(5), BufferConfig.unbounded())


def call(build: Callable[[StreamsBuilder], Any]) -> Callable[[StreamsBuilder], Any]:
    CALLS[build.__name__] = build
    return build


def _named(b: StreamsBuilder, name: str) -> None:
    b.stream("in").filter(yes, name=name)


def _versions(retention_ms: int = 50) -> Materialized[Any, Any]:
    return Materialized(Stores.persistent_versioned_key_value_store("versions", ms(retention_ms)))


def _join_on(b: StreamsBuilder, *suppliers: Any) -> None:
    joined: StreamJoined[Any, Any, Any] = StreamJoined(
        this_store_supplier=suppliers[0], other_store_supplier=suppliers[1]
    )
    b.stream("a").join(b.stream("b"), both, windows=WITHIN, joined=joined).to("out")


def _windows(name: str, retention_ms: int, size_ms: int, *, duplicates: bool = True) -> Any:
    return Stores.in_memory_window_store(name, ms(retention_ms), ms(size_ms), retain_duplicates=duplicates)


@call
def name_with_space(b: StreamsBuilder) -> None:
    _named(b, "a b")


@call
def name_empty(b: StreamsBuilder) -> None:
    _named(b, "")


@call
def name_dot(b: StreamsBuilder) -> None:
    _named(b, ".")


@call
def name_too_long(b: StreamsBuilder) -> None:
    _named(b, "n" * 250)


@call
def name_longest(b: StreamsBuilder) -> None:
    _named(b, "n" * 249)


@call
def name_twice(b: StreamsBuilder) -> None:
    b.stream("in").filter(yes, name="a").filter(yes, name="a")


@call
def store_name_with_space(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count(materialized=Materialized("a b"))


@call
def store_name_twice(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count(materialized=Materialized("a"))
    b.stream("in").group_by_key().count(materialized=Materialized("a"))


@call
def store_added_twice(b: StreamsBuilder) -> None:
    b.add_state_store(store("a"))
    b.add_state_store(store("a"))
    b.stream("in").process(Pass, "a")


@call
def store_unknown(b: StreamsBuilder) -> None:
    b.stream("in").process(Pass, "missing")


@call
def store_unused(b: StreamsBuilder) -> None:
    b.add_state_store(store("a"))
    b.stream("in").to("out")


@call
def global_store_connected(b: StreamsBuilder) -> None:
    b.global_table("facts", materialized=Materialized("facts-store"))
    b.stream("in").process(Pass, "facts-store")


@call
def topic_as_stream_and_table(b: StreamsBuilder) -> None:
    b.stream("in").to("out-1")
    b.table("in").to_stream().to("out-2")


@call
def topic_as_table_twice(b: StreamsBuilder) -> None:
    b.table("in").to_stream().to("out-1")
    b.table("in").to_stream().to("out-2")


@call
def topic_as_table_and_global_table(b: StreamsBuilder) -> None:
    b.table("in").to_stream().to("out-1")
    b.global_table("in")


@call
def topic_written_and_read(b: StreamsBuilder) -> None:
    b.stream("in").to("middle")
    b.stream("middle").to("out")


@call
def topic_written_to_itself(b: StreamsBuilder) -> None:
    b.stream("in").to("in")


@call
def topic_twice_in_list(b: StreamsBuilder) -> None:
    b.stream(["in", "in"]).to("out")


@call
def no_topics(b: StreamsBuilder) -> None:
    b.stream([]).to("out")


@call
def pattern_and_its_topic(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*")).to("out-1")
    b.stream("in-1").to("out-2")


@call
def offset_resets_differ(b: StreamsBuilder) -> None:
    b.stream("in", Consumed(offset_reset="earliest")).to("out-1")
    b.stream("in", Consumed(offset_reset="latest")).to("out-2")


@call
def same_topic_other_names(b: StreamsBuilder) -> None:
    b.stream("in", Consumed(name="one")).to("out-1")
    b.stream("in", Consumed(name="two")).to("out-2")


@call
def repartition_names_twice(b: StreamsBuilder) -> None:
    b.stream("a").repartition(Repartitioned("again")).to("out-1")
    b.stream("b").repartition(Repartitioned("again")).to("out-2")


@call
def grouped_names_twice(b: StreamsBuilder) -> None:
    b.stream("a").group_by(value_of, Grouped("again")).count()
    b.stream("b").group_by(value_of, Grouped("again")).count()


@call
def grouped_stream_twice_named(b: StreamsBuilder) -> None:
    grouped = b.stream("a").group_by(value_of, Grouped("again"))
    grouped.count()
    grouped.windowed_by(TUMBLING).count()


@call
def joined_names_twice(b: StreamsBuilder) -> None:
    one = b.stream("a").select_key(value_of)
    one.join(b.stream("b"), both, windows=WITHIN, joined=StreamJoined(name="pair")).to("out-1")
    one.join(b.stream("c"), both, windows=WITHIN, joined=StreamJoined(name="pair")).to("out-2")


@call
def join_stores_of_other_windows(b: StreamsBuilder) -> None:
    _join_on(b, _windows("mine", 50, 40), _windows("yours", 50, 40))


@call
def join_stores_without_duplicates(b: StreamsBuilder) -> None:
    _join_on(b, _windows("mine", 25, 20, duplicates=False), _windows("yours", 25, 20, duplicates=False))


@call
def join_stores_of_one_name(b: StreamsBuilder) -> None:
    _join_on(b, _windows("mine", 25, 20), _windows("mine", 25, 20))


@call
def window_store_retention_too_short(b: StreamsBuilder) -> None:
    rows: Materialized[Any, int] = Materialized(_windows("counts", 12, 10, duplicates=False))
    b.stream("in").group_by_key().windowed_by(TUMBLING).count(materialized=rows)


@call
def window_store_of_other_size(b: StreamsBuilder) -> None:
    rows: Materialized[Any, int] = Materialized(_windows("counts", 100, 20, duplicates=False))
    b.stream("in").group_by_key().windowed_by(TUMBLING).count(materialized=rows)


@call
def window_retention_too_short(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by_key().windowed_by(TUMBLING)
    grouped.count(materialized=Materialized("counts", retention=ms(14)))


@call
def session_store_retention_too_short(b: StreamsBuilder) -> None:
    rows: Materialized[Any, int] = Materialized(Stores.in_memory_session_store("counts", ms(14)))
    b.stream("in").group_by_key().windowed_by(SESSIONS).count(materialized=rows)


@call
def window_store_that_forgets_at_once(b: StreamsBuilder) -> None:
    _windows("counts", 5, 10, duplicates=False)


@call
def unlimited_on_window_close(b: StreamsBuilder) -> None:
    windows = b.stream("in").group_by_key().windowed_by(UnlimitedWindows.of())
    windows.emit_strategy(EmitStrategy.on_window_close()).count()


@call
def suppress_table_until_window_closes(b: StreamsBuilder) -> None:
    b.table("in").suppress(UNTIL_CLOSED).to_stream().to("out")


@call
def suppress_unlimited_until_window_closes(b: StreamsBuilder) -> None:
    windows = b.stream("in").group_by_key().windowed_by(UnlimitedWindows.of())
    windows.count().suppress(UNTIL_CLOSED).to_stream().to("out")


@call
def suppress_versioned(b: StreamsBuilder) -> None:
    b.table("in", materialized=_versions()).suppress(FIVE).to_stream().to("out")


@call
def suppress_of_filtered_versioned(b: StreamsBuilder) -> None:
    b.table("in", materialized=_versions()).filter(yes).suppress(FIVE).to_stream().to("out")


@call
def joined_grace_unversioned(b: StreamsBuilder) -> None:
    b.stream("a").join(b.table("b"), both, joined=Joined(name="join", grace_period=ms(5))).to("out")


@call
def joined_grace_too_long(b: StreamsBuilder) -> None:
    table = b.table("b", materialized=_versions())
    b.stream("a").join(table, both, joined=Joined(name="join", grace_period=ms(51))).to("out")


@call
def global_table_versioned(b: StreamsBuilder) -> None:
    b.global_table("in", materialized=_versions())


@call
def branch_names_twice(b: StreamsBuilder) -> None:
    b.stream("in").split().branch(yes, Branched("a")).branch(yes, Branched("a")).no_default_branch()


@call
def sink_name_twice(b: StreamsBuilder) -> None:
    b.stream("in").to("out-1", Produced(name="sink"))
    b.stream("in").to("out-2", Produced(name="sink"))


@call
def windows_advance_too_long(b: StreamsBuilder) -> None:
    TUMBLING.advance_by(ms(11))


@call
def windows_advance_zero(b: StreamsBuilder) -> None:
    TUMBLING.advance_by(ms(0))


@call
def windows_size_zero(b: StreamsBuilder) -> None:
    TimeWindows.of_size_with_no_grace(ms(0))


@call
def windows_grace_negative(b: StreamsBuilder) -> None:
    TimeWindows.of_size_and_grace(ms(1), ms(-1))


@call
def sessions_gap_zero(b: StreamsBuilder) -> None:
    SessionWindows.of_inactivity_gap_with_no_grace(ms(0))


@call
def join_windows_empty(b: StreamsBuilder) -> None:
    JoinWindows.of_time_difference_with_no_grace(ms(5)).before(ms(-6))


@call
def join_windows_in_the_past(b: StreamsBuilder) -> None:
    JoinWindows.of_time_difference_with_no_grace(ms(5)).after(ms(-5))


@call
def repartition_zero_partitions(b: StreamsBuilder) -> None:
    b.stream("in").repartition(Repartitioned(partitions=0)).to("out")


@call
def repartitions_of_different_numbers(b: StreamsBuilder) -> None:
    left = b.stream("a").repartition(Repartitioned(partitions=2))
    left.join(b.stream("b").repartition(Repartitioned(partitions=3)), both, windows=WITHIN).to("out")


@call
def lru_of_nothing(b: StreamsBuilder) -> None:
    Stores.lru_map("lru", 0)


@call
def versioned_negative_retention(b: StreamsBuilder) -> None:
    _versions(-1)


@call
def nothing(b: StreamsBuilder) -> None:
    pass
