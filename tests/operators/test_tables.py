"""Tables from topics and streams, and the tables derived from them row by row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

import pytest

from headrace import (
    Headers,
    KTable,
    Materialized,
    ProcessingError,
    PunctuationType,
    Serdes,
    SerializationError,
    Stores,
    StreamsBuilder,
    ValueTransformerContext,
    ValueTransformerWithKey,
    with_key,
)
from headrace.handlers import LogAndContinueProcessingExceptionHandler
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, pair, run

UPDATES = (
    Step("in", "k", "a", 0),
    Step("in", "k", "b", 1),
    Step("in", "k", "b", 2),
    Step("in", "k", None, 3),
    Step("in", "k", None, 4),
    Step("in", "k", "ab", 5),
    Step("in", "j", "b", 6),
    Step("in", "j", None, 7),
    Step("in", None, "a", 8),
)


def _derived(
    derive: Callable[[KTable[str, str]], KTable[str, str]], materialized: Materialized[str, str] | None = None
) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        derive(builder.table("in", materialized=materialized)).to_stream().to("out")

    return build


def has_a(key: str, value: str) -> bool:
    return "a" in value


@pytest.mark.parametrize("to_table", [False, True])
def test_table_takes_every_update_and_drops_null_keys(to_table: bool) -> None:  # noqa: FBT001
    def build(builder: StreamsBuilder) -> None:
        table = builder.stream("in").to_table() if to_table else builder.table("in")
        table.to_stream().to("out")

    result = run(build, UPDATES)
    assert result.rows == [(step.key, step.value, step.timestamp_ms) for step in UPDATES[:-1]]
    assert result.dropped == 1


def test_out_of_order_update_overwrites() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized("rows"))
    settings = config()
    with TopologyTestDriver(builder.build(settings), settings) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("k", "late", timestamp_ms=9)
        topic.pipe_input("k", "early", timestamp_ms=3)
        row = driver.get_timestamped_key_value_store("rows").get("k")
    assert row == ("early", 3)


def test_filter_without_stores_sends_a_tombstone_for_every_miss() -> None:
    assert run(_derived(lambda table: table.filter(has_a)), UPDATES).rows == [
        ("k", "a", 0),
        ("k", None, 1),
        ("k", None, 2),
        ("k", None, 3),
        ("k", None, 4),
        ("k", "ab", 5),
        ("j", None, 6),
        ("j", None, 7),
    ]


def test_filter_of_a_stored_table_sends_a_tombstone_only_for_a_row_that_was_there() -> None:
    expected = [("k", "a", 0), ("k", None, 1), ("k", "ab", 5)]
    stored: Materialized[str, str] = Materialized("rows")
    assert run(_derived(lambda table: table.filter(has_a), materialized=stored), UPDATES).rows == expected
    both = _derived(lambda table: table.filter(has_a, materialized=Materialized("kept")), materialized=stored)
    assert run(both, UPDATES).rows == expected


def test_filter_not_keeps_the_others() -> None:
    stored: Materialized[str, str] = Materialized("rows")
    assert run(_derived(lambda table: table.filter_not(has_a), materialized=stored), UPDATES).rows == [
        ("k", "b", 1),
        ("k", "b", 2),
        ("k", None, 3),
        ("j", "b", 6),
        ("j", None, 7),
    ]


@pytest.mark.parametrize("stored", [False, True])
def test_map_values_forwards_every_update_and_never_maps_a_tombstone(stored: bool) -> None:  # noqa: FBT001
    mapped: Materialized[str, str] | None = Materialized("mapped", value_serde=STRING) if stored else None
    build = _derived(lambda table: table.map_values(with_key(lambda key, value: key + value), materialized=mapped))
    expected = [
        (step.key, None if step.value is None else f"{step.key}{step.value}", step.timestamp_ms)
        for step in UPDATES[:-1]
    ]
    assert run(build, UPDATES).rows == expected


class Describe(ValueTransformerWithKey[str, str, str]):
    """Counts the rows it has seen in the store "seen", and describes deleted ones, too."""

    def transform(self, key: str, value: str | None) -> str | None:
        seen = self.context.get_state_store("seen")
        count = int(seen.get("rows") or "0") + 1
        seen.put("rows", str(count))
        return f"{key}={value}#{count}"


def _with_store(builder: StreamsBuilder) -> None:
    supplier = Stores.in_memory_key_value_store("seen")
    builder.add_state_store(Stores.key_value_store_builder(supplier, STRING, STRING))


def test_transform_values_sees_tombstones_and_its_stores() -> None:
    def build(builder: StreamsBuilder) -> None:
        _with_store(builder)
        builder.table("in").transform_values(Describe, "seen").to_stream().to("out")

    assert run(build, [Step("in", "k", "a", 0), Step("in", "k", None, 1)]).rows == [
        ("k", "k=a#1", 0),
        ("k", "k=None#2", 1),
    ]


def test_transform_values_cannot_forward() -> None:
    class Forwards(ValueTransformerWithKey[str, str, str]):
        def transform(self, key: str, value: str | None) -> str | None:
            self.context.forward("record")  # type: ignore[attr-defined] # that there is no such method is the point
            return value

    with pytest.raises(ProcessingError):
        run(_derived(lambda table: table.transform_values(Forwards)), UPDATES)


def test_join_computes_transformed_rows_when_it_looks_them_up() -> None:
    class Position(ValueTransformerWithKey[str, str, str]):
        def transform(self, key: str, value: str | None) -> str | None:
            known = self.context.record_metadata is not None
            return None if value is None else f"{value}{'!' if known else '?'}"

    def build(builder: StreamsBuilder) -> None:
        table = builder.table("R").transform_values(Position)
        builder.stream("L").join(table, pair).to("out")

    # The row was made by a record that is long gone: there is no position to show.
    assert run(build, [Step("R", "k", "r", 0), Step("L", "k", "l", 1)]).rows == [("k", "l,r?", 1)]


def test_versioned_table_passes_on_out_of_order_updates_and_refuses_those_older_than_its_history() -> None:
    store = Stores.persistent_versioned_key_value_store("rows", timedelta(milliseconds=10))
    build = _derived(lambda table: table.map_values(str.upper), materialized=Materialized(store))
    steps = [Step("in", "k", "a", 20), Step("in", "k", "b", 15), Step("in", "k", "c", 9), Step("in", "k", None, 21)]
    result = run(build, steps)
    assert result.rows == [("k", "A", 20), ("k", "B", 15), ("k", None, 21)]
    assert result.dropped == 1


def test_cache_merges_the_updates_of_one_record() -> None:
    def build(builder: StreamsBuilder) -> None:
        words = builder.stream("in").flat_map_values(lambda value: value.split())
        words.to_table(Materialized("rows", value_serde=STRING)).to_stream().to("out")

    steps = [Step("in", "k", "a b c", 1)]
    assert run(build, steps, config(cache=10_000_000)).rows == [("k", "c", 1)]
    assert run(build, steps).rows == [("k", "a", 1), ("k", "b", 1), ("k", "c", 1)]


@pytest.mark.parametrize("cache", [0, 10_000_000])
def test_value_that_its_store_cannot_write_is_a_failure_of_the_table(cache: int) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").to_table(Materialized("rows", value_serde=Serdes.integer()), name="rows-of-in")

    with pytest.raises(ProcessingError, match="rows-of-in") as caught:
        run(build, [Step("in", "k", "text", 0)], config(cache=cache))
    assert isinstance(caught.value.__cause__, SerializationError)
    resuming = config(cache=cache, processing_exception_handler=LogAndContinueProcessingExceptionHandler())
    assert run(build, [Step("in", "k", "text", 0)], resuming).rows == []


class Stamp(ValueTransformerWithKey[str, str, str]):
    """Adds time and headers of the row at hand, and notes those that a punctuation sees."""

    punctuated: ClassVar[list[tuple[int, Headers]]] = []

    def init(self, context: ValueTransformerContext) -> None:
        super().init(context)
        context.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, self.punctuate)

    def punctuate(self, now_ms: int) -> None:
        self.punctuated.append((self.context.timestamp_ms, self.context.headers))

    def transform(self, key: str, value: str | None) -> str | None:
        return f"{value}@{self.context.timestamp_ms}{[name for name, _ in self.context.headers]}"


@pytest.mark.parametrize("stored", [False, True])
def test_transform_values_knows_time_and_headers_of_the_row(stored: bool) -> None:  # noqa: FBT001
    kept: Materialized[str, str] | None = Materialized("kept", value_serde=STRING) if stored else None
    build = _derived(lambda table: table.transform_values(Stamp, materialized=kept))
    steps = (Step("in", "k", "a", 5, (("h", b"1"),)), Step("in", "j", "b", 3))
    assert run(build, steps).rows == [("k", "a@5['h']", 5), ("j", "b@3[]", 3)]


def test_transform_values_of_a_row_that_a_join_looks_up_knows_its_time_but_no_headers() -> None:
    def build(builder: StreamsBuilder) -> None:
        stamped = builder.table("R", materialized=Materialized("rows")).transform_values(Stamp)
        builder.stream("L").left_join(stamped, pair).to("out")

    steps = (Step("R", "k", "row", 5, (("h", b"1"),)), Step("L", "k", "a", 9), Step("L", "j", "b", 10))
    assert run(build, steps).rows == [("k", "a,row@5[]", 9), ("j", "b,None@-1[]", 10)]


def test_punctuation_of_transform_values_sees_its_own_time_and_no_headers() -> None:
    Stamp.punctuated.clear()
    builder, settings = StreamsBuilder(), config()
    builder.table("in").transform_values(Stamp)
    with TopologyTestDriver(builder.build(settings), settings, initial_wall_clock_ms=0) as driver:
        driver.create_input_topic("in").pipe_input("k", "a", timestamp_ms=5, headers=[("h", b"1")])
        driver.advance_wall_clock_time(timedelta(seconds=1))
    assert Stamp.punctuated == [(1000, ())]
