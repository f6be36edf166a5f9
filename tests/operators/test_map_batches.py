"""Batches of records: what the function gets, what comes out, and in which order whatever is around it sees it.

The random programs of ``tests/spark`` compare it with ``map_values``; the cases here are what chance seldom makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from headrace import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Headers,
    JoinWindows,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    ProcessingError,
    Processor,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
)

Given = tuple[str, Any, Any, int]
Build = Callable[[StreamsBuilder], None]
CONFIG = {"application.id": "test", "default.value.serde": Serdes.json()}


def _run(build: Build, records: Sequence[Given], *, batched: bool = True, cache: int = 0) -> list[tuple[Any, Any, int]]:
    """Runs records (topic, key, value, time) as one micro-batch, or each by itself; returns what comes out."""
    config = StreamsConfig.of({**CONFIG, "statestore.cache.max.bytes": cache})
    builder = StreamsBuilder()
    build(builder)
    topology = builder.build(config)
    read = {topic for source in topology.source_nodes for topic in source.topics}
    with TopologyTestDriver(topology, config, initial_wall_clock_ms=0, batched=batched) as driver:
        for topic, key, value, timestamp_ms in records:
            if topic in read:
                driver.create_input_topic(topic).pipe_input(key, value, timestamp_ms=timestamp_ms)
        if batched:
            driver.commit()
        return [
            (each.key, each.value, each.timestamp_ms or 0) for each in driver.create_output_topic("out").read_records()
        ]


def _orders(count: int) -> list[Given]:
    return [("orders", f"u{number % 2}", number, number * 10) for number in range(count)]


@dataclass
class Seen:
    """A mapper that notes what it was given and doubles the values."""

    batches: list[list[Any]]

    def __call__(self, records: list[FixedKeyRecord[Any, Any]]) -> list[Any]:
        self.batches.append([each.value for each in records])
        return [None if each.value is None else each.value * 2 for each in records]


def _sizes(build: Callable[[StreamsBuilder, Seen], None], records: Sequence[Given]) -> list[int]:
    seen = Seen([])
    _run(lambda builder: build(builder, seen), records)
    return [len(batch) for batch in seen.batches]


def test_a_micro_batch_is_given_at_once_but_no_more_than_allowed() -> None:
    seen = Seen([])
    rows = _run(lambda builder: builder.stream("orders").map_batches(seen, max_records=3).to("out"), _orders(7))
    assert seen.batches == [[0, 1, 2], [3, 4, 5], [6]]
    assert rows == [(f"u{number % 2}", number * 2, number * 10) for number in range(7)]


def test_record_by_record_each_is_a_batch() -> None:
    seen = Seen([])
    rows = _run(lambda builder: builder.stream("orders").map_batches(seen).to("out"), _orders(2), batched=False)
    assert seen.batches == [[0], [1]]
    assert rows == [("u0", 0, 0), ("u1", 2, 10)]


def test_each_partition_has_batches_of_its_own() -> None:
    seen = Seen([])
    builder = StreamsBuilder()
    builder.stream("orders").map_batches(seen).to("out")
    with TopologyTestDriver(builder.build(), CONFIG, partitions=2, batched=True) as driver:
        driver.create_input_topic("orders").pipe_key_values([(f"u{number}", number) for number in range(8)])
        driver.commit()
        written = driver.create_output_topic("out").read_key_values()
    assert len(seen.batches) == 2
    assert sorted(seen.batches[0] + seen.batches[1]) == list(range(8))
    assert sorted(written) == [(f"u{number}", number * 2) for number in range(8)]


def test_the_function_sees_keys_times_and_headers_and_they_stay() -> None:
    def describe(records: list[FixedKeyRecord[Any, Any]]) -> list[Any]:
        return [[each.key, each.timestamp_ms, (each.headers.last("h") or b"").decode()] for each in records]

    builder = StreamsBuilder()
    builder.stream("in").map_batches(describe).to("out")
    with TopologyTestDriver(builder.build(), CONFIG, batched=True) as driver:
        topic = driver.create_input_topic("in")
        for number in range(2):
            topic.pipe_input(f"k{number}", number, timestamp_ms=number, headers=Headers([("h", b"%d" % number)]))
        driver.commit()
        first, second = driver.create_output_topic("out").read_records()
    assert (first.value, first.headers) == (["k0", 0, "0"], (("h", b"0"),))
    assert (second.value, second.headers) == (["k1", 1, "1"], (("h", b"1"),))


def test_null_keys_and_values_are_records_too() -> None:
    records: list[Given] = [("in", None, None, 1), ("in", "a", None, 2), ("in", None, 3, 3)]
    rows = _run(lambda builder: builder.stream("in").map_batches(Seen([])).to("out"), records)
    assert rows == [(None, None, 1), ("a", None, 2), (None, 6, 3)]


@pytest.mark.parametrize(
    "result",
    [
        lambda values: np.array(values, dtype="int64"),
        lambda values: pd.Series(values),
        lambda values: pa.array(values),
        lambda values: pa.chunked_array([values[:1], values[1:]]),
        lambda values: tuple(values),
        lambda values: (value for value in values),
    ],
    ids=["numpy", "pandas", "pyarrow", "chunks", "tuple", "generator"],
)
def test_results_become_plain_values(result: Callable[[list[int]], Any]) -> None:
    def score(records: list[FixedKeyRecord[Any, Any]]) -> Any:
        return result([each.value + 1 for each in records])

    rows = _run(lambda builder: builder.stream("orders").map_batches(score).to("out"), _orders(2))
    assert rows == [("u0", 1, 0), ("u1", 2, 10)]


SCHEMA = pa.schema([("amount", pa.float64()), ("shop", pa.string())])


def test_with_a_schema_the_function_gets_a_table() -> None:
    tables: list[pa.Table] = []

    def score(table: pa.Table) -> Any:
        tables.append(table)
        return table.to_pylist()

    records: list[Given] = [
        ("in", "a", {"amount": 1, "shop": "x", "more": 1}, 1),
        ("in", "b", None, 2),
        ("in", "c", {"amount": 2.5}, 3),
    ]
    rows = _run(lambda builder: builder.stream("in").map_batches(score, schema=SCHEMA).to("out"), records)
    assert [table.schema for table in tables] == [SCHEMA]
    assert rows == [
        ("a", {"amount": 1.0, "shop": "x"}, 1),
        ("b", {"amount": None, "shop": None}, 2),
        ("c", {"amount": 2.5, "shop": None}, 3),
    ]


@dataclass
class Purchase:
    amount: float
    shop: str


def test_columns_are_taken_from_attributes_as_well() -> None:
    def build(builder: StreamsBuilder) -> None:
        purchases = builder.stream("in").map_values(lambda value: Purchase(value, "x"))
        purchases.map_batches(lambda table: table["amount"], schema=SCHEMA).to("out")

    assert _run(build, [("in", "a", 1.5, 1), ("in", "b", 2.5, 2)]) == [("a", 1.5, 1), ("b", 2.5, 2)]


def test_values_that_do_not_fit_the_schema_are_named() -> None:
    with pytest.raises(
        ProcessingError, match=r"cannot be made a table of the columns amount \(double\), shop \(string\)"
    ):
        _run(
            lambda builder: builder.stream("in").map_batches(len, schema=SCHEMA).to("out"),
            [("in", "a", {"amount": "much"}, 1)],
        )


def _fails(records: list[FixedKeyRecord[Any, Any]]) -> list[Any]:
    return [1 // each.value for each in records]


def test_an_error_names_the_function_its_line_and_the_first_record_of_the_batch() -> None:
    records: list[Given] = [("in", "a", 1, 1), ("in", "b", 0, 2)]
    with pytest.raises(ProcessingError) as failed:
        _run(lambda builder: builder.stream("in").map_batches(_fails, name="score").to("out"), records)
    error = failed.value
    assert (error.node, error.topic, error.partition, error.offset) == ("score", "in", 0, 0)
    assert "ZeroDivisionError" in str(error)
    assert f"_fails ({__file__}:{_fails.__code__.co_firstlineno + 1})" in str(error)


def test_the_handler_is_asked_about_each_record_of_a_failed_batch() -> None:
    config = {
        **CONFIG,
        "processing.exception.handler": LogAndContinueProcessingExceptionHandler(),
        "errors.dead.letter.queue.topic.name": "letters",
    }
    builder = StreamsBuilder()
    builder.stream("in").map_batches(_fails, max_records=2).to("out")
    with TopologyTestDriver(builder.build(), config, batched=True) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 0), ("c", 1)])
        driver.commit()
        assert driver.create_output_topic("out").read_key_values() == [("c", 1)]
        letters = driver.create_output_topic("letters").read_key_values()
        assert [key for key, _ in letters] == ["a", "b"]
        assert driver.metrics()["dropped-records-total"] == 2


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ([1], "got 2 and returned 1"),
        ([1, 2, 3], "got 2 and returned 3"),
        (None, "returned None"),
        ("ab", "returned str 'ab'"),
        ({"a": 1, "b": 2}, "returned dict"),
        (np.float64(1), "returned float 1.0"),
    ],
)
def test_a_wrong_number_of_results_is_an_error(result: Any, found: str) -> None:
    def score(records: Any) -> Any:
        return result

    with pytest.raises(ProcessingError, match=found) as failed:
        _run(lambda builder: builder.stream("orders").map_batches(score).to("out"), _orders(2))
    assert f"score ({__file__}:" in str(failed.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mapper": lambda key, value: value}, r"mapper must be a function \(records\)"),
        ({"mapper": 3}, r"mapper must be a function \(records\)"),
        ({"mapper": len, "max_records": 0}, "max_records must be a whole number, at least 1; found int 0"),
        ({"mapper": len, "max_records": 2.5}, "max_records must be a whole number, at least 1; found float 2.5"),
        ({"mapper": len, "schema": {"a": "int"}}, r"schema must be a pyarrow.Schema; found dict"),
    ],
)
def test_wrong_arguments_are_found_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        StreamsBuilder().stream("in").map_batches(**arguments)


def test_a_table_says_how_to_get_there() -> None:
    table: Any = StreamsBuilder().table("in")
    with pytest.raises(AttributeError, match=r"to_stream\(\).map_batches\(…\)"):
        table.map_batches(len)


def test_describe_names_the_node() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_batches(_many).map_batches(_many, name="score").to("out")
    described = str(builder.build().describe())
    assert "Processor: KSTREAM-MAPBATCHES-0000000001 (stores: [])\n      --> score" in described


# From here on: what comes after it sees what it would see with map_values.


class Ticking(Processor[Any, Any, Any, Any]):
    """Forwards each record with the stream time and its place, and every 20 ms of it how many it has seen."""

    def init(self, context: Any) -> None:
        super().init(context)
        self._seen: list[Any] = []
        context.schedule(timedelta(milliseconds=20), PunctuationType.STREAM_TIME, self._tell)

    def process(self, record: Any) -> None:
        self._seen.append(record.value)
        place = self.context.record_metadata
        assert place is not None
        value = [record.value, self.context.current_stream_time_ms(), place.topic, place.offset]
        self.context.forward(record.with_value(value))

    def _tell(self, now_ms: int) -> None:
        self.context.forward(Record("seen", [len(self._seen), now_ms], now_ms))


class Rescheduling(Ticking):
    """Schedules its punctuation with its first record."""

    def init(self, context: Any) -> None:
        Processor.init(self, context)
        self._seen = []

    def process(self, record: Any) -> None:
        if not self._seen:
            self.context.schedule(timedelta(milliseconds=20), PunctuationType.STREAM_TIME, self._tell)
        super().process(record)


def _pair(left: Any, right: Any) -> list[Any]:
    return [left, right]


Mapped = Callable[[Any], Any]
WINDOWS = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=10), timedelta(0))


def _table_join_behind(builder: StreamsBuilder, mapped: Mapped) -> None:
    mapped(builder.stream("orders")).join(builder.table("users"), _pair).to("out")


def _table_join_before(builder: StreamsBuilder, mapped: Mapped) -> None:
    mapped(builder.stream("orders").join(builder.table("users"), lambda order, user: user)).to("out")


def _table_join_on_both_sides(builder: StreamsBuilder, mapped: Mapped) -> None:
    users = builder.table("users")
    mapped(builder.stream("orders").join(users, lambda order, user: user)).join(users, _pair).to("out")


def _table_below_itself(builder: StreamsBuilder, mapped: Mapped) -> None:
    users = builder.table("users")
    mapped(users.to_stream()).left_join(users, _pair).to("out")


def _what_comes_out_is_looked_up_above(builder: StreamsBuilder, mapped: Mapped) -> None:
    orders = builder.stream("orders")
    # The table is made of what map_batches gave, and decides what it gets.
    source = orders.merge(builder.stream("users"))
    builder.add_state_store(_KEPT)
    mapped(source.process_values(Reading, "kept")).process_values(Keeping, "kept").to("out")


def _stream_join(builder: StreamsBuilder, mapped: Mapped) -> None:
    mapped(builder.stream("orders")).outer_join(builder.stream("users"), _pair, windows=WINDOWS).to("out")


def _join_with_itself(builder: StreamsBuilder, mapped: Mapped) -> None:
    orders = builder.stream("orders")
    mapped(orders).join(orders, _pair, windows=WINDOWS).to("out")


def _distinct(builder: StreamsBuilder, mapped: Mapped) -> None:
    orders = mapped(builder.stream("orders")).merge(builder.stream("users"))
    orders.distinct(within=timedelta(milliseconds=15)).to("out")


def _windows(builder: StreamsBuilder, mapped: Mapped) -> None:
    both = mapped(builder.stream("orders")).merge(builder.stream("users"))
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=20))
    counts = both.group_by_key().windowed_by(windows).aggregate(list, lambda key, value, total: [*total, value])
    counts.to_stream(lambda key, value: f"{key.key}@{key.window.start_ms}").to("out")


def _two_paths(builder: StreamsBuilder, mapped: Mapped) -> None:
    orders = builder.stream("orders")
    mapped(orders.filter(lambda key, value: value % 3 == 0)).merge(mapped(orders)).merge(orders).to("out")


def _one_behind_the_other(builder: StreamsBuilder, mapped: Mapped) -> None:
    orders = builder.stream("orders")
    mapped(mapped(orders).merge(builder.stream("users"))).merge(orders).to("out")


def _punctuation(builder: StreamsBuilder, mapped: Mapped) -> None:
    mapped(builder.stream("orders")).merge(builder.stream("users")).process(Ticking).to("out")


def _punctuation_that_a_record_schedules(builder: StreamsBuilder, mapped: Mapped) -> None:
    mapped(builder.stream("orders")).merge(builder.stream("users")).process(Rescheduling).to("out")


def _punctuation_between_records_that_are_left_out(builder: StreamsBuilder, mapped: Mapped) -> None:
    mapped(builder.stream("orders").filter(lambda key, value: value % 5 == 1)).process(Rescheduling).to("out")


def _time_to_live(builder: StreamsBuilder, mapped: Mapped) -> None:
    kept: Materialized[Any, Any] = Materialized("kept", ttl=timedelta(milliseconds=15))
    table = mapped(builder.stream("orders")).merge(builder.stream("users")).to_table(kept)
    table.to_stream().to("out")


_KEPT = Stores.key_value_store_builder(Stores.in_memory_key_value_store("kept"), Serdes.string(), Serdes.long())


class Reading(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        before = self.context.get_state_store("kept").get("last") or 0
        self.context.forward(record.with_value(len(str(record.value)) + before))


class Keeping(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        self.context.get_state_store("kept").put("last", record.value)
        self.context.forward(record)


CASES = [
    _table_join_behind,
    _table_join_before,
    _table_join_on_both_sides,
    _table_below_itself,
    _what_comes_out_is_looked_up_above,
    _stream_join,
    _join_with_itself,
    _distinct,
    _windows,
    _two_paths,
    _one_behind_the_other,
    _punctuation,
    _punctuation_that_a_record_schedules,
    _punctuation_between_records_that_are_left_out,
    _time_to_live,
]
RECORDS: list[Given] = [
    ("users", "u0", "Ada", 0),
    ("orders", "u0", 1, 3),
    ("orders", "u1", 2, 4),
    ("users", "u1", "Bob", 5),
    ("orders", "u1", 3, 9),
    ("orders", "u0", 4, 2),
    ("users", "u0", "Ann", 21),
    ("orders", "u0", 5, 24),
    ("orders", "u0", 6, 24),
    ("users", "u1", "Ben", 45),
    ("orders", "u1", 6, 33),
    ("users", "u0", "Amy", 47),
    ("orders", "u0", 7, 60),
    ("users", "u1", "Bea", 61),
    ("orders", "u1", 8, 40),
]


def _one(value: Any) -> Any:
    return value + 100 if isinstance(value, int) else f"m{value}"


def _many(records: list[FixedKeyRecord[Any, Any]]) -> list[Any]:
    return [_one(each.value) for each in records]


@pytest.mark.parametrize("cache", [0, 1_000_000])
@pytest.mark.parametrize("max_records", [1, 2, 1000])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_result_is_that_of_map_values(
    case: Callable[[StreamsBuilder, Mapped], None], max_records: int, cache: int
) -> None:
    def result(mapped: Mapped) -> list[tuple[Any, Any, int]]:
        return _run(lambda builder: case(builder, mapped), RECORDS, cache=cache)

    wanted = result(lambda stream: stream.map_values(_one))
    found = result(lambda stream: stream.map_batches(_many, max_records=max_records))
    assert found == wanted
    assert wanted, "a case without results shows nothing"


@pytest.mark.parametrize("batched", [True, False])
def test_a_punctuation_that_the_last_record_schedules_is_called_for_it(batched: bool) -> None:  # noqa: FBT001 - pytest
    def build(builder: StreamsBuilder) -> None:
        _punctuation_that_a_record_schedules(builder, lambda stream: stream.map_batches(_many))

    rows = _run(build, [("orders", "a", 1, 30)], batched=batched)
    assert rows == [("a", [101, 30, "orders", 0], 30), ("seen", [1, 30], 30)]


def test_tables_that_are_looked_up_above_do_not_cut_batches() -> None:
    assert _sizes(
        lambda builder, seen: _table_join_before(builder, lambda stream: stream.map_batches(seen)), RECORDS
    ) == [8]


def test_a_row_that_is_looked_up_on_both_sides_ends_a_batch_when_it_changes() -> None:
    sizes = _sizes(
        lambda builder, seen: _table_join_on_both_sides(builder, lambda stream: stream.map_batches(seen)), RECORDS
    )
    # By time: Ada, 1 (2 has no user), Bob, 3, 4, Ann, 5, 6, 6, Ben, Amy, 7, 8 (late), Bea.
    assert sizes == [1, 2, 3, 2]


def test_a_loop_through_a_store_has_batches_of_one() -> None:
    seen = Seen([])
    _run(
        lambda builder: _what_comes_out_is_looked_up_above(builder, lambda stream: stream.map_batches(seen)),
        [("orders", "a", number, number) for number in range(3)],
    )
    assert seen.batches == [[1], [3], [7]]


def test_batches_end_when_very_many_other_records_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.runtime.waiting_calls.MOST_CALLS", 5)

    def build(builder: StreamsBuilder, seen: Seen) -> None:
        builder.stream("orders").filter(lambda key, value: value == 0).map_batches(seen).to("out")
        builder.stream("orders").to("out")

    # Each order waits for the sink, so the two that are for the batch never meet.
    assert _sizes(build, [("orders", "a", min(number % 6, 1), number) for number in range(12)]) == [1, 1]
