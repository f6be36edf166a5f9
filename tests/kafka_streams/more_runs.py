"""The topologies of conformance/kafka_streams/…/MoreRuns.java, call by call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from headrace import (
    BufferConfig,
    Consumed,
    Grouped,
    Headers,
    LogAndSkipOnInvalidTimestamp,
    Materialized,
    Processor,
    Produced,
    PunctuationType,
    Record,
    Repartitioned,
    Serde,
    Serdes,
    SessionWindow,
    Stores,
    StreamsBuilder,
    Suppressed,
    Topology,
    UsePartitionTimeOnInvalidTimestamp,
    ValueAndTimestamp,
    Windowed,
)
from tests.kafka_streams.raw import plain
from tests.kafka_streams.runs import LONG, SESSIONS, STRING, TUMBLING, Effects, dsl, failing, java, join, papi
from tests.kafka_streams.topologies import ms

WINDOWED = Serdes.time_windowed(STRING, 10)
SESSION = Serdes.session_windowed(STRING)


def as_java_prints(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(as_java_prints, value))}]"
    return java(value)


class Calls(Processor[str, str, str, str]):
    """Calls every method of its stores in turn and notes what they return."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    def note(self, value: Any) -> None:
        self.effects.append(as_java_prints(plain(value)))

    def process(self, record: Record[str, str]) -> None:
        self.call_key_value(record.key, record.value, record.timestamp_ms)
        self.call_versioned(record.key, record.value, record.timestamp_ms)
        self.call_windows(record.key, record.value, record.timestamp_ms)
        self.context.forward(record)

    def call_key_value(self, key: str, value: str, ts: int) -> None:
        note, rows = self.note, self.context.get_state_store("plain")
        note(rows.put_if_absent(key, value))
        note(rows.put_if_absent(key, "other"))
        rows.put(f"{key}1", value)
        rows.put(f"{key}0", value)
        note(rows.all())
        note(rows.range(f"{key}0", f"{key}1"))
        note(rows.reverse_range(None, f"{key}0"))
        note(rows.delete(f"{key}0"))
        note(rows.delete(f"{key}0"))
        note(rows.get(f"{key}0"))
        note(rows.reverse_all())
        note(rows.prefix_scan(key, STRING))
        stamped = self.context.get_state_store("stamped")
        note(stamped.put_if_absent(key, ValueAndTimestamp(value, ts)))
        note(stamped.put_if_absent(key, ValueAndTimestamp("other", ts + 1)))
        stamped.put(f"{key}1", ValueAndTimestamp(value, ts + 5))
        note(stamped.all())
        note(stamped.delete(key))

    def call_versioned(self, key: str, value: str, ts: int) -> None:
        note, versioned = self.note, self.context.get_state_store("versioned")
        note(versioned.put(key, value, ts))
        note(versioned.put(key, f"{value}!", ts + 10))
        note(versioned.put(key, f"{value}?", ts + 5))
        note(versioned.delete(key, ts + 7))
        note(versioned.get(key))
        note(versioned.get(key, ts + 8))
        note(versioned.get(key, ts + 6))
        note(versioned.get(key, ts - 1))
        note(versioned.put(key, None, ts + 20))
        note(versioned.get(key))
        note(versioned.put(key, "expired", ts - 200))

    def call_windows(self, key: str, value: str, ts: int) -> None:
        note, windows, start = self.note, self.context.get_state_store("windows"), ts - ts % 10
        windows.put(key, ValueAndTimestamp(value, ts), start)
        windows.put(f"{key}1", ValueAndTimestamp(value, ts), start)
        note(windows.fetch(key, start))
        note(windows.fetch_all(0, ts))
        windows.put(f"{key}1", None, start)
        note(windows.all())
        sessions = self.context.get_state_store("sessions")
        sessions.put(Windowed(key, SessionWindow(ts, ts + 3)), value)
        sessions.put(Windowed(key, SessionWindow(ts + 1, ts + 2)), value)
        note(sessions.fetch(key))
        sessions.remove(Windowed(key, SessionWindow(ts, ts + 3)))
        note(sessions.find_sessions(key, 0, 1000))


class Context(Processor[str, str, str, str]):
    """Notes what the context says, in a record and in a punctuation."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    def note(self, what: str) -> None:
        c = self.context
        found = c.record_metadata
        place = "none" if found is None else f"{found.topic}-{found.partition}@{found.offset}"
        clocks = f"stream={c.current_stream_time_ms()} wall={c.current_system_time_ms()}"
        self.effects.append(f"{what} {c.application_id} {c.task_id} {place} {clocks}")

    def init(self, context: Any) -> None:
        super().init(context)
        self.note("init")
        context.schedule(ms(10), PunctuationType.WALL_CLOCK_TIME, self.wall)
        context.schedule(ms(10), PunctuationType.STREAM_TIME, self.stream)

    def wall(self, time_ms: int) -> None:
        self.note("wall")
        self.context.forward(Record("wall", str(time_ms), time_ms))

    def stream(self, time_ms: int) -> None:
        self.note("stream")
        self.context.forward(Record("stream", str(time_ms), time_ms, Headers([("p", b"\x01")])), "right")

    def process(self, record: Record[str, str]) -> None:
        self.note("record")
        self.context.forward(record)
        self.context.forward(record.with_value("right only").with_timestamp(record.timestamp_ms + 1), "right")
        self.context.forward(record.with_key("new").with_headers(Headers([("n", b"\x02")])), "left")

    def close(self) -> None:
        self.effects.append("close")


@papi
def store_calls(effects: Effects) -> Topology:
    topology = Topology().add_source("source", "in", key_serde=STRING, value_serde=STRING)
    topology.add_processor("calls", lambda: Calls(effects), "source")
    rows = Stores.key_value_store_builder(Stores.persistent_key_value_store("plain"), STRING, STRING)
    stamped = Stores.timestamped_key_value_store_builder(
        Stores.persistent_timestamped_key_value_store("stamped"), STRING, STRING
    )
    versioned = Stores.versioned_key_value_store_builder(
        Stores.persistent_versioned_key_value_store("versioned", ms(100)), STRING, STRING
    )
    windows = Stores.timestamped_window_store_builder(
        Stores.persistent_timestamped_window_store("windows", ms(100), ms(10)), STRING, STRING
    )
    sessions = Stores.session_store_builder(Stores.persistent_session_store("sessions", ms(100)), STRING, STRING)
    cached = (rows.with_caching_enabled(), windows.with_caching_enabled(), sessions.with_caching_enabled())
    for builder in (*cached, stamped, versioned):
        topology.add_state_store(builder, "calls")
    return topology.add_sink("sink", "out", "calls", key_serde=STRING, value_serde=STRING)


@papi
def contexts(effects: Effects) -> Topology:
    def to_right(key: str, value: str, context: Any) -> str:
        place = f"{java(context.topic)} {context.partition} {context.offset} {context.timestamp_ms}"
        effects.append(f"extract {place}")
        return "right"

    topology = Topology().add_source("source", "in", key_serde=STRING, value_serde=STRING)
    topology.add_processor("context", lambda: Context(effects), "source")
    topology.add_sink("left", "left", "context", key_serde=STRING, value_serde=STRING)
    return topology.add_sink("right", to_right, "context", key_serde=STRING, value_serde=STRING)


@dsl
def serdes(b: StreamsBuilder, effects: Effects) -> None:
    stream = b.stream("in")

    def to(topic: str, serde: Serde[Any], read: Callable[[str], Any]) -> None:
        stream.map_values(read).to(topic, Produced(STRING, serde))

    to("short", Serdes.short(), int)
    to("integer", Serdes.integer(), int)
    to("long", Serdes.long(), int)
    to("float", Serdes.float(), float)
    to("double", Serdes.double(), float)
    to("boolean", Serdes.boolean(), lambda value: value.startswith("-"))
    to("uuid", Serdes.uuid(), lambda value: UUID(f"00000000-0000-0000-0000-0000000000{len(value)}0"))
    to("bytes", Serdes.bytes(), str.encode)
    to("list", Serdes.list_of(Serdes.integer()), lambda value: [int(value), None, 7])
    to("strings", Serdes.list_of(STRING), lambda value: [value, None, ""])
    to("void", Serdes.void(), lambda value: None)


def _time_of(record: Any) -> int:
    try:
        return int(record.value)
    except ValueError:
        return -1


def _timestamps(b: StreamsBuilder, extractor: Callable[..., int]) -> None:
    b.stream("in", Consumed(STRING, STRING, timestamp_extractor=extractor)).to("out")


class SkipInvalid(LogAndSkipOnInvalidTimestamp):
    def __call__(self, record: Any, partition_time_ms: int, /) -> int:
        return super().__call__(_at(record, _time_of(record)), partition_time_ms)


class PartitionTime(UsePartitionTimeOnInvalidTimestamp):
    def __call__(self, record: Any, partition_time_ms: int, /) -> int:
        return super().__call__(_at(record, _time_of(record)), partition_time_ms)


def _at(record: Any, timestamp_ms: int) -> Any:
    return replace(record, timestamp_ms=timestamp_ms)


@dsl
def timestamps_skipped(b: StreamsBuilder, effects: Effects) -> None:
    _timestamps(b, SkipInvalid())


@dsl
def timestamps_of_partition(b: StreamsBuilder, effects: Effects) -> None:
    _timestamps(b, PartitionTime())


@dsl
def timestamps_wall_clock(b: StreamsBuilder, effects: Effects) -> None:
    _timestamps(b, lambda record, partition_time_ms: 1 if partition_time_ms < 0 else partition_time_ms + 10)


@dsl
def timestamps_negative(b: StreamsBuilder, effects: Effects) -> None:
    _timestamps(b, lambda record, partition_time_ms: _time_of(record))


@dsl
def windowed_tables_joined(b: StreamsBuilder, effects: Effects) -> None:
    left = b.stream("left").group_by_key().windowed_by(TUMBLING).count(materialized=Materialized("left"))
    right = b.stream("right").group_by_key().windowed_by(TUMBLING).count(materialized=Materialized("right"))
    inner = left.join(right, join, materialized=Materialized(key_serde=WINDOWED, value_serde=STRING))
    inner.to_stream().to("inner", Produced(WINDOWED, STRING))
    outer = left.outer_join(right.map_values(lambda value: value * 10), join)
    outer.to_stream().to("outer", Produced(WINDOWED, STRING))


@dsl
def windowed_table_regrouped(b: StreamsBuilder, effects: Effects) -> None:
    def add(total: int, value: int) -> int:
        return total + value

    def subtract(total: int, value: int) -> int:
        return total - value

    grouped = b.stream("in").group_by_key(Grouped(None, STRING, STRING))
    counts = grouped.windowed_by(TUMBLING).count(materialized=Materialized("counts"))
    per_window = counts.group_by(
        lambda key, value: (str(key.window.start_ms), value), Grouped("per-window", STRING, LONG)
    )
    totals = per_window.reduce(add, subtract, materialized=Materialized("totals"))
    totals.to_stream().to("totals-out", Produced(STRING, LONG))
    many = counts.filter(
        lambda key, value: value > 1, materialized=Materialized("many", key_serde=WINDOWED, value_serde=LONG)
    )
    many.to_stream().to("many-out", Produced(WINDOWED, LONG))
    closed = counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded(), name="closed"))
    per_key = closed.group_by(lambda key, value: (key.key, value), Grouped("per-key", STRING, LONG))
    finals = per_key.reduce(add, subtract, materialized=Materialized("finals"))
    finals.to_stream().to("finals-out", Produced(STRING, LONG))


@dsl
def sessions_joined_and_grouped(b: StreamsBuilder, effects: Effects) -> None:
    sessions = b.stream("in").group_by_key().windowed_by(SESSIONS).count(materialized=Materialized("sessions"))
    per_key = sessions.group_by(lambda key, value: (key.key, value), Grouped("per-key", STRING, LONG))
    totals = per_key.reduce(lambda a, v: a + v, lambda a, v: a - v, materialized=Materialized("totals"))
    totals.to_stream().to("totals-out", Produced(STRING, LONG))
    rows = Materialized("mapped", key_serde=SESSION, value_serde=STRING)
    sessions.map_values(lambda value: f"{value}!", materialized=rows).to_stream().to(
        "mapped-out", Produced(SESSION, STRING)
    )


@dsl
def versioned_tables_joined(b: StreamsBuilder, effects: Effects) -> None:
    left = b.table("left", materialized=Materialized(Stores.persistent_versioned_key_value_store("left", ms(50))))
    right = b.table("right", materialized=Materialized(Stores.persistent_versioned_key_value_store("right", ms(50))))
    left.join(right, join).to_stream().to("inner")
    left.left_join(right, join, foreign_key=lambda value: value[0]).to_stream().to("foreign")
    left.filter(lambda key, value: not value.endswith("0")).to_stream().to("filtered")


@dsl
def suppress_byte_limits(b: StreamsBuilder, effects: Effects) -> None:
    rows = b.table("in", materialized=Materialized("rows"))
    for limit in range(40, 261, 20):
        buffer = BufferConfig.max_bytes(limit).with_logging_disabled()
        waiting = rows.suppress(Suppressed.until_time_limit(ms(1000), buffer, name=f"wait-{limit}"))
        waiting.to_stream().to(f"out-{limit}")


@dsl
def suppress_full_shuts_down(b: StreamsBuilder, effects: Effects) -> None:
    strict = BufferConfig.max_bytes(100).shut_down_when_full()
    b.table("in").suppress(Suppressed.until_time_limit(ms(1000), strict, name="wait")).to_stream().to("out")


@dsl
def failures_in_tables(b: StreamsBuilder, effects: Effects) -> None:
    rows = b.table("in", materialized=Materialized("rows"))
    rows.map_values(lambda value: failing("map", value)).to_stream().to("mapped")
    kept = rows.filter(lambda key, value: bool(failing("filter", value)), materialized=Materialized("filtered"))
    kept.to_stream().to("filtered-out")
    grouped = rows.group_by(lambda key, value: (failing("group", value), value), Grouped("group"))
    sums = grouped.aggregate(
        str,
        lambda key, value, total: total + failing("add", value),
        lambda key, value, total: f"{total}-",
        materialized=Materialized("sums"),
    )
    sums.to_stream().to("sums-out")
    b.stream("stream").join(rows, lambda left, right: failing("join", left) + right).to("joined")


@dsl
def failures_in_windows(b: StreamsBuilder, effects: Effects) -> None:
    def add(key: str, value: str, total: str) -> str:
        return total + failing("add", value)

    windows = b.stream("in").group_by_key().windowed_by(TUMBLING)
    tumbling = windows.aggregate(str, add, materialized=Materialized("windows")).to_stream()
    tumbling.map(lambda key, value: (key.key, failing("out", value))).to("out")
    sessions = b.stream("in").group_by_key().windowed_by(SESSIONS)
    merged = sessions.aggregate(
        str, add, lambda key, left, right: failing("merge", left) + right, materialized=Materialized("sessions")
    )
    merged.to_stream().map(lambda key, value: (key.key, value)).to("sessions-out")


@dsl
def keys_of_streams(b: StreamsBuilder, effects: Effects) -> None:
    one = b.stream("in")
    one.repartition(Repartitioned("again")).to("again-out")
    rows = one.to_table(Materialized("rows"))
    rows.to_stream(lambda key, value: f"{java(key)}{java(value)}", name="rekey").to("rows-out")
    one.flat_map(lambda key, value: [] if value is None else [(value, key), (None, value)]).to("flat")
    present = one.filter(lambda key, value: value is not None)
    grouped = present.group_by(lambda key, value: None if value == "none" else value, Grouped("group"))
    grouped.count(materialized=Materialized("counts")).to_stream().to("counts-out")
