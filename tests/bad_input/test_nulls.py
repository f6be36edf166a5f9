"""Keys and values that are None, by operator: passed, dropped and counted, or used, as in Kafka Streams."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from headrace import (
    Grouped,
    JoinWindows,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    TopologyTestDriver,
)
from headrace.errors import ProcessingError

SECOND = timedelta(seconds=1)
WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)
Build = Callable[[StreamsBuilder], Any]


class Case(NamedTuple):
    """What comes out (as text), and how many are dropped, for a record without key and for one without value."""

    build: Build
    without_key: list[str]
    drops_without_key: int
    without_value: list[str]
    drops_without_value: int


class Forward(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


def add(_key: Any, _value: Any, total: int) -> int:
    return total + 1


def join(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def stream(build: Callable[[Any], Any]) -> Build:
    return lambda b: build(b.stream("in")).to("out")


def windowed(windows: Any) -> Build:
    def build(b: StreamsBuilder) -> None:
        grouped: Any = b.stream("in").group_by_key().windowed_by(windows)
        extra = (add,) if isinstance(windows, SessionWindows) else ()
        grouped.aggregate(int, add, *extra).to_stream(lambda key, _value: key.key).to("out")

    return build


def table(build: Callable[[Any], Any]) -> Build:
    return lambda b: build(b.table("in", materialized=Materialized("in"))).to_stream().to("out")


PASS = (["None=1"], 0, ["k=None"], 0)
CASES: dict[str, Case] = {
    "filter": Case(stream(lambda s: s.filter(lambda _k, _v: True)), *PASS),
    "map": Case(stream(lambda s: s.map(lambda k, v: (k, v))), *PASS),
    "map_values": Case(stream(lambda s: s.map_values(lambda v: v)), *PASS),
    "flat_map": Case(stream(lambda s: s.flat_map(lambda k, v: [(k, v)])), *PASS),
    "map_batches": Case(stream(lambda s: s.map_batches(lambda records: [each.value for each in records])), *PASS),
    "flat_map_values": Case(stream(lambda s: s.flat_map_values(lambda v: [v])), *PASS),
    "select_key": Case(stream(lambda s: s.select_key(lambda k, _v: k)), *PASS),
    "peek": Case(stream(lambda s: s.peek(lambda _k, _v: None)), *PASS),
    "process": Case(stream(lambda s: s.process(Forward)), *PASS),
    "merge": Case(lambda b: b.stream("in").merge(b.stream("other")).to("out"), *PASS),
    # What has no key cannot be partitioned by it; that it is left out is not counted.
    "repartition": Case(stream(lambda s: s.repartition()), [], 0, ["k=None"], 0),
    "to_table": Case(stream(lambda s: s.to_table().to_stream()), [], 1, ["k=None"], 0),
    "table": Case(table(lambda t: t), [], 1, ["k=None"], 0),
    # A row that was not there before either needs no tombstone.
    "table filter": Case(table(lambda t: t.filter(lambda _k, _v: 1 // 0)), [], 1, [], 0),
    "table map_values": Case(table(lambda t: t.map_values(lambda _v: 1 // 0)), [], 1, ["k=None"], 0),
    "count": Case(stream(lambda s: s.group_by_key().count().to_stream().map_values(str)), [], 1, [], 1),
    "reduce": Case(stream(lambda s: s.group_by_key().reduce(join).to_stream()), [], 1, [], 1),
    "aggregate": Case(stream(lambda s: s.group_by_key().aggregate(int, add).to_stream()), [], 1, [], 1),
    "group_by": Case(
        stream(lambda s: s.group_by(lambda k, _v: k, Grouped("g")).aggregate(int, add).to_stream()), [], 0, [], 1
    ),
    "tumbling": Case(windowed(TimeWindows.of_size_with_no_grace(SECOND)), [], 1, ["k=1"], 0),
    "hopping": Case(windowed(TimeWindows.of_size_with_no_grace(2 * SECOND).advance_by(SECOND)), [], 1, ["k=1"], 0),
    "sliding": Case(windowed(SlidingWindows.of_time_difference_with_no_grace(SECOND)), [], 1, [], 1),
    "session": Case(windowed(SessionWindows.of_inactivity_gap_with_no_grace(SECOND)), [], 1, ["k=1"], 0),
    "stream-stream join": Case(lambda b: _streams(b, "join"), [], 1, [], 1),
    "stream-stream left_join": Case(lambda b: _streams(b, "left_join"), ["None=1+None"], 0, [], 1),
    "stream-stream outer_join": Case(lambda b: _streams(b, "outer_join"), ["None=1+None"], 0, [], 1),
    "stream-table join": Case(lambda b: b.stream("in").join(b.table("other"), join).to("out"), [], 1, [], 1),
    "stream-table left_join": Case(
        lambda b: b.stream("in").left_join(b.table("other"), join).to("out"), ["None=1+None"], 0, [], 1
    ),
    "stream-global join": Case(lambda b: _global(b, "join"), [], 1, [], 1),
    "stream-global left_join": Case(lambda b: _global(b, "left_join"), ["None=1+None"], 0, [], 1),
    "table-table join": Case(lambda b: b.table("in").join(b.table("other"), join).to_stream().to("out"), [], 1, [], 0),
    "foreign-key join": Case(lambda b: _foreign(b, "join"), [], 1, [], 0),
    "foreign-key left_join": Case(lambda b: _foreign(b, "left_join"), [], 1, [], 0),
}


def _streams(b: StreamsBuilder, method: str) -> None:
    getattr(b.stream("in"), method)(b.stream("other"), join, windows=WITHIN).to("out")


def _global(b: StreamsBuilder, method: str) -> None:
    getattr(b.stream("in"), method)(b.global_table("other"), join, key_selector=lambda k, _v: k).to("out")


def _foreign(b: StreamsBuilder, method: str) -> None:
    getattr(b.table("in"), method)(b.table("other"), join, foreign_key=lambda v: v).to_stream().to("out")


def run(build: Build, *records: tuple[str, Any, Any]) -> tuple[list[str], float]:
    builder = StreamsBuilder()
    build(builder)
    config = StreamsConfig(statestore_cache_max_bytes=0)
    with TopologyTestDriver(builder.build(), config, initial_wall_clock_ms=0) as driver:
        for topic, key, value in records:
            driver.create_input_topic(topic).pipe_input(key, value, timestamp_ms=5)
        out = driver.create_output_topic("out").read_key_values()
        return [f"{key}={value}" for key, value in out], driver.metrics()["dropped-records-total"]


@pytest.mark.parametrize("operator", CASES)
def test_a_record_without_a_key(operator: str) -> None:
    case = CASES[operator]
    assert run(case.build, ("in", None, 1)) == (case.without_key, case.drops_without_key)


@pytest.mark.parametrize("operator", CASES)
def test_a_record_without_a_value(operator: str) -> None:
    case = CASES[operator]
    assert run(case.build, ("in", "k", None)) == (case.without_value, case.drops_without_value)


@pytest.mark.parametrize(("method", "expected"), [("join", []), ("left_join", ["k=1+None"])])
def test_a_foreign_key_that_is_none(method: str, expected: list[str]) -> None:
    def build(b: StreamsBuilder) -> None:
        getattr(b.table("in"), method)(b.table("other"), join, foreign_key=lambda _v: None).to_stream().to("out")

    dropped = 1 if method == "join" else 0
    assert run(build, ("in", "k", 1)) == (expected, dropped)


def test_a_join_of_tables_turns_a_tombstone_into_one() -> None:
    def build(b: StreamsBuilder) -> None:
        b.table("in").join(b.table("other"), join).to_stream().to("out")

    records = [("other", "k", 2), ("in", "k", 1), ("in", "k", None), ("in", None, 1)]
    assert run(build, *records) == (["k=1+2", "k=None"], 1)


def test_a_key_selector_that_gives_none_finds_no_row_of_a_global_table() -> None:
    def build(b: StreamsBuilder) -> None:
        b.stream("in").join(b.global_table("other"), join, key_selector=lambda _k, _v: None).to("out")

    assert run(build, ("other", "k", 2), ("in", "k", 1)) == ([], 1)


def test_a_pair_that_is_none_stops_a_map() -> None:
    nothing: Any = lambda _k, _v: None  # noqa: E731
    with pytest.raises(ProcessingError, match="map needs a pair"):
        run(stream(lambda s: s.map(nothing)), ("in", None, None))
