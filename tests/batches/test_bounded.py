"""Tasks over bounded input give what the test driver gives for one micro-batch of everything, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden_cases.case import Case, case_lines, left_out, load_functions, parse
from golden_cases.compare import optimizations, variant
from headrace import StreamsConfig, Topology, TopologyTestDriver
from headrace.batches.bounded_input import bounded_layout, global_topics, sort_time
from headrace.batches.bounded_rows import BoundedJob, bounded_config, unpack_headers
from headrace.batches.bounded_run import outputs_of, run_lists
from headrace.topics.log import Headers, Output
from tests.spark.random_programs import Program, make_program

GOLDEN = Path(__file__).parent.parent / "golden"
Inputs = Mapping[str, Sequence[Output]]
Record = tuple[int, bytes | None, Headers]
ByKey = dict[tuple[str, bytes | None], list[Record]]
ALL_AT_ONCE = 1_000_000


def in_time_order(topology: Topology, config: StreamsConfig, inputs: Inputs) -> dict[str, list[Output]]:
    """Sorts records by the times that the topology sees."""
    layout = bounded_layout(topology, config, inputs, 1)
    times = {topic: sort_time(layout, topic) for topic in inputs if topic not in global_topics(topology)}
    return {
        topic: sorted(records, key=lambda record: times[topic](*record[1:]) if topic in times else record[1])
        for topic, records in inputs.items()
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
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
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
