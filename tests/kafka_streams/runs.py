"""The topologies of conformance/kafka_streams/…/Runs.java, call by call; what is piped into them is in the fixture."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headrace import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    FixedKeyProcessor,
    Grouped,
    Headers,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Produced,
    PunctuationType,
    Record,
    Repartitioned,
    Serdes,
    SessionWindow,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    ValueTransformerWithKey,
    Windowed,
)
from tests.kafka_streams.raw import show
from tests.kafka_streams.topologies import ms, store

Effects = list[str]
STRING, LONG, INTEGER, DOUBLE = Serdes.string(), Serdes.long(), Serdes.integer(), Serdes.double()
TUMBLING = TimeWindows.of_size_and_grace(ms(10), ms(5))
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(ms(10), ms(5))
SLIDING = SlidingWindows.of_time_difference_and_grace(ms(10), ms(5))
WITHIN = JoinWindows.of_time_difference_and_grace(ms(10), ms(5))
LONGEST = 2**63 - 1

DSL: dict[str, Callable[[StreamsBuilder, Effects], None]] = {}
PAPI: dict[str, Callable[[Effects], Topology]] = {}


def dsl(build: Callable[[StreamsBuilder, Effects], None]) -> Callable[[StreamsBuilder, Effects], None]:
    DSL[build.__name__] = build
    return build


def papi(build: Callable[[Effects], Topology]) -> Callable[[Effects], Topology]:
    PAPI[build.__name__] = build
    return build


def join(left: object, right: object) -> str:
    return f"{java(left)}+{java(right)}"


def java(value: object) -> str:
    return "null" if value is None else str(value)


def value_of(_key: Any, value: Any) -> Any:
    return value


def words(value: str) -> list[str]:
    return value.split(" ")


def failing(bad: str, value: str) -> str:
    if value.startswith(bad):
        raise RuntimeError(bad)
    return value


def shown_headers(headers: Headers) -> str:
    return "".join(f"{name}={show(value)};" for name, value in headers)


class Seen(ValueTransformerWithKey[str, str, str]):
    """Counts the calls for each key in a store, so that a lookup that calls again is seen."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    def init(self, context: Any) -> None:
        super().init(context)
        self.store = context.get_state_store("seen")

    def transform(self, key: str, value: str | None) -> str | None:
        now = str(int(self.store.get(key) or "0") + 1)
        self.store.put(key, now)
        self.effects.append(f"{key} {java(value)} {self.context.timestamp_ms}")
        if value is None:
            return "kept" if now == "2" else None
        return value + now


class Stamp(ValueTransformerWithKey[str, str, str]):
    """Adds the time of the row at hand to its value."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects

    def transform(self, key: str, value: str | None) -> str | None:
        context = self.context
        self.effects.append(f"{key} {java(value)} {context.timestamp_ms} {shown_headers(context.headers)}")
        return None if value is None else f"{value}{context.timestamp_ms}"


class Ticking(Processor[str, str, str, str]):
    """Schedules punctuations and cancels them after some calls."""

    def __init__(self, effects: Effects, name: str, interval: int, most: int) -> None:
        self.effects, self.name, self.interval, self.most = effects, name, interval, most

    def init(self, context: Any) -> None:
        super().init(context)
        self.schedule("stream", PunctuationType.STREAM_TIME)
        self.schedule("wall", PunctuationType.WALL_CLOCK_TIME)

    def schedule(self, kind: str, type: PunctuationType) -> None:
        calls = 0

        def punctuate(time_ms: int) -> None:
            nonlocal calls
            calls += 1
            clocks = f"stream={self.context.current_stream_time_ms()} wall={self.context.current_system_time_ms()}"
            self.effects.append(f"{self.name} {kind} {time_ms} {clocks}")
            self.context.forward(Record(self.name, f"{kind}{calls}", time_ms))
            if calls == self.most:
                scheduled.cancel()

        scheduled = self.context.schedule(ms(self.interval), type, punctuate)

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(record.value + self.name))


class Store(Processor[str, str, str, Any]):
    """put, delete or get in a key-value store, as the value says; forwards what was there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, context: Any) -> None:
        super().init(context)
        self.store = context.get_state_store(self.name)

    def process(self, record: Record[str, str]) -> None:
        before = self.store.get(record.key)
        if record.value is None:
            self.store.delete(record.key)
        elif record.value == "absent":
            self.store.put_if_absent(record.key, "new")
        elif record.value == "many":
            self.store.put_all([(record.key, "x"), (f"{record.key}2", "y")])
        elif record.value != "get":
            self.store.put(record.key, record.value)
        self.context.forward(record.with_value(before))


class Keep(Processor[str, str, Any, Any]):
    """Keeps what it reads: for global and read-only stores."""

    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, context: Any) -> None:
        self.store = context.get_state_store(self.name)

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, record.value)


class Lookup(FixedKeyProcessor[str, str, str]):
    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, context: Any) -> None:
        super().init(context)
        self.store = context.get_state_store(self.name)

    def process(self, record: Any) -> None:
        self.context.forward(record.with_value(f"{record.value}/{java(self.store.get(record.value))}"))


class WriteWindows(Processor[str, str, Any, Any]):
    """Puts each record into a window store and a session store, at its own time."""

    def init(self, context: Any) -> None:
        self.windows = context.get_state_store("windows")
        self.duplicates = context.get_state_store("duplicates")
        self.sessions = context.get_state_store("sessions")

    def process(self, record: Record[str, str]) -> None:
        time_ms = record.timestamp_ms
        self.windows.put(record.key, record.value, time_ms)
        if record.value is not None:
            self.duplicates.put(record.key, record.value, time_ms)
        self.sessions.put(Windowed(record.key, SessionWindow(time_ms // 2, time_ms)), record.value)


@dsl
def transform_values_store(b: StreamsBuilder, effects: Effects) -> None:
    b.add_state_store(store("seen"))
    b.table("in").transform_values(lambda: Seen(effects), "seen").to_stream().to("out")


@dsl
def transform_values_materialized(b: StreamsBuilder, effects: Effects) -> None:
    b.add_state_store(store("seen"))
    rows = Materialized(Stores.persistent_key_value_store("rows"), key_serde=STRING, value_serde=STRING)
    table = b.table("in").transform_values(lambda: Seen(effects), "seen", materialized=rows)
    table.filter(lambda key, value: not value.startswith("n")).to_stream().to("out")


@dsl
def transform_values_store_of_lookup(b: StreamsBuilder, effects: Effects) -> None:
    b.add_state_store(store("seen"))
    seen = b.table("left").transform_values(lambda: Seen(effects), "seen")
    seen.join(b.table("right"), join).to_stream().to("out")


@dsl
def transform_values_looked_up(b: StreamsBuilder, effects: Effects) -> None:
    stamped = b.table("left").transform_values(lambda: Stamp(effects))
    stamped.left_join(b.table("right"), join).to_stream().to("out")


@dsl
def transform_values_grouped(b: StreamsBuilder, effects: Effects) -> None:
    b.add_state_store(store("seen"))
    seen = b.table("in").transform_values(lambda: Seen(effects), "seen")
    grouped = seen.group_by(lambda key, value: (value[0], value), Grouped("group"))
    sums = grouped.reduce(join, lambda total, old: f"{total}-{old}", materialized=Materialized("sums"))
    sums.to_stream().to("out")


@dsl
def unlimited_count(b: StreamsBuilder, effects: Effects) -> None:
    grouped = b.stream("in").group_by_key().windowed_by(UnlimitedWindows(5))
    counts = grouped.count(materialized=Materialized("counts"))
    counts.to_stream().to("out", Produced(Serdes.time_windowed(STRING, LONGEST), LONG))


@dsl
def numbers(b: StreamsBuilder, effects: Effects) -> None:
    stream = b.stream("in", Consumed(LONG, INTEGER))
    stream.map_values(lambda value: None if value is None else value / 4.0).to("halves", Produced(LONG, DOUBLE))
    rows = Materialized(Stores.persistent_key_value_store("sums"), key_serde=LONG, value_serde=DOUBLE)
    grouped = stream.group_by_key(Grouped(None, LONG, INTEGER))
    sums = grouped.aggregate(lambda: 0.5, lambda key, value, total: total + value, materialized=rows)
    sums.to_stream().to("sums-out", Produced(LONG, DOUBLE))
    by_value = stream.select_key(value_of).group_by_key(Grouped("by-value", INTEGER, INTEGER))
    by_value.count(materialized=Materialized("counts")).to_stream().to("counts-out")


@dsl
def windowed_serdes(b: StreamsBuilder, effects: Effects) -> None:
    def add(total: int, value: int) -> int:
        return total + value

    grouped = b.stream("in", Consumed(LONG, INTEGER)).group_by_key(Grouped(None, LONG, INTEGER))
    tumbling = grouped.windowed_by(TUMBLING).count(materialized=Materialized("tumbling"))
    tumbling.to_stream().to("tumbling-out", Produced(Serdes.time_windowed(LONG, 10), LONG))
    hopping = grouped.windowed_by(TUMBLING.advance_by(ms(5))).reduce(add, materialized=Materialized("hopping"))
    hopping.to_stream().to("hopping-out")
    sessions = grouped.windowed_by(SESSIONS).count(materialized=Materialized("sessions"))
    sessions.to_stream().to("sessions-out", Produced(Serdes.session_windowed(LONG), LONG))
    sliding = grouped.windowed_by(SLIDING).reduce(add, materialized=Materialized("sliding"))
    sliding.to_stream().to("sliding-out")


@dsl
def windowed_keys_read_back(b: StreamsBuilder, effects: Effects) -> None:
    def note(key: Any, value: Any) -> None:
        effects.append(f"{key} {value}")

    windows = b.stream("in").group_by_key().windowed_by(TUMBLING).count(materialized=Materialized("counts"))
    repartitioned = windows.to_stream().repartition(Repartitioned("windows", Serdes.time_windowed(STRING, 10), LONG))
    repartitioned.peek(note).map(lambda key, value: (f"{key.key}{key.window.start_ms}", str(value))).to("out")
    sessions = b.stream("in").group_by_key().windowed_by(SESSIONS).reduce(join).to_stream()
    again = sessions.group_by(lambda key, value: key, Grouped("again", Serdes.session_windowed(STRING), STRING))
    counted = again.count().to_stream().peek(note)
    counted.to("sessions-out", Produced(Serdes.session_windowed(STRING), LONG))


@dsl
def partitioner(b: StreamsBuilder, effects: Effects) -> None:
    def spread(topic: str, key: Any, value: Any, partitions: int) -> int:
        effects.append(f"repartition {topic} {java(key)} {java(value)} {partitions}")
        return 0

    def sink(topic: str, key: Any, value: Any, partitions: int) -> None:
        effects.append(f"sink {topic} {java(key)} {java(value)} {partitions}")

    stream = b.stream("in").repartition(Repartitioned("spread", STRING, STRING, partitioner=spread))
    stream.to("out", Produced(STRING, STRING, partitioner=sink))


@dsl
def topic_extractor(b: StreamsBuilder, effects: Effects) -> None:
    def by_context(key: str, value: str, context: Any) -> str:
        place = f"{context.topic} {context.partition} {context.offset} {context.timestamp_ms}"
        effects.append(f"{place} {shown_headers(context.headers)}")
        return f"out-{context.topic}-{context.offset}"

    b.stream("a").merge(b.stream("b")).flat_map_values(words).to(by_context)


@dsl
def headers(b: StreamsBuilder, effects: Effects) -> None:
    left = b.stream("left")
    right = b.table("right", materialized=Materialized("rows"))
    left.join(right, join).to("stream-table")
    left.left_join(b.stream("other"), join, windows=WITHIN).to("stream-stream")
    wait = Suppressed.until_time_limit(ms(5), BufferConfig.unbounded(), name="wait")
    right.map_values(lambda value: f"{value}!").suppress(wait).to_stream().to("suppressed")
    by_value = left.group_by(value_of, Grouped("by-value"))
    by_value.count(materialized=Materialized("counts")).to_stream().to("counted")
    groups = right.group_by(lambda key, value: (value, key), Grouped("table-by-value")).aggregate(
        str,
        lambda key, value, total: total + value,
        lambda key, value, total: total.replace(value, ""),
        materialized=Materialized("groups"),
    )
    groups.to_stream().to("grouped")


@dsl
def punctuation(b: StreamsBuilder, effects: Effects) -> None:
    fast = b.stream("in").process(lambda: Ticking(effects, "fast", 5, 2), name="fast")
    slow = fast.process(lambda: Ticking(effects, "slow", 10, 3), name="slow")
    slow.group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


@dsl
def suppress_max_bytes(b: StreamsBuilder, effects: Effects) -> None:
    early = BufferConfig.max_bytes(150).emit_early_when_full()
    b.table("in").suppress(Suppressed.until_time_limit(ms(1000), early, name="wait")).to_stream().to("out")


@dsl
def suppress_max_bytes_shut_down(b: StreamsBuilder, effects: Effects) -> None:
    strict = BufferConfig.max_bytes(150).shut_down_when_full()
    b.table("in").suppress(Suppressed.until_time_limit(ms(1000), strict, name="wait")).to_stream().to("out")


@dsl
def suppress_windows(b: StreamsBuilder, effects: Effects) -> None:
    unbounded = BufferConfig.unbounded()
    grouped = b.stream("in").group_by_key(Grouped(None, STRING, STRING))
    tumbling = grouped.windowed_by(TUMBLING).count(materialized=Materialized("tumbling"))
    closed = tumbling.suppress(Suppressed.until_window_closes(unbounded, name="closed"))
    closed.to_stream().to("tumbling-out", Produced(Serdes.time_windowed(STRING, 10), LONG))
    sessions = grouped.windowed_by(SESSIONS).reduce(join, materialized=Materialized("sessions"))
    unlogged = Suppressed.until_window_closes(unbounded.with_logging_disabled())
    sessions.suppress(unlogged).to_stream().to("sessions-out")
    sliding = grouped.windowed_by(SLIDING).reduce(join, materialized=Materialized("sliding"))
    sliding.suppress(Suppressed.until_window_closes(unbounded, name="slid")).to_stream().to("sliding-out")


@dsl
def versioned(b: StreamsBuilder, effects: Effects) -> None:
    versions = Stores.persistent_versioned_key_value_store("versions", ms(50), ms(20))
    rows = b.table("table", Consumed(STRING, STRING), Materialized(versions))
    rows.to_stream().to("changes")
    b.stream("stream").join(rows, join).to("joined")
    grouped = rows.map_values(lambda value: f"{value}!").group_by(lambda key, value: ("all", value), Grouped("group"))
    sums = grouped.reduce(join, lambda total, old: f"{total}-{old}", materialized=Materialized("sums"))
    sums.to_stream().to("sums-out")


@dsl
def joined_with_grace(b: StreamsBuilder, effects: Effects) -> None:
    versions = Stores.persistent_versioned_key_value_store("versions", ms(100))
    rows = b.table("table", materialized=Materialized(versions))
    joined = Joined(STRING, STRING, STRING, name="join", grace_period=ms(10))
    b.stream("stream").left_join(rows, join, joined=joined).to("out")


@papi
def lru_processor(effects: Effects) -> Topology:
    topology = Topology().add_source("source", "in", key_serde=STRING, value_serde=STRING)
    topology.add_processor("store", lambda: Store("lru"), "source")
    topology.add_state_store(Stores.key_value_store_builder(Stores.lru_map("lru", 2), STRING, STRING), "store")
    return topology.add_sink("sink", "out", "store", key_serde=STRING, value_serde=STRING)


@dsl
def lru_table(b: StreamsBuilder, effects: Effects) -> None:
    lru: Materialized[Any, int] = Materialized(Stores.lru_map("lru", 2), key_serde=STRING)
    b.stream("in").group_by_key().count(materialized=lru).to_stream().to("out")


@papi
def stores_in_memory(effects: Effects) -> Topology:
    topology = Topology().add_source("source", "in", key_serde=STRING, value_serde=STRING)
    topology.add_processor("store", lambda: Store("plain"), "source")
    plain = Stores.key_value_store_builder(Stores.in_memory_key_value_store("plain"), STRING, STRING)
    topology.add_state_store(plain, "store")
    topology.add_processor("quiet", lambda: Store("silent"), "source")
    silent = Stores.key_value_store_builder(Stores.persistent_key_value_store("silent"), STRING, STRING)
    topology.add_state_store(silent.with_logging_disabled(), "quiet")
    topology.add_processor("cached", lambda: Store("buffered"), "source")
    buffered = Stores.key_value_store_builder(Stores.persistent_key_value_store("buffered"), STRING, STRING)
    topology.add_state_store(buffered.with_caching_enabled(), "cached")
    return topology.add_sink("sink", "out", "store", "quiet", "cached", key_serde=STRING, value_serde=STRING)


@papi
def fetches_in_memory(effects: Effects) -> Topology:
    return _fetches(Stores.in_memory_window_store, Stores.in_memory_session_store)


@papi
def fetches_persistent(effects: Effects) -> Topology:
    return _fetches(Stores.persistent_window_store, Stores.persistent_session_store)


def _fetches(window_store: Callable[..., Any], session_store: Callable[..., Any]) -> Topology:
    topology = Topology().add_source("source", "in", key_serde=STRING, value_serde=STRING)
    topology.add_processor("windows", WriteWindows, "source")
    for name in ("windows", "duplicates"):
        supplier = window_store(name, ms(100), ms(10), retain_duplicates=name == "duplicates")
        topology.add_state_store(Stores.window_store_builder(supplier, STRING, STRING), "windows")
    sessions = Stores.session_store_builder(session_store("sessions", ms(100)), STRING, STRING)
    return topology.add_state_store(sessions.with_caching_enabled(), "windows")


@dsl
def deserialization_continues(b: StreamsBuilder, effects: Effects) -> None:
    b.stream("in", Consumed(STRING, INTEGER)).to("out", Produced(STRING, INTEGER))
    b.table("table", Consumed(LONG, STRING), Materialized("rows"))


@dsl
def deserialization_fails(b: StreamsBuilder, effects: Effects) -> None:
    b.stream("in", Consumed(STRING, INTEGER)).to("out", Produced(STRING, INTEGER))


@dsl
def processing_continues(b: StreamsBuilder, effects: Effects) -> None:
    one = b.stream("in").map_values(lambda value: value)
    one.map_values(lambda value: failing("first", value)).to("first")
    second = one.flat_map_values(lambda value: [value, f"{value}!"]).map_values(lambda value: failing("second", value))
    second.group_by_key().count(materialized=Materialized("counts")).to_stream().to("second")
    one.peek(lambda key, value: effects.append(value)).to("third")
    grouped = one.group_by(lambda key, value: failing("key", value), Grouped("group"))
    grouped.reduce(lambda total, value: failing("reduce", total + value)).to_stream().to("fourth")


@dsl
def processing_fails(b: StreamsBuilder, effects: Effects) -> None:
    one = b.stream("in")
    one.to("before")
    one.map_values(lambda value: failing("bad", value)).to("out")


@dsl
def foreign_key_longs(b: StreamsBuilder, effects: Effects) -> None:
    def number(value: str) -> int | None:
        return None if value == "none" else int(value.split(" ")[0])

    left = b.table("left", Consumed(LONG, STRING), Materialized("left-store"))
    right = b.table("right", Consumed(LONG, STRING), Materialized("right-store"))
    rows = Materialized(Stores.persistent_key_value_store("inner-store"), key_serde=LONG, value_serde=STRING)
    inner = left.join(right, join, foreign_key=number, table_joined=TableJoined("inner"), materialized=rows)
    inner.to_stream().to("inner-out", Produced(LONG, STRING))
    with_serdes = Materialized(key_serde=LONG, value_serde=STRING)
    outer = left.left_join(right, join, foreign_key=number, table_joined=TableJoined("left"), materialized=with_serdes)
    outer.to_stream().to("left-out", Produced(LONG, STRING))


@dsl
def foreign_key_strings(b: StreamsBuilder, effects: Effects) -> None:
    left, right = b.table("left"), b.table("right")
    left.left_join(right, join, foreign_key=lambda value: value[0]).to_stream().to("out")


@dsl
def table_group_bytes(b: StreamsBuilder, effects: Effects) -> None:
    table = b.table("in", Consumed(STRING, LONG))
    # Java's remainder, and no value is negative here.
    grouped = table.group_by(lambda key, value: (value % 2, value), Grouped("parity", LONG, LONG))
    sums = grouped.reduce(lambda a, v: a + v, lambda a, v: a - v, materialized=Materialized("sums"))
    sums.to_stream().to("out")


@dsl
def count_changelog(b: StreamsBuilder, effects: Effects) -> None:
    stream = b.stream("in").flat_map_values(words)
    options: list[Materialized[Any, int]] = [
        Materialized("counts"),
        Materialized("uncached", caching=False),
        Materialized("unlogged", logging=False),
    ]
    for option in options:
        stream.group_by_key().count(materialized=option).to_stream().to(f"{option.name}-out")
    by_word = stream.group_by(value_of, Grouped("words"))
    by_word.count(materialized=Materialized("words")).to_stream().to("words-out")


@dsl
def window_changelog(b: StreamsBuilder, effects: Effects) -> None:
    grouped = b.stream("in").flat_map_values(words).group_by_key(Grouped(None, STRING, STRING))
    hopping = grouped.windowed_by(TUMBLING.advance_by(ms(5))).count(materialized=Materialized("hopping"))
    hopping.to_stream().to("hopping-out")
    sessions = grouped.windowed_by(SESSIONS).reduce(join, materialized=Materialized("sessions"))
    sessions.to_stream().to("sessions-out")
    grouped.windowed_by(SLIDING).reduce(join, materialized=Materialized("sliding")).to_stream().to("sliding-out")


@dsl
def window_close_changelog(b: StreamsBuilder, effects: Effects) -> None:
    close = EmitStrategy.on_window_close()
    grouped = b.stream("in").flat_map_values(words).group_by_key(Grouped(None, STRING, STRING))
    tumbling = grouped.windowed_by(TUMBLING).emit_strategy(close).count(materialized=Materialized("tumbling"))
    tumbling.to_stream().to("tumbling-out")
    sessions = grouped.windowed_by(SESSIONS).emit_strategy(close).reduce(join, materialized=Materialized("sessions"))
    sessions.to_stream().to("sessions-out")
    sliding = grouped.windowed_by(SLIDING).emit_strategy(close).reduce(join, materialized=Materialized("sliding"))
    sliding.to_stream().to("sliding-out")


@dsl
def join_changelog(b: StreamsBuilder, effects: Effects) -> None:
    left, right = b.stream("left"), b.stream("right")
    left.join(right, join, windows=WITHIN, joined=StreamJoined(store_name="inner")).to("inner-out")
    left.outer_join(right, join, windows=WITHIN, joined=StreamJoined(store_name="outer")).to("outer-out")
    suppliers: StreamJoined[Any, Any, Any] = StreamJoined(
        this_store_supplier=Stores.in_memory_window_store("mine", ms(25), ms(20), retain_duplicates=True),
        other_store_supplier=Stores.in_memory_window_store("yours", ms(25), ms(20), retain_duplicates=True),
    )
    left.left_join(right, join, windows=WITHIN, joined=suppliers).to("left-out")


@dsl
def join_null_value(b: StreamsBuilder, effects: Effects) -> None:
    left, right = b.stream("left"), b.stream("right")
    left.join(right, join, windows=WITHIN, joined=StreamJoined(store_name="stores")).to("out")


@dsl
def self_join(b: StreamsBuilder, effects: Effects) -> None:
    one = b.stream("in")
    one.join(one, join, windows=WITHIN, joined=StreamJoined(store_name="self")).to("out")


@dsl
def tables_joined(b: StreamsBuilder, effects: Effects) -> None:
    left = b.table("left")
    right = b.table("right").filter(lambda key, value: not value.startswith("n"))
    left.join(right, join, materialized=Materialized("inner")).to_stream().to("inner-out")
    left.outer_join(right, join).to_stream().to("outer-out")


@dsl
def cogroup(b: StreamsBuilder, effects: Effects) -> None:
    def add(key: str, value: str, total: str) -> str:
        return total + value

    def add_upper(key: str, value: str, total: str) -> str:
        return total + value.upper()

    one, two = b.stream("a").group_by(value_of, Grouped("one", STRING, STRING)), b.stream("b").group_by_key()
    groups = one.cogroup(add).cogroup(two, add_upper).aggregate(str, materialized=Materialized("groups"))
    groups.to_stream().to("out")
    again = b.stream("a").group_by(value_of, Grouped("again")).cogroup(add).windowed_by(TUMBLING)
    windows = again.aggregate(lambda: "-", materialized=Materialized("windows"))
    windows.to_stream().to("windows-out", Produced(Serdes.time_windowed(STRING, 10), STRING))


@dsl
def global_store(b: StreamsBuilder, effects: Effects) -> None:
    b.add_global_store(store("facts"), "facts", Consumed(STRING, STRING), lambda: Keep("facts"))
    names = b.global_table("names", materialized=Materialized("names"))
    looked_up = b.stream("in").process_values(lambda: Lookup("facts"))
    looked_up.left_join(names, join, key_selector=lambda key, value: key).to("out")


@papi
def read_only_store(effects: Effects) -> Topology:
    topology = Topology()
    topology.add_read_only_state_store(
        store("facts").with_logging_disabled(),
        "facts-source",
        "facts",
        "facts-update",
        lambda: Keep("facts"),
        key_serde=STRING,
        value_serde=STRING,
    )
    topology.add_source("source", "in", key_serde=STRING, value_serde=STRING)
    topology.add_processor("store", lambda: Store("facts"), "source")
    topology.connect_processor_and_state_stores("store", "facts")
    return topology.add_sink("sink", "out", "store", key_serde=STRING, value_serde=STRING)


@dsl
def tables_and_optimization(b: StreamsBuilder, effects: Effects) -> None:
    rows = b.table("table", materialized=Materialized("rows"))
    one = b.stream("in").select_key(value_of)
    counts = one.group_by_key().count(materialized=Materialized("counts"))
    counts.to_stream().map_values(str).join(rows, join).to("out-1")
    one.map_values(lambda value: f"{value}!").group_by_key().reduce(join).to_stream().to("out-2")
    one.to_table(Materialized("latest")).left_join(rows, join).to_stream().to("out-3")


@dsl
def split_and_merge(b: StreamsBuilder, effects: Effects) -> None:
    split = b.stream("in").split(name="s-")
    split.branch(lambda key, value: value is None, Branched("null"))
    split.branch(lambda key, value: value.startswith("a"), Branched(consumer=lambda stream: stream.to("a")))
    exclaim = Branched("b", function=lambda stream: stream.map_values(lambda value: f"{value}!"))
    branches = split.branch(lambda key, value: value.startswith("b"), exclaim).default_branch()
    effects.append(f"[{', '.join(sorted(branches))}]")
    branches["s-null"].merge(branches["s-b"]).to("merged")
    branches["s-0"].repartition(Repartitioned("rest")).to("rest")


@dsl
def pattern_source(b: StreamsBuilder, effects: Effects) -> None:
    grouped = b.stream(re.compile("in-[0-9]+")).group_by_key()
    grouped.count(materialized=Materialized("counts")).to_stream().to("out")


@dsl
def table_without_store(b: StreamsBuilder, effects: Effects) -> None:
    rows = b.table("in")
    short = rows.filter(lambda key, value: len(value) < 3)
    short.map_values(lambda value: f"{value}!").to_stream().to("out")
    copy = rows.to_stream().to_table(Materialized(Stores.in_memory_key_value_store("copy")))
    copy.to_stream().to("copy-out")
