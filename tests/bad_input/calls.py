"""Every public call that takes arguments, each with arguments that are right: a test makes them wrong one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace import (
    AutoOffsetReset,
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    FixedKeyProcessor,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Printed,
    Processor,
    Produced,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TableJoined,
    TestRecord,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    UnlimitedWindows,
    ValueTransformerWithKey,
    with_key,
)

MINUTE = timedelta(minutes=1)
MINUTES = TimeWindows.of_size_and_grace(MINUTE, MINUTE)
VISITS = SessionWindows.of_inactivity_gap_and_grace(MINUTE, MINUTE)
WITHIN = JoinWindows.of_time_difference_and_grace(MINUTE, MINUTE)
STRING = Serdes.string()


def value(one: Any) -> Any:
    return one


def pair(key: Any, one: Any) -> tuple[Any, Any]:
    return key, one


def add(_key: Any, _value: Any, total: Any) -> Any:
    return total


def partitioner(_topic: str, _key: Any, _value: Any, _partitions: int) -> int:
    return 0


def extractor(record: Any, _partition_time_ms: int) -> int:
    return int(record.timestamp_ms)


def topic_of(_key: Any, _value: Any, _context: Any) -> str:
    return "out"


def handler(*_given: Any) -> None:
    return None


def rows(name: str = "rows") -> Any:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), STRING, STRING)


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


class IdleValues(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


class IdleTransformer(ValueTransformerWithKey[Any, Any, Any]):
    def transform(self, key: Any, value: Any) -> Any:
        return value


class Given:
    """One of everything, on one builder, one topology and one driver."""

    def __init__(self) -> None:
        self.builder = StreamsBuilder()
        self.stream = self.builder.stream("s")
        self.other = self.builder.stream("o")
        self.table = self.builder.table("t")
        self.other_table = self.builder.table("u")
        self.global_table = self.builder.global_table("g")
        self.grouped = self.stream.group_by_key()
        self.grouped_table = self.table.group_by(pair)
        self.windowed = self.grouped.windowed_by(MINUTES)
        self.sessions = self.grouped.windowed_by(VISITS)
        self.cogrouped = self.grouped.cogroup(add)
        self.split = self.stream.split()
        self.topology = Topology().add_source("source", "in").add_processor("process", Idle, "source")
        self.topology.add_state_store(rows("kept"))
        self.store_builder = rows()
        self._driver: TopologyTestDriver | None = None

    @property
    def driver(self) -> TopologyTestDriver:
        if self._driver is None:
            builder = StreamsBuilder()
            builder.table("in", materialized=Materialized("rows")).to_stream().to("out")
            self._driver = TopologyTestDriver(builder.build())
        return self._driver

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()


@dataclass(frozen=True)
class Call:
    """A call with its right arguments; those of a name with ``*`` are positional ones of any number."""

    name: str
    function: Callable[[Given], Callable[..., Any]]
    arguments: Callable[[Given], dict[str, Any]]

    def make(self, given: Given, **changed: Any) -> Any:
        arguments = {**self.arguments(given), **changed}
        several = [name for name in arguments if name.startswith("*")]
        positional: list[Any] = []
        for name in several:
            # What comes before has to be given by position, too.
            before = list(arguments)[: list(arguments).index(name)]
            positional = [*(arguments.pop(each) for each in before), *arguments.pop(name)]
        return self.function(given)(*positional, **arguments)

    @property
    def parameters(self) -> list[str]:
        given = Given()
        return list(self.arguments(given))


def call(label: str, function: Callable[[Given], Callable[..., Any]], /, **arguments: Any) -> Call:
    """Makes a call; an argument that is a ``Late`` is made from what is given."""
    return Call(
        label,
        function,
        lambda given: {
            name.replace("star_", "*"): value.of(given) if isinstance(value, Late) else value
            for name, value in arguments.items()
        },
    )


@dataclass(frozen=True)
class Late:
    """An argument that is one of the given things."""

    of: Callable[[Given], Any]


def methods(owner: str, of: Callable[[Given], Any], table: dict[str, dict[str, Any]]) -> list[Call]:
    """Makes a call per method; several calls of one method are told apart by what follows a colon."""

    def bound(method: str) -> Callable[[Given], Callable[..., Any]]:
        attribute = method.partition(":")[0]
        return lambda given: getattr(of(given), attribute)

    return [call(f"{owner}.{method}", bound(method), **arguments) for method, arguments in table.items()]


NAME = {"name": "n"}
KEPT: dict[str, Any] = {"materialized": Materialized("m"), **NAME}
_OPTIONS: dict[Any, dict[str, Any]] = {
    Named: {"name": "n"},
    Consumed: {
        "key_serde": STRING,
        "value_serde": STRING,
        "timestamp_extractor": extractor,
        "offset_reset": "latest",
        **NAME,
    },
    Produced: {"key_serde": STRING, "value_serde": STRING, "partitioner": partitioner, **NAME},
    Grouped: {**NAME, "key_serde": STRING, "value_serde": STRING},
    Joined: {
        "key_serde": STRING,
        "value_serde": STRING,
        "other_value_serde": STRING,
        **NAME,
        "grace_period": MINUTE,
    },
    StreamJoined: {
        "key_serde": STRING,
        "value_serde": STRING,
        "other_value_serde": STRING,
        **NAME,
        "store_name": "s",
        "this_store_supplier": Stores.in_memory_window_store("a", MINUTE, MINUTE, retain_duplicates=True),
        "other_store_supplier": Stores.in_memory_window_store("b", MINUTE, MINUTE, retain_duplicates=True),
        "logging": True,
        "log_config": {"retention.ms": "1"},
        "dsl_store": "memory",
    },
    TableJoined: {**NAME, "partitioner": partitioner, "other_partitioner": partitioner},
    Repartitioned: {
        **NAME,
        "key_serde": STRING,
        "value_serde": STRING,
        "partitions": 2,
        "partitioner": partitioner,
    },
    Materialized: {
        "store": "m",
        "key_serde": STRING,
        "value_serde": STRING,
        "caching": True,
        "logging": True,
        "log_config": {"retention.ms": "1"},
        "retention": MINUTE,
        "store_type": "memory",
    },
    Branched: {**NAME, "function": value},
    Printed: {"path": "file", "label": "l", "formatter": pair, **NAME},
    BufferConfig: {"record_limit": 5, "byte_limit": 5, "strict": True, "logging": True, "log_config": {"a": "b"}},
    Suppressed: {"limit": MINUTE, "config": BufferConfig.unbounded(), **NAME},
    AutoOffsetReset: {"strategy": "by_duration", "duration": MINUTE},
}


def constructor(kind: Any) -> Callable[[Given], Callable[..., Any]]:
    return lambda _given: kind


OPTIONS: list[Call] = [
    *(call(kind.__name__, constructor(kind), **arguments) for kind, arguments in _OPTIONS.items()),
    call("Branched:consumer", lambda _given: Branched, consumer=print),
    call("Printed.to_file", lambda _given: Printed.to_file, path="file"),
    call("Printed.with_label", lambda _given: Printed.to_sys_out().with_label, label="l"),
    call(
        "Suppressed.until_window_closes",
        lambda _given: Suppressed.until_window_closes,
        config=BufferConfig.unbounded(),
        **NAME,
    ),
    call(
        "Suppressed.until_time_limit",
        lambda _given: Suppressed.until_time_limit,
        limit=MINUTE,
        config=BufferConfig.unbounded(),
        **NAME,
    ),
    *methods(
        "BufferConfig",
        lambda _given: BufferConfig.unbounded(),
        {
            "max_records": {"limit": 5},
            "max_bytes": {"limit": 5},
            "with_max_records": {"limit": 5},
            "with_max_bytes": {"limit": 5},
            "with_logging_enabled": {"config": {"a": "b"}},
        },
    ),
    *methods(
        "AutoOffsetReset",
        lambda _given: AutoOffsetReset,
        {"by_duration": {"duration": MINUTE}, "of": {"value": "latest"}},
    ),
    call("with_key", lambda _given: with_key, function=pair),
]

STREAM_JOIN: dict[str, Any] = {
    "other": Late(lambda given: given.other),
    "joiner": pair,
    "windows": WITHIN,
    "joined": StreamJoined(store_name="s"),
    **NAME,
}
TABLE_JOIN: dict[str, Any] = {"other": Late(lambda given: given.table), "joiner": pair, "joined": Joined(), **NAME}
GLOBAL_JOIN: dict[str, Any] = {
    "other": Late(lambda given: given.global_table),
    "joiner": pair,
    "key_selector": pair,
    **NAME,
}
KEY_JOIN: dict[str, Any] = {"other": Late(lambda given: given.other_table), "joiner": pair, **KEPT}
FOREIGN_KEY_JOIN: dict[str, Any] = {
    "other": Late(lambda given: given.other_table),
    "joiner": pair,
    "foreign_key": value,
    "table_joined": TableJoined(),
    **KEPT,
}

DSL: list[Call] = [
    call("StreamsBuilder", lambda _given: StreamsBuilder, config=StreamsConfig()),
    *methods(
        "StreamsBuilder",
        lambda given: given.builder,
        {
            "stream": {"topics": "a", "consumed": Consumed()},
            "stream:several": {"topics": ["a", "b"], "consumed": Consumed()},
            "stream:pattern": {"topics": re.compile("a.*"), "consumed": Consumed()},
            "table": {"topic": "a", "consumed": Consumed(), "materialized": Materialized("a")},
            "global_table": {"topic": "a", "consumed": Consumed(), "materialized": Materialized("a")},
            "add_state_store": {"builder": rows()},
            "add_global_store": {"builder": rows(), "topic": "a", "consumed": Consumed(), "supplier": Idle},
            "build": {"config": StreamsConfig()},
        },
    ),
    *methods(
        "KStream",
        lambda given: given.stream,
        {
            "filter": {"predicate": pair, **NAME},
            "filter_not": {"predicate": pair, **NAME},
            "map": {"mapper": pair, **NAME},
            "map_values": {"mapper": value, **NAME},
            "map_values:with_key": {"mapper": with_key(pair), **NAME},
            "flat_map": {"mapper": pair, **NAME},
            "flat_map_values": {"mapper": value, **NAME},
            "map_batches": {"mapper": value, "max_records": 10, "schema": pa.schema([("a", pa.int64())]), **NAME},
            "select_key": {"selector": pair, **NAME},
            "peek": {"action": pair, **NAME},
            "for_each": {"action": pair, **NAME},
            "print": {"printed": Printed.to_sys_out()},
            "split": {**NAME},
            "merge": {"other": Late(lambda given: given.other), **NAME},
            "distinct": {"by": pair, "within": timedelta(seconds=1), "id_serde": Serdes.json(), **NAME},
            "repartition": {"repartitioned": Repartitioned()},
            "to": {"topic": "out", "produced": Produced()},
            "to:extracted": {"topic": topic_of, "produced": Produced()},
            "to_table": {"materialized": Materialized("m"), **NAME},
            "process": {"supplier": Idle, "star_stores": [], **NAME},
            "process_values": {"supplier": IdleValues, "star_stores": [], **NAME},
            "group_by_key": {"grouped": Grouped()},
            "group_by": {"selector": pair, "grouped": Grouped()},
            "join": STREAM_JOIN,
            "join:table": TABLE_JOIN,
            "join:global": GLOBAL_JOIN,
            "left_join": STREAM_JOIN,
            "left_join:table": TABLE_JOIN,
            "left_join:global": GLOBAL_JOIN,
            "outer_join": STREAM_JOIN,
        },
    ),
    *methods(
        "BranchedKStream",
        lambda given: given.split,
        {
            "branch": {"predicate": pair, "branched": Branched("b")},
            "default_branch": {"branched": Branched("b")},
        },
    ),
    *methods(
        "KTable",
        lambda given: given.table,
        {
            "filter": {"predicate": pair, **KEPT},
            "filter_not": {"predicate": pair, **KEPT},
            "map_values": {"mapper": value, **KEPT},
            "transform_values": {"supplier": IdleTransformer, "star_stores": [], **KEPT},
            "to_stream": {"key_selector": pair, **NAME},
            "suppress": {"suppressed": Suppressed.until_time_limit(MINUTE, BufferConfig.unbounded())},
            "group_by": {"selector": pair, "grouped": Grouped()},
            "join": KEY_JOIN,
            "join:foreign_key": FOREIGN_KEY_JOIN,
            "left_join": KEY_JOIN,
            "left_join:foreign_key": FOREIGN_KEY_JOIN,
            "outer_join": KEY_JOIN,
        },
    ),
    *methods(
        "KGroupedStream",
        lambda given: given.grouped,
        {
            "count": KEPT,
            "reduce": {"reducer": pair, **KEPT},
            "aggregate": {"initializer": list, "aggregator": add, **KEPT},
            "windowed_by": {"windows": MINUTES},
            "cogroup": {"aggregator": add},
        },
    ),
    *methods(
        "KGroupedTable",
        lambda given: given.grouped_table,
        {
            "count": KEPT,
            "reduce": {"adder": pair, "subtractor": pair, **KEPT},
            "aggregate": {"initializer": list, "adder": add, "subtractor": add, **KEPT},
        },
    ),
    *methods(
        "TimeWindowedKStream",
        lambda given: given.windowed,
        {
            "count": KEPT,
            "reduce": {"reducer": pair, **KEPT},
            "aggregate": {"initializer": list, "aggregator": add, **KEPT},
            "emit_strategy": {"strategy": EmitStrategy.on_window_close()},
        },
    ),
    *methods(
        "SessionWindowedKStream",
        lambda given: given.sessions,
        {
            "count": KEPT,
            "reduce": {"reducer": pair, **KEPT},
            "aggregate": {"initializer": list, "aggregator": add, "merger": add, **KEPT},
            "emit_strategy": {"strategy": EmitStrategy.on_window_close()},
        },
    ),
    *methods(
        "CogroupedKStream",
        lambda given: given.cogrouped,
        {
            "cogroup": {"grouped": Late(lambda given: given.other.group_by_key()), "aggregator": add},
            "aggregate": {"initializer": list, **KEPT},
            "windowed_by": {"windows": MINUTES},
        },
    ),
    *methods(
        "TimeWindowedCogroupedKStream",
        lambda given: given.cogrouped.windowed_by(MINUTES),
        {"aggregate": {"initializer": list, **KEPT}},
    ),
    *methods(
        "SessionWindowedCogroupedKStream",
        lambda given: given.cogrouped.windowed_by(VISITS),
        {"aggregate": {"initializer": list, "merger": add, **KEPT}},
    ),
]

READ: dict[str, Any] = {"key_serde": STRING, "value_serde": STRING, "timestamp_extractor": extractor}
FILLED: dict[str, Any] = {
    "builder": rows("filled"),
    "source": "filled-source",
    "topic": "filled",
    "processor": "fill",
    "supplier": Idle,
    **READ,
}
TOPOLOGY: list[Call] = [
    call("Topology", lambda _given: Topology, config=StreamsConfig()),
    *methods(
        "Topology",
        lambda given: given.topology,
        {
            "add_source": {"name": "n", "star_topics": ["a", "b"], **READ, "offset_reset": "latest"},
            "add_source:pattern": {"name": "n", "pattern": re.compile("a.*")},
            "add_processor": {"name": "n", "supplier": Idle, "star_parents": ["source"]},
            "add_sink": {
                "name": "n",
                "topic": "out",
                "star_parents": ["process"],
                "key_serde": STRING,
                "value_serde": STRING,
                "partitioner": partitioner,
            },
            "add_state_store": {"builder": rows(), "star_processors": ["process"]},
            "add_read_only_state_store": FILLED,
            "add_global_store": FILLED,
            "connect_processor_and_state_stores": {"processor": "process", "star_stores": ["kept"]},
            "partition_counts": {"external": {"in": 1}},
            "internal_topics": {"application_id": "app"},
            "changelog_topics": {"application_id": "app"},
        },
    ),
]

WINDOW_STORE: dict[str, Any] = {"name": "n", "retention": MINUTE, "window_size": MINUTE, "retain_duplicates": False}
SESSION_STORE: dict[str, Any] = {"name": "n", "retention": MINUTE}
KEY_VALUE = Stores.in_memory_key_value_store("n")
SERDES: dict[str, Any] = {"key_serde": STRING, "value_serde": STRING}
STORES: list[Call] = [
    *methods(
        "Stores",
        lambda _given: Stores,
        {
            "in_memory_key_value_store": NAME,
            "persistent_key_value_store": NAME,
            "persistent_timestamped_key_value_store": NAME,
            "lru_map": {**NAME, "max_entries": 5},
            "persistent_versioned_key_value_store": {
                **NAME,
                "history_retention": MINUTE,
                "segment_interval": MINUTE,
            },
            "in_memory_window_store": WINDOW_STORE,
            "persistent_window_store": WINDOW_STORE,
            "persistent_timestamped_window_store": WINDOW_STORE,
            "in_memory_session_store": SESSION_STORE,
            "persistent_session_store": SESSION_STORE,
            "key_value_store_builder": {"supplier": KEY_VALUE, **SERDES},
            "timestamped_key_value_store_builder": {"supplier": KEY_VALUE, **SERDES},
            "versioned_key_value_store_builder": {
                "supplier": Stores.persistent_versioned_key_value_store("n", MINUTE),
                **SERDES,
            },
            "window_store_builder": {"supplier": Stores.in_memory_window_store("n", MINUTE, MINUTE), **SERDES},
            "timestamped_window_store_builder": {
                "supplier": Stores.in_memory_window_store("n", MINUTE, MINUTE),
                **SERDES,
            },
            "session_store_builder": {"supplier": Stores.in_memory_session_store("n", MINUTE), **SERDES},
        },
    ),
    *methods("StoreBuilder", lambda given: given.store_builder, {"with_logging_enabled": {"config": {"a": "b"}}}),
]

WINDOWS: list[Call] = [
    call("TimeWindows", lambda _given: TimeWindows, size_ms=10, advance_ms=5, grace_ms=0),
    call("SlidingWindows", lambda _given: SlidingWindows, difference_ms=10, grace_ms=0),
    call("SessionWindows", lambda _given: SessionWindows, gap_ms=10, grace_ms=0),
    call("UnlimitedWindows", lambda _given: UnlimitedWindows, start_ms=0),
    call("JoinWindows", lambda _given: JoinWindows, before_ms=10, after_ms=10, grace_ms=0),
    *methods(
        "TimeWindows",
        lambda _given: TimeWindows.of_size_with_no_grace(MINUTE),
        {
            "of_size_with_no_grace": {"size": MINUTE},
            "of_size_and_grace": {"size": MINUTE, "grace": MINUTE},
            "advance_by": {"advance": MINUTE},
        },
    ),
    *methods(
        "SlidingWindows",
        lambda _given: SlidingWindows,
        {
            "of_time_difference_with_no_grace": {"difference": MINUTE},
            "of_time_difference_and_grace": {"difference": MINUTE, "grace": MINUTE},
        },
    ),
    *methods(
        "SessionWindows",
        lambda _given: SessionWindows,
        {
            "of_inactivity_gap_with_no_grace": {"gap": MINUTE},
            "of_inactivity_gap_and_grace": {"gap": MINUTE, "grace": MINUTE},
        },
    ),
    *methods(
        "UnlimitedWindows",
        lambda _given: UnlimitedWindows.of(),
        {"start_on": {"start": datetime(2024, 1, 1, tzinfo=UTC)}},
    ),
    *methods(
        "JoinWindows",
        lambda _given: WITHIN,
        {
            "of_time_difference_with_no_grace": {"difference": MINUTE},
            "of_time_difference_and_grace": {"difference": MINUTE, "grace": MINUTE},
            "before": {"difference": MINUTE},
            "after": {"difference": MINUTE},
        },
    ),
    *methods(
        "Serdes",
        lambda _given: Serdes,
        {
            "time_windowed": {"inner": STRING, "window_size_ms": 10},
            "session_windowed": {"inner": STRING},
            "list_of": {"inner": STRING},
            "of": {"serialize": str.encode, "deserialize": bytes.decode},
            "serde_from": {"python_type": str},
        },
    ),
]

CONFIG: list[Call] = [
    call(
        "StreamsConfig",
        lambda _given: StreamsConfig,
        **{
            name: value
            for name, value in vars(StreamsConfig()).items()
            # These are None by default, so they are given something.
            if value is not None
        },
        bootstrap_servers="a:1",
        commit_interval=MINUTE,
        emit_interval=MINUTE,
        errors_dead_letter_queue_topic_name="failed",
        on_late=print,
    ),
    call("StreamsConfig.of", lambda _given: StreamsConfig.of, source={"application.id": "app"}),
    call("StreamsConfig.prefixed", lambda _given: StreamsConfig().prefixed, star_prefixes=["consumer."]),
]

DRIVER: list[Call] = [
    call(
        "TopologyTestDriver",
        lambda _given: TopologyTestDriver,
        topology=Late(lambda given: given.topology),
        config=StreamsConfig(),
        initial_wall_clock_ms=0,
        partitions=1,
        batched=False,
        state_dir=Path("/tmp/headrace-bad-input"),
    ),
    *methods(
        "TopologyTestDriver",
        lambda given: given.driver,
        {
            "create_input_topic": {"name": "in", **SERDES, "start_ms": 0, "auto_advance": MINUTE},
            "create_output_topic": {"name": "out", **SERDES},
            "pipe_raw": {
                "topic": "in",
                "key": b"k",
                "value": b'"v"',
                "timestamp_ms": 0,
                "headers": (("h", b"1"),),
                "partition": 0,
            },
            "pipe_raw_batch": {"topic": "in", "records": [(None, 0, b"k", b'"v"', ())]},
            "advance_wall_clock_time": {"advance": MINUTE},
            "unread": {"topic": "out"},
            "take_outputs": {"topic": "out", "count": 1},
            "peek_outputs": {"topic": "out", "count": 1},
            "get_state_store": {"name": "rows", "partition": 0},
            "get_key_value_store": {"name": "rows", "partition": 0},
            "get_timestamped_key_value_store": {"name": "rows", "partition": 0},
        },
    ),
    *methods(
        "TestInputTopic",
        lambda given: given.driver.create_input_topic("in"),
        {
            "advance_time": {"advance": MINUTE},
            "pipe_input": {"key": "k", "value": "v", "timestamp_ms": 0, "headers": [("h", b"1")], "partition": 0},
            "pipe_record": {"record": TestRecord("k", "v")},
            "pipe_records": {"records": [TestRecord("k", "v")]},
            "pipe_key_values": {"pairs": [("k", "v")], "start_ms": 0, "advance": MINUTE},
            "pipe_values": {"values": ["v"], "start_ms": 0, "advance": MINUTE},
        },
    ),
]

CALLS: list[Call] = [*OPTIONS, *DSL, *TOPOLOGY, *STORES, *WINDOWS, *CONFIG, *DRIVER]
