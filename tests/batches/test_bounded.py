"""Tasks over bounded input give what the test driver gives for one micro-batch of everything, key by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden_cases.case import Case, case_lines, left_out, load_functions, parse
from golden_cases.compare import optimizations, variant
from headrace import (
    BufferConfig,
    EmitStrategy,
    JoinWindows,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from headrace.batches.bounded_input import bounded_layout, global_topics, sort_time
from headrace.batches.bounded_rows import BoundedJob, bounded_config, unpack_headers
from headrace.topics.log import Headers, Output
from tests.batches.bounded_lists import outputs_of, run_lists
from tests.spark.random_programs import Program, make_program

GOLDEN = Path(__file__).parent.parent / "golden"
Inputs = Mapping[str, Sequence[Output]]
Record = tuple[int, bytes | None, Headers]
ByKey = dict[tuple[str, bytes | None], list[Record]]
ALL_AT_ONCE = 1_000_000
STRING = Serdes.string()
TEN = timedelta(milliseconds=10)


def in_time_order(topology: Topology, config: StreamsConfig, inputs: Inputs) -> dict[str, list[Output]]:
    """Sorts records by the times that the topology sees."""
    layout = bounded_layout(topology, config, inputs, 1)
    times = {topic: sort_time(layout, topic) for topic in inputs if topic not in global_topics(topology)}
    return {
        topic: sorted(records, key=lambda record: record[1] if time_of is None else time_of(*record[1:]))
        for topic, records in inputs.items()
        for time_of in [times.get(topic)]
    }


def on_driver(topology: Topology, config: StreamsConfig, inputs: Inputs, partitions: int) -> ByKey:
    """Returns the outputs of one micro-batch of everything, by topic and key."""
    found: ByKey = {}
    outputs: list[str] = []
    with TopologyTestDriver(topology, config, initial_wall_clock_ms=0, partitions=partitions, batched=True) as driver:
        for topic, records in in_time_order(topology, config, inputs).items():
            driver.pipe_raw_batch(topic, records)
        driver.commit()
        outputs = [topic for topic in driver._outputs if topic not in topology.internal_topics(config.application_id)]
        for topic in outputs:
            for _, timestamp_ms, key, value, headers in driver.take_outputs(topic, driver.unread(topic)):
                found.setdefault((topic, key), []).append((timestamp_ms, value, headers))
    return {where: records for where, records in found.items() if not where[0].endswith("-changelog")}


def backfilled(
    topology: Topology, config: StreamsConfig, inputs: Inputs, partitions: int, *, chunk: int = ALL_AT_ONCE
) -> ByKey:
    """Returns the same of a backfill that shuffles lists."""
    config = bounded_config(config)
    job = BoundedJob(bounded_layout(topology, config, inputs, partitions), 0, chunk)
    found: ByKey = {}
    with TemporaryDirectory() as directory:
        results = run_lists(job, {topic: list(records) for topic, records in inputs.items()}, Path(directory))
    for topic, rows in outputs_of(results).items():
        for row in rows:
            record = (row.timestamp, row.value, unpack_headers(row.headers))
            found.setdefault((topic, row.key), []).append(record)
    return found


def history(program: Program) -> dict[str, list[Output]]:
    """Returns everything that a program reads."""
    found: dict[str, list[Output]] = {topic: [] for topic in ("a", "b", "t", "u")}
    for step in program.steps:
        for topic, records in step.records:
            found[topic].extend(records)
    return found


@pytest.mark.parametrize("partitions", [1, 4])
@given(random=st.randoms(use_true_random=False), chunk=st.sampled_from([1, 2, 5, ALL_AT_ONCE]))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_give_what_the_driver_gives(random: Random, partitions: int, chunk: int) -> None:
    program = make_program(random, partitions)
    if program.config.statestore_cache_max_bytes:
        # What a cache holds back depends on when it is flushed.
        chunk = ALL_AT_ONCE
    inputs = history(program)
    wanted = on_driver(program.topology, program.config, inputs, partitions)
    assert backfilled(program.topology, program.config, inputs, partitions, chunk=chunk) == wanted


def case_inputs(case: Case) -> dict[str, list[Output]]:
    found: dict[str, list[Output]] = {topic: [] for topic in case["topics"]}
    for step in case["steps"]:
        headers = tuple((name, value.encode()) for name, value in step.get("headers", ()))
        key, value = (None if step[part] is None else step[part].encode() for part in ("key", "value"))
        found[step["topic"]].append((0 if key is None else None, step["ts"], key, value, headers))
    return found


def scenarios() -> list[Case]:
    """Returns the golden cases that run, and in which only records move time."""
    cases = [parse(line) for name in ("scenarios", "cases") for line in case_lines(GOLDEN / f"{name}.jsonl.gz")]
    return [
        case
        for case in cases
        if str(case["id"]) not in left_out()
        and "build_error" not in case
        and not any("advance_ms" in step for step in case["steps"])
        and not any(isinstance(step, dict) for step in case["expected"])
    ]


def chunks(case: Case, config: StreamsConfig) -> tuple[int, ...]:
    """Returns how many records a chunk may have such that results are the same.

    What a cache holds back depends on when it is flushed. A time that depends on what the partition had before is not
    known when records are sorted.
    """
    by_partition_time = any(node.get("extractor") == "partition_time_if_null" for node in case["nodes"])
    return (ALL_AT_ONCE,) if config.statestore_cache_max_bytes or by_partition_time else (3, ALL_AT_ONCE)


def test_golden_scenarios_give_what_the_driver_gives() -> None:
    functions = load_functions(GOLDEN / "functions.py")
    compared, different = 0, {}
    for case in scenarios():
        for optimization in optimizations(case):
            run = variant(case, functions, [], optimization)
            inputs = case_inputs(case)
            wanted = on_driver(run.topology, run.config, inputs, 1)
            compared += bool(wanted)
            for chunk in chunks(case, run.config):
                got = backfilled(run.topology, run.config, inputs, 1, chunk=chunk)
                if got != wanted:
                    different[case["id"], optimization, chunk] = (wanted, got)
    assert different == {}
    assert compared >= 228


def closed(build: Callable[[StreamsBuilder], Any], **inputs: Sequence[tuple[str, str, int]]) -> list[tuple[str, str]]:
    """Returns keys and values that come out at the end, besides those that come without it."""
    config = StreamsConfig.of(
        {"default.key.serde": STRING, "default.value.serde": STRING, "statestore.cache.max.bytes": 0}
    )
    builder = StreamsBuilder(config)
    build(builder)
    topology, found = builder.build(config), []
    records: dict[str, list[Output]] = {
        topic: [(None, time_ms, key.encode(), value.encode(), ()) for key, value, time_ms in rows]
        for topic, rows in inputs.items()
    }
    layout = bounded_layout(topology, bounded_config(config), list(records), 1)
    for close in (False, True):
        with TemporaryDirectory() as directory:
            rows = run_lists(BoundedJob(layout, 0, ALL_AT_ONCE, close_windows=close), records, Path(directory))
        found.append([((row.key or b"").decode(), (row.value or b"").decode()) for row in rows])
    assert found[1][: len(found[0])] == found[0]
    return found[1][len(found[0]) :]


def printed(windowed: Any, _value: Any) -> str:
    return f"{windowed.key}@{windowed.window.start_ms}"


@pytest.mark.parametrize(
    ("windows", "wanted"),
    [
        (TimeWindows.of_size_and_grace(TEN, TEN), [("a@0", "1"), ("a@10", "1"), ("b@10", "1")]),
        (SessionWindows.of_inactivity_gap_and_grace(TEN, TEN), [("a@1", "2"), ("b@15", "1")]),
        (
            SlidingWindows.of_time_difference_and_grace(TEN, TEN),
            [("a@0", "1"), ("a@1", "2"), ("a@2", "1"), ("b@5", "1")],
        ),
    ],
    ids=["time", "session", "sliding"],
)
def test_windows_that_emit_on_close_are_closed_at_the_end(windows: Any, wanted: list[tuple[str, str]]) -> None:
    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key().windowed_by(windows)
        counts = grouped.emit_strategy(EmitStrategy.on_window_close()).count()
        counts.to_stream(printed).map_values(str).to("out")

    found = closed(build, **{"in": [("a", "x", 1), ("a", "x", 11), ("b", "x", 15)]})
    assert sorted(found) == wanted


def test_suppressed_rows_come_out_at_the_end() -> None:
    def build(builder: StreamsBuilder) -> None:
        counts = builder.stream("in").group_by_key().count().map_values(str)
        counts.suppress(Suppressed.until_time_limit(TEN, BufferConfig.unbounded())).to_stream().to("out")

    found = closed(build, **{"in": [("a", "x", 1), ("b", "x", 2), ("a", "x", 3), ("c", "x", 20)]})
    assert found == [("c", "1")]


def test_records_without_a_partner_come_out_at_the_end() -> None:
    def build(builder: StreamsBuilder) -> None:
        windows = JoinWindows.of_time_difference_and_grace(TEN, TEN)
        joined: StreamJoined[Any, Any, Any] = StreamJoined(STRING, STRING, STRING)
        left, right = builder.stream("left"), builder.stream("right")
        left.outer_join(right, lambda one, other: f"{one}+{other}", windows=windows, joined=joined).to("out")

    found = closed(build, left=[("a", "l1", 1), ("b", "l2", 90)], right=[("a", "r1", 2), ("c", "r2", 95)])
    assert sorted(found) == [("b", "l2+None"), ("c", "None+r2")]
