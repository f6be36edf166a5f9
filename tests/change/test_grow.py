"""Growing: results and rows after 2 → 6 partitions are those of a run that had 6 from the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    BufferConfig,
    EmbeddedLog,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Record,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from headrace.app.description import Description
from headrace.change.grow import grow_application
from headrace.errors import BatchError, IncompatibleTopologyError
from headrace.topics.journal import DurableLog
from tests.change.crashing import Countdown, Crash, crashing_log
from tests.change.kit import Build, Program, Row, read_by_key, write

KEYS = [f"key-{number}" for number in range(40)]
SECOND = timedelta(seconds=1)
INPUTS = ("orders", "users")
# Every change comes out at once: results must not depend on when they are asked for.
SETTINGS: Mapping[str, Any] = {"statestore_cache_max_bytes": 0, "emit_interval": timedelta(0)}


def phase(first: int, last: int) -> dict[str, list[Row]]:
    """Returns records of both inputs at increasing times; every key comes again and again."""
    orders: list[Row] = []
    users: list[Row] = []
    for number in range(first, last):
        key = KEYS[number * 7 % len(KEYS)]
        # Kafka's client takes the time 0 for none.
        time_ms = 1_000 + number * 100
        orders.append((key, {"n": number, "user": KEYS[number * 3 % len(KEYS)]}, time_ms))
        if number % 3 == 0:
            users.append((KEYS[number * 11 % len(KEYS)], {"name": f"u{number}"}, time_ms))
    return {"orders": orders, "users": users}


PHASES = (phase(0, 300), phase(300, 600))
# Every key once more, much later: so time goes on in every partition, and all windows close.
END: dict[str, list[Row]] = {
    topic: [(key, {"n": -1, "user": key, "name": "end"}, 10_000_000) for key in KEYS] for topic in INPUTS
}


def count(builder: StreamsBuilder) -> Any:
    return builder.stream("orders").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


def windows(builder: StreamsBuilder) -> Any:
    hopping = TimeWindows.of_size_and_grace(4 * SECOND, 10 * SECOND).advance_by(SECOND)
    return builder.stream("orders").group_by_key().windowed_by(hopping).count().to_stream().to("out")


def sliding(builder: StreamsBuilder) -> Any:
    windows = SlidingWindows.of_time_difference_and_grace(3 * SECOND, 10 * SECOND)
    return builder.stream("orders").group_by_key().windowed_by(windows).count().to_stream().to("out")


def sessions(builder: StreamsBuilder) -> Any:
    gap = SessionWindows.of_inactivity_gap_and_grace(5 * SECOND, 10 * SECOND)
    return builder.stream("orders").group_by_key().windowed_by(gap).count().to_stream().to("out")


def suppressed(builder: StreamsBuilder) -> Any:
    closing = TimeWindows.of_size_and_grace(20 * SECOND, timedelta(0))
    table = builder.stream("orders").group_by_key().windowed_by(closing).count()
    return table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("out")


def limited(builder: StreamsBuilder) -> Any:
    table = builder.stream("orders").group_by_key().count()
    return (
        table.suppress(Suppressed.until_time_limit(timedelta(hours=1), BufferConfig.unbounded())).to_stream().to("out")
    )


def pair(left: Any, right: Any) -> Any:
    return [left, right]


def stream_stream(how: str) -> Build:
    def build(builder: StreamsBuilder) -> Any:
        within = JoinWindows.of_time_difference_and_grace(10 * SECOND, timedelta(0))
        orders, users = builder.stream("orders"), builder.stream("users")
        joined = getattr(orders, how)(users, pair, windows=within, joined=StreamJoined(name="pairs"))
        return joined.to("out")

    return build


def stream_table(builder: StreamsBuilder) -> Any:
    return builder.stream("orders").left_join(builder.table("users"), pair).to("out")


def stream_table_with_grace(builder: StreamsBuilder) -> Any:
    store = Stores.persistent_versioned_key_value_store("users", timedelta(hours=1))
    users = builder.table("users", materialized=Materialized(store))
    return builder.stream("orders").join(users, pair, joined=Joined(grace_period=20 * SECOND)).to("out")


def table_table(builder: StreamsBuilder) -> Any:
    return builder.table("orders").outer_join(builder.table("users"), pair).to_stream().to("out")


def foreign_key(builder: StreamsBuilder) -> Any:
    orders, users = builder.table("orders"), builder.table("users")
    return orders.left_join(users, pair, foreign_key=lambda order: order["user"]).to_stream().to("out")


def regrouped(builder: StreamsBuilder) -> Any:
    by_user = builder.stream("orders").group_by(lambda _key, order: order["user"], Grouped("by-user"))
    return by_user.count(materialized=Materialized("orders-of-user")).to_stream().to("out")


def regrouped_into_three(builder: StreamsBuilder) -> Any:
    fixed = builder.stream("orders").repartition(Repartitioned(name="three", partitions=3))
    return fixed.group_by_key().count().to_stream().to("out")


def distinct(builder: StreamsBuilder) -> Any:
    return builder.stream("orders").distinct(by=lambda _key, order: order["user"], within=60 * SECOND).to("out")


class Numbering(Processor[str, Any, str, Any]):
    """Gives each record of a key its number, in a store of its own."""

    stores = (Stores.key_value_store_builder(Stores.persistent_key_value_store("numbers")),)

    def process(self, record: Record[str, Any]) -> None:
        store = self.context.get_state_store("numbers")
        number = (store.get(record.key) or 0) + 1
        store.put(record.key, number)
        self.context.forward(record.with_value(number))


def numbered(builder: StreamsBuilder) -> Any:
    return builder.stream("orders").process(Numbering).to("out")


BUILDS: Mapping[str, Build] = {
    "count": count,
    "windows": windows,
    "sliding": sliding,
    "sessions": sessions,
    "suppressed": suppressed,
    "limited": limited,
    "join": stream_stream("join"),
    "left join": stream_stream("left_join"),
    "outer join": stream_stream("outer_join"),
    "stream-table": stream_table,
    "stream-table with grace": stream_table_with_grace,
    "table-table": table_table,
    "foreign key": foreign_key,
    "regrouped": regrouped,
    "regrouped into three": regrouped_into_three,
    "distinct": distinct,
    "own store": numbered,
}

# Their rows say in which order a task has seen records, and where these came from.
ORDERED = {"distinct", "suppressed", "limited", "join", "left join", "outer join", "stream-table with grace"}


STEPS = 39
"""Calls that change something when a foreign-key join grows: topics, the plan, twelve tasks that are opened (four of
them twice) and committed, the batch, the description."""


def make_inputs(log: DurableLog, **partitions: int) -> None:
    for topic in INPUTS:
        log.create_topic(topic, partitions=partitions.get(topic, 2))


def feed(log: DurableLog, records: Mapping[str, Iterable[Row]]) -> None:
    for topic in INPUTS:
        write(log, topic, records[topic])


def sorted_outputs(log: DurableLog) -> dict[bytes, list[Any]]:
    return {key: sorted(found, key=repr) for key, found in read_by_key(log, "out").items()}


def changelog_rows(log: DurableLog) -> dict[tuple[str, int], dict[bytes, Any]]:
    """Returns the rows of all changelogs, by partition."""
    found: dict[tuple[str, int], dict[bytes, Any]] = {}
    for topic in log.topics():
        if topic.endswith("-changelog"):
            for partition in range(log.partitions_of(topic)):
                rows: dict[bytes, Any] = {}
                for _, time_ms, key, value, _ in log.read(topic, partition, 0):
                    assert key is not None
                    rows.pop(key, None)
                    if value is not None:
                        rows[key] = (time_ms, value)
                found[topic, partition] = rows
    return found


def reference(directory: Path, build: Build, partitions: Mapping[str, int]) -> tuple[Any, Any]:
    """Returns outputs and rows of an application that has had so many partitions from the start."""
    with EmbeddedLog(directory / "reference", sync="none") as log:
        make_inputs(log, **partitions)
        program = Program(log, directory / "six", build, **SETTINGS)
        for each in (*PHASES, END):
            feed(log, each)
            program.run()
        return sorted_outputs(log), changelog_rows(log)


def used_topics(program: Program) -> dict[str, int]:
    topics = {topic for node in program.topology.source_nodes for topic in node.topics}
    return {topic: 6 for topic in INPUTS if topic in topics}


def grow(program: Program) -> None:
    command = "headrace grow app shop:build"
    grow_application(program.topology, program.config, program.log, used_topics(program), command=command)


def started_on_two(name: str, log: DurableLog, directory: Path) -> Program:
    """Returns an application that has read the first phase from two partitions."""
    make_inputs(log)
    program = Program(log, directory / "two", BUILDS[name], **SETTINGS)
    feed(log, PHASES[0])
    program.run()
    return program


def check_goes_on(name: str, program: Program, directory: Path, partitions: Mapping[str, int] | None = None) -> None:
    """Asserts that an application that was grown goes on like one that has been so from the start."""
    for each in (PHASES[1], END):
        feed(program.log, each)
        program.run()
    outputs, rows = reference(directory, BUILDS[name], partitions or dict.fromkeys(INPUTS, 6))
    assert sorted_outputs(program.log) == outputs
    if name not in ORDERED:
        assert changelog_rows(program.log) == rows


def dies(program: Program, calls: int, *, after: bool) -> Countdown:
    """Grows it until so many calls have been made; the countdown tells which ones."""
    countdown = Countdown(calls, after=after)
    mortal = Program(crashing_log(program.log, countdown), Path(program.config.state_dir), program.build)
    mortal.config = program.config
    with suppress(Crash):
        grow(mortal)
    return countdown


@pytest.mark.parametrize("call", range(1, STEPS + 2))
def test_a_growth_that_was_killed_is_finished(call: int, log: DurableLog, tmp_path: Path) -> None:
    program = started_on_two("foreign key", log, tmp_path)
    made = dies(program, call, after=True).called
    description = Description.read(log, "app")
    assert description is not None
    if call < STEPS and (description.change is not None or log.partitions_of("orders") > 2):
        with pytest.raises((BatchError, IncompatibleTopologyError), match="headrace grow app"):
            program.run()
    # With one step more it is alive when it is done.
    assert (len(made) == call) == (call <= STEPS)
    if call <= STEPS:
        grow(program)
    check_goes_on("foreign key", program, tmp_path)


@pytest.mark.both_logs
def test_a_growth_that_is_killed_again_and_again_is_finished(log: DurableLog, tmp_path: Path) -> None:
    program = started_on_two("windows", log, tmp_path)
    calls = 0
    while True:
        calls += 1
        if len(dies(program, calls, after=bool(calls % 2)).called) < calls:
            break
    assert calls > 10
    check_goes_on("windows", program, tmp_path)


@pytest.mark.parametrize("name", BUILDS)
def test_results_are_those_of_a_run_that_had_six_partitions(name: str, log: DurableLog, tmp_path: Path) -> None:
    program = started_on_two(name, log, tmp_path)
    grow(program)
    check_goes_on(name, program, tmp_path)
    assert sorted_outputs(log)


@pytest.mark.parametrize("topic", INPUTS)
def test_one_side_of_a_foreign_key_join_grows(topic: str, log: DurableLog, tmp_path: Path) -> None:
    program = started_on_two("foreign key", log, tmp_path)
    grow_application(program.topology, program.config, log, {topic: 6})
    check_goes_on("foreign key", program, tmp_path, {topic: 6})


def test_it_grows_twice(log: DurableLog, tmp_path: Path) -> None:
    program = started_on_two("outer join", log, tmp_path)
    grow_application(program.topology, program.config, log, dict.fromkeys(INPUTS, 4))
    grow_application(program.topology, program.config, log, dict.fromkeys(INPUTS, 12))
    check_goes_on("outer join", program, tmp_path, dict.fromkeys(INPUTS, 12))


@pytest.mark.parametrize("name", ["count", "windows", "foreign key"])
def test_working_copies_on_other_machines_are_brought_up_to_date(name: str, log: DurableLog, tmp_path: Path) -> None:
    program = started_on_two(name, log, tmp_path)
    elsewhere = Program(log, tmp_path / "elsewhere", program.build, **SETTINGS)
    grow(elsewhere)
    check_goes_on(name, program, tmp_path)
