"""Tables whose rows have a time to live: what expires, when, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import (
    Grouped,
    Materialized,
    Processor,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    ValueAndTimestamp,
)
from headrace.runtime.row_expiry import AT_ONCE
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Row, Step, config, pair, run

TTL_MS = 10
TTL = timedelta(milliseconds=TTL_MS)
Build = Callable[[StreamsBuilder], None]


def _table(builder: StreamsBuilder, topic: str = "in", **option: Any) -> Any:
    return builder.table(topic, materialized=Materialized(f"{topic}-rows", ttl=TTL, caching=False, **option))


def _to_out(builder: StreamsBuilder) -> None:
    _table(builder).to_stream().to("out")


def _steps(*records: tuple[str | None, str | None, int], topic: str = "in") -> list[Step]:
    return [Step(topic, key, value, time_ms) for key, value, time_ms in records]


def test_row_is_deleted_before_the_record_that_moves_stream_time_to_its_deadline() -> None:
    steps = _steps(("a", "1", 0), ("b", "2", 9), ("c", "3", 10), ("d", "4", 19))
    assert run(_to_out, steps).steps == [
        [("a", "1", 0)],
        [("b", "2", 9)],
        [("a", None, 10), ("c", "3", 10)],
        [("b", None, 19), ("d", "4", 19)],
    ]


def test_rows_go_by_deadline_and_then_by_key() -> None:
    steps = _steps(("b", "x", 1), ("a", "x", 1), ("c", "x", 0), ("z", "now", 100))
    assert run(_to_out, steps).steps[-1] == [
        ("c", None, 10),
        ("a", None, 11),
        ("b", None, 11),
        ("z", "now", 100),
    ]


def test_update_makes_a_row_live_longer() -> None:
    steps = _steps(("a", "1", 0), ("a", "2", 8), ("z", "x", 12), ("z", "x", 18))
    assert run(_to_out, steps).steps[2:] == [[("z", "x", 12)], [("a", None, 18), ("z", "x", 18)]]


def test_older_record_replaces_the_row_and_its_deadline() -> None:
    steps = _steps(("a", "new", 8), ("a", "old", 3), ("z", "x", 13))
    assert run(_to_out, steps).steps == [[("a", "new", 8)], [("a", "old", 3)], [("a", None, 13), ("z", "x", 13)]]


def test_deleted_row_does_not_expire() -> None:
    steps = _steps(("a", "1", 0), ("a", None, 5), ("z", "x", 50))
    assert run(_to_out, steps).steps[-1] == [("z", "x", 50)]


def test_row_of_a_record_that_is_too_old_goes_before_the_next_record() -> None:
    steps = _steps(("z", "x", 50), ("a", "old", 0), ("z", "y", 50), ("z", "y", 51))
    assert run(_to_out, steps).steps[1:] == [
        [("a", "old", 0)],
        [("a", None, 10), ("z", "y", 50)],
        [("z", "y", 51)],
    ]


def test_other_inputs_of_the_task_move_its_stream_time() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("clicks").left_join(_table(builder, "users"), pair).to("out")

    steps = [Step("users", "u", "Ada", 0), Step("clicks", "u", "1", 9), Step("clicks", "u", "2", 10)]
    assert run(build, steps).steps == [[], [("u", "1,Ada", 9)], [("u", "2,null", 10)]]


def test_aggregate_begins_anew_after_its_row_has_expired() -> None:
    def build(builder: StreamsBuilder) -> None:
        kept: Materialized[Any, Any] = Materialized("counts", value_serde=Serdes.long(), ttl=TTL, caching=False)
        counts = builder.stream("in").group_by_key().count(materialized=kept)
        counts.to_stream().map_values(lambda count: None if count is None else str(count)).to("out")

    steps = _steps(("a", "x", 0), ("a", "x", 3), ("a", "x", 12), ("a", "x", 22))
    assert run(build, steps).steps == [
        [("a", "1", 0)],
        [("a", "2", 3)],
        [("a", "3", 12)],
        [("a", None, 22), ("a", "1", 22)],
    ]


@pytest.mark.parametrize("caching", [True, False])
def test_reduce_and_aggregate_expire_with_and_without_a_cache(*, caching: bool) -> None:
    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        reduced = grouped.reduce(
            lambda old, new: old + new, Materialized("reduced", value_serde=STRING, ttl=TTL, caching=caching)
        )
        joined = grouped.aggregate(
            str,
            lambda key, value, text: text + value,
            Materialized("joined", value_serde=STRING, ttl=TTL, caching=caching),
        )
        reduced.to_stream().merge(joined.to_stream()).to("out")

    steps = _steps(("a", "x", 0), ("a", "y", 5), ("z", "t", 15))
    rows = run(build, steps, config(cache=1_000_000)).steps[-1]
    assert sorted(rows, key=str) == [("a", None, 15), ("a", None, 15), ("z", "t", 15), ("z", "t", 15)]


def test_expired_row_is_taken_out_of_the_aggregate_that_has_it() -> None:
    def build(builder: StreamsBuilder) -> None:
        by_city = _table(builder, "users").group_by(lambda key, city: (city, key), Grouped(None, STRING, STRING))
        counts = by_city.count(Materialized("per-city", value_serde=Serdes.long(), caching=False))
        counts.to_stream().map_values(str).to("out")

    steps = _steps(("u1", "Rome", 0), ("u2", "Rome", 5), ("u3", "Oslo", 12), topic="users")
    assert run(build, steps).steps == [[("Rome", "1", 0)], [("Rome", "2", 5)], [("Rome", "1", 10), ("Oslo", "1", 12)]]


def test_expired_row_is_taken_out_of_joins_of_tables() -> None:
    def build(builder: StreamsBuilder) -> None:
        left, right = _table(builder, "L"), builder.table("R", materialized=Materialized("R-rows", caching=False))
        left.outer_join(right, pair).to_stream().to("out")

    steps = [Step("L", "a", "l", 0), Step("R", "a", "r", 5), Step("R", "z", "x", 20)]
    assert run(build, steps).steps == [
        [("a", "l,null", 0)],
        [("a", "l,r", 5)],
        [("a", "null,r", 10), ("z", "null,x", 20)],
    ]


def test_expired_row_is_taken_out_of_joins_by_foreign_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        orders, users = builder.table("orders"), _table(builder, "users")
        orders.left_join(users, pair, foreign_key=lambda order: order).to_stream().to("out")

    steps = [Step("users", "u", "Ada", 0), Step("orders", "o", "u", 5), Step("users", "z", "x", 10)]
    assert run(build, steps).rows == [("o", "u,Ada", 5), ("o", "u,null", 10)]


@pytest.mark.parametrize("method", ["filter", "map_values", "join", "foreign_key"])
def test_derived_tables_can_have_a_time_to_live_of_their_own(method: str) -> None:
    kept: Materialized[Any, Any] = Materialized("derived", value_serde=STRING, ttl=TTL, caching=False)

    def build(builder: StreamsBuilder) -> None:
        table, other = builder.table("in"), builder.table("other")
        derived: dict[str, Callable[[], Any]] = {
            "filter": lambda: table.filter(lambda key, value: True, kept),
            "map_values": lambda: table.map_values(str, kept),
            "join": lambda: table.left_join(other, lambda value, _: value, kept),
            "foreign_key": lambda: table.left_join(
                other, lambda value, _: value, kept, foreign_key=lambda value: value
            ),
        }
        derived[method]().to_stream().to("out")

    steps = _steps(("a", "1", 0), ("z", "2", 10))
    assert run(build, steps).steps == [[("a", "1", 0)], [("a", None, 10), ("z", "2", 10)]]


def test_unnamed_table_with_a_time_to_live_keeps_its_rows() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").to_table(Materialized(ttl=TTL)).to_stream().to("out")

    steps = _steps(("a", "1", 0), ("z", "2", 10))
    assert run(build, steps).rows == [("a", "1", 0), ("a", None, 10), ("z", "2", 10)]


def test_cogroup_sends_each_expired_row_on_once() -> None:
    def build(builder: StreamsBuilder) -> None:
        first, second = builder.stream("in").group_by_key(), builder.stream("other").group_by_key()
        both = first.cogroup(lambda key, value, text: text + value).cogroup(
            second, lambda key, value, text: text + value.upper()
        )
        kept: Materialized[Any, Any] = Materialized("both", value_serde=STRING, ttl=TTL, caching=False)
        both.aggregate(str, kept).to_stream().to("out")

    steps = [Step("in", "a", "x", 0), Step("other", "a", "y", 1), Step("other", "b", "z", 11)]
    assert run(build, steps).steps[-1] == [("a", None, 11), ("b", "Z", 11)]


def test_stores_with_the_same_clock_expire_by_deadline() -> None:
    def build(builder: StreamsBuilder) -> None:
        short = builder.table("in", materialized=Materialized("short", ttl=TTL, caching=False))
        long = builder.table("other", materialized=Materialized("long", ttl=2 * TTL, caching=False))
        short.to_stream().merge(long.to_stream()).to("out")

    steps = [
        Step("in", "a", "1", 5),
        Step("other", "b", "1", 0),
        Step("in", "c", "1", 8),
        Step("other", "z", "now", 100),
    ]
    assert run(build, steps).steps[-1] == [("a", None, 15), ("c", None, 18), ("b", None, 20), ("z", "now", 100)]


class Keep(Processor[str, str, str, str]):
    def init(self, context: Any) -> None:
        super().init(context)
        self.rows = context.get_state_store("rows")

    def process(self, record: Any) -> None:
        if record.value is not None:
            self.rows.put(record.key, ValueAndTimestamp(record.value, record.timestamp_ms))
        found = [key for key, _ in self.rows.all()]
        self.context.forward(record.with_value(",".join(found)))


def test_stores_of_processors_expire_silently() -> None:
    def build(builder: StreamsBuilder) -> None:
        supplier = Stores.in_memory_key_value_store("rows")
        rows = Stores.timestamped_key_value_store_builder(supplier, STRING, STRING).with_ttl(TTL)
        builder.add_state_store(rows).stream("in").process(Keep, "rows").to("out")

    steps = _steps(("a", "1", 0), ("b", "1", 5), ("z", None, 12))
    assert run(build, steps).rows == [("a", "a", 0), ("b", "a,b", 5), ("z", "b", 12)]


def test_wall_clock_deletes_rows_while_no_records_come() -> None:
    builder = StreamsBuilder()
    _table(builder, by="wall_clock").to_stream().to("out")
    with TopologyTestDriver(builder.build(config()), config(), initial_wall_clock_ms=0) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("a", "1", timestamp_ms=4)
        output = driver.create_output_topic("out", STRING, STRING)
        driver.create_input_topic("in", STRING, STRING).pipe_input("b", "1", timestamp_ms=900)
        driver.advance_wall_clock_time(timedelta(milliseconds=13))
        assert [(record.key, record.value) for record in output.read_records()] == [("a", "1"), ("b", "1")]
        driver.advance_wall_clock_time(timedelta(milliseconds=1))
        rows: list[Any] = [(record.key, record.value, record.timestamp_ms) for record in output.read_records()]
        assert rows == [("a", None, 14)]


def test_wall_clock_deletes_some_rows_at_a_tick_and_a_record_finds_none_that_is_over() -> None:
    builder = StreamsBuilder()
    kept: Materialized[Any, Any] = Materialized(
        "counts", value_serde=Serdes.long(), ttl=TTL, by="wall_clock", caching=False
    )
    builder.stream("in").group_by_key().count(kept).to_stream().to("out")
    with TopologyTestDriver(builder.build(config()), config(), initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        output = driver.create_output_topic("out", STRING, Serdes.long())
        names = [f"k{number:05}" for number in range(AT_ONCE + 10)]
        for name in names:
            topic.pipe_input(name, "x", timestamp_ms=0)
        output.read_records()
        driver.advance_wall_clock_time(TTL)
        assert [record.key for record in output.read_records()] == names[:AT_ONCE]
        topic.pipe_input(names[-1], "x", timestamp_ms=5)
        assert output.read_key_values() == [(names[-1], None), (names[-1], 1)]
        driver.advance_wall_clock_time(timedelta(0))
        assert [record.key for record in output.read_records()] == names[AT_ONCE:-1]
        assert driver.metrics()["expired-rows-total"] == AT_ONCE + 10


def test_jump_of_stream_time_deletes_some_rows_and_one_more_for_each_millisecond() -> None:
    builder = StreamsBuilder()
    _to_out(builder)
    rows = 2 * AT_ONCE
    last = f"k{rows - 1:05}"
    with TopologyTestDriver(builder.build(config()), config(), batched=True, initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        output = driver.create_output_topic("out", STRING, STRING)
        for number in range(rows):
            topic.pipe_input(f"k{number:05}", "x", timestamp_ms=0)
        topic.pipe_input("jump", "x", timestamp_ms=1_000_000)
        driver.commit()
        assert [record.key for record in output.read_records()][rows:] == [
            *(f"k{number:05}" for number in range(AT_ONCE)),
            "jump",
        ]
        topic.pipe_input("jump", "x", timestamp_ms=1_000_003)
        topic.pipe_input(last, None, timestamp_ms=1_000_003)
        driver.commit()
        # One row has come in with the jump, and three milliseconds have gone by; the last row is used before its turn.
        assert output.read_key_values() == [
            *((f"k{number:05}", None) for number in range(AT_ONCE, AT_ONCE + 4)),
            ("jump", "x"),
            (last, None),
            (last, None),
        ]


def test_table_that_gains_rows_loses_them_as_fast() -> None:
    builder = StreamsBuilder()
    _to_out(builder)
    with TopologyTestDriver(builder.build(config()), config(), batched=True, initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for number in range(20_000):
            topic.pipe_input(f"k{number}", "x", timestamp_ms=number // 100)
        driver.commit()
        live = driver.get_key_value_store("in-rows").approximate_num_entries()
    # A hundred rows come in each millisecond and live for ten.
    assert live <= 100 * (TTL_MS + 1)


def test_expired_rows_are_deleted_in_the_changelog() -> None:
    builder = StreamsBuilder()
    _table(builder).to_stream().to("out")
    with TopologyTestDriver(builder.build(config()), config(), initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("a", "1", timestamp_ms=0)
        topic.pipe_input("z", "2", timestamp_ms=10)
        changelog = driver.create_output_topic("test-in-rows-changelog", STRING, STRING)
        assert changelog.read_key_values() == [("a", "1"), ("a", None), ("z", "2")]


def test_optimised_table_with_a_time_to_live_has_a_changelog_of_its_own() -> None:
    builder = StreamsBuilder()
    _table(builder).to_stream().to("out")
    optimised = builder.build(config(topology_optimization="all"))
    assert optimised.changelog_topics("test") == {"in-rows": "test-in-rows-changelog"}


def test_store_on_disk_goes_on_after_a_restart_and_gets_its_index_when_it_had_none(tmp_path: Path) -> None:
    def topology(*, ttl: bool) -> Any:
        builder = StreamsBuilder()
        kept: Materialized[Any, Any] = Materialized("rows", caching=False, store_type="disk")
        table = builder.table("in", materialized=replace(kept, ttl=TTL) if ttl else kept)
        table.to_stream().to("out")
        return builder.build(config())

    given: list[list[Row]] = []
    runs: list[tuple[bool, list[tuple[str, str, int]]]] = [
        (False, [("a", "1", 0), ("b", "1", 3)]),
        (True, [("c", "1", 12)]),
        (True, [("d", "1", 22)]),
        (True, [("e", "1", 23)]),
    ]
    for ttl, records in runs:
        with TopologyTestDriver(topology(ttl=ttl), config(), initial_wall_clock_ms=0, state_dir=tmp_path) as driver:
            topic = driver.create_input_topic("in", STRING, STRING)
            for key, value, time_ms in records:
                topic.pipe_input(key, value, timestamp_ms=time_ms)
            rows = driver.create_output_topic("out", STRING, STRING).read_records()
            given.append([(record.key, record.value, record.timestamp_ms or 0) for record in rows])
    assert given[1:] == [
        [("a", None, 10), ("c", "1", 12)],
        [("b", None, 13), ("c", None, 22), ("d", "1", 22)],
        [("e", "1", 23)],
    ]


def _model(records: Sequence[tuple[str, str | None, int]]) -> list[Row]:
    """A table that looks at all of its rows before each record."""
    rows: dict[str, tuple[str, int]] = {}
    out: list[Row] = []
    stream_time_ms = -1
    for key, value, time_ms in records:
        stream_time_ms = max(stream_time_ms, time_ms)
        over = sorted((at_ms, each) for each, (_, at_ms) in rows.items() if at_ms + TTL_MS <= stream_time_ms)
        for at_ms, each in over:
            del rows[each]
            out.append((each, None, at_ms + TTL_MS))
        rows.pop(key, None)
        if value is not None:
            rows[key] = (value, time_ms)
        out.append((key, value, time_ms))
    return out


_RECORD = st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "y", None]), st.integers(0, 60))
RECORDS = st.lists(_RECORD, max_size=40).flatmap(
    lambda records: st.sampled_from([records, sorted(records, key=lambda record: record[2])])
)


@settings(deadline=None)
@given(RECORDS, st.lists(st.integers(1, 5), min_size=1))
def test_any_records_expire_as_in_a_plain_model_wherever_batches_end(
    records: list[tuple[str, str | None, int]], sizes: list[int]
) -> None:
    expected = _model(records)
    assert run(_to_out, _steps(*records)).rows == expected
    builder = StreamsBuilder()
    _to_out(builder)
    with TopologyTestDriver(builder.build(config()), config(), batched=True, initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for place, (key, value, time_ms) in enumerate(records, 1):
            topic.pipe_input(key, value, timestamp_ms=time_ms)
            if place % sizes[place % len(sizes)] == 0:
                driver.commit()
        driver.commit()
        rows = driver.create_output_topic("out", STRING, STRING).read_records()
        assert [(record.key, record.value, record.timestamp_ms) for record in rows] == expected
        assert driver.metrics()["expired-rows-total"] == len(expected) - len(records)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"ttl": timedelta(0)}, "Materialized: ttl must be longer than 0; found 0:00:00; leave it out"),
        ({"ttl": 5}, "Materialized: ttl must be a timedelta, got int 5"),
        ({"ttl": TTL, "by": "event_time"}, "Materialized: by must be 'stream_time' or 'wall_clock'; found str 'event_"),
        ({"by": "wall_clock"}, "by says which clock ttl goes by; found by='wall_clock' without a ttl; give both"),
    ],
)
def test_wrong_times_to_live_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        Materialized("rows", **option)


def _windowed(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(TTL)).count(
        Materialized("rows", ttl=TTL)
    )


def _sessions(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(TTL)).count(
        Materialized("rows", ttl=TTL)
    )


def _grouped_table(builder: StreamsBuilder) -> None:
    builder.table("in").group_by(lambda key, value: (value, key)).count(Materialized("rows", ttl=TTL))


def _global_table(builder: StreamsBuilder) -> None:
    builder.global_table("in", materialized=Materialized("rows", ttl=TTL))


def _unnamed(builder: StreamsBuilder) -> None:
    builder.table("in").filter(lambda key, value: True, Materialized(ttl=TTL))


def _versioned(builder: StreamsBuilder) -> None:
    builder.table("in", materialized=Materialized(Stores.persistent_versioned_key_value_store("rows", TTL), ttl=TTL))
    builder.build()


def _lru(builder: StreamsBuilder) -> None:
    builder.table("in", materialized=Materialized(Stores.lru_map("rows", 5), ttl=TTL))
    builder.build()


def _plain(builder: StreamsBuilder) -> None:
    Stores.key_value_store_builder(Stores.in_memory_key_value_store("rows")).with_ttl(TTL)


def _untimed(builder: StreamsBuilder) -> None:
    builder.table("in", materialized=Materialized(Stores.persistent_key_value_store("rows"), ttl=TTL))
    builder.build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (_windowed, r"store 'rows': windows cannot have a time to live; .*\(retention=…\) says how long"),
        (_sessions, r"store 'rows': windows cannot have a time to live; .*\(retention=…\) says how long"),
        (_grouped_table, "the aggregate of a table cannot have a time to live; .* give the table before it a ttl"),
        (_global_table, r"global_table\(\): the rows of a global table, .* cannot have a time to live"),
        (_unnamed, "rows that no store keeps cannot have a time to live; .* name one"),
        (_versioned, "store 'rows': a time to live needs .* found a versioned store; it has a history retention"),
        (_lru, "found a store that evicts rows by their number; limit it by time or by number"),
        (_plain, "found a key-value store; take Stores.timestamped_key_value_store_builder"),
        (_untimed, "found a store on disk without them; take Stores.persistent_timestamped_key_value_store"),
    ],
)
def test_rows_that_cannot_have_a_time_to_live_are_refused(build: Build, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        build(StreamsBuilder())
