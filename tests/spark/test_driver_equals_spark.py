"""The batched test driver and Spark give the same: random programs, inputs and batch boundaries, several partitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import TopologyTestDriver
from headrace.app.scripted_runs.hosted import Hosted
from headrace.runtime.task import Task
from headrace.topics.log import Headers, TopicPartition
from spark_host.run import Hosting
from tests.spark.random_programs import Program, make_program

Record = tuple[int, bytes | None, bytes | None, Headers]
Answers = list[dict[TopicPartition, list[Record]]]
# By task and store: the rows as they are kept.
Rows = dict[tuple[str, str], list[tuple[bytes, bytes]]]


def rows_of(tasks: Sequence[Task]) -> Rows:
    return {
        (str(task.id), name): [(key, _without_offset(task, name, value)) for key, value in engine.scan()]
        for task in tasks
        for name, engine in task.engines().items()
    }


def _without_offset(task: Task, store: str, value: bytes) -> bytes:
    # A suppressed record remembers its offset behind its timestamp, and one that has crossed an edge has none in a log.
    return value[:8] + value[16:] if task.stores[store].kind == "suppress" else value


def on_driver(program: Program) -> tuple[Answers, Rows, dict[str, float]]:
    answers: Answers = []
    driver = TopologyTestDriver(
        program.topology, program.config, initial_wall_clock_ms=0, partitions=program.partitions, batched=True
    )
    with driver:
        for step in program.steps:
            for topic, records in step.records:
                driver.pipe_raw_batch(topic, records)
            driver._host.wall_clock_ms += step.advance_ms
            driver.commit()
            answer: dict[TopicPartition, list[Record]] = {}
            for topic in program.outputs:
                for partition, timestamp_ms, key, value, headers in driver.take_outputs(topic, driver.unread(topic)):
                    assert partition is not None
                    answer.setdefault((topic, partition), []).append((timestamp_ms, key, value, headers))
            answers.append(answer)
        return answers, rows_of(driver._host._tasks), driver.metrics()


def on_spark(programs: Sequence[Program], directory: Path, **how: Any) -> list[tuple[Answers, Rows, dict[str, float]]]:
    hosted = [
        Hosted(f"p{number}", each.topology, each.config, each.topics, each.outputs, each.steps)
        for number, each in enumerate(programs)
    ]
    hosting = Hosting(hosted, directory)
    try:
        hosting.run(**how)
        found = []
        for each in hosted:
            if each.failure is not None:
                raise each.failure
            stores = hosting.stores(each.name)
            answers = [{where: [raw[1:] for raw in raws] for where, raws in answer.items()} for answer in each.answers]
            counters = {
                "dropped-records-total": 0.0,
                "late-records-total": 0.0,
                "expired-rows-total": 0.0,
                **each.counters,
            }
            found.append((answers, rows_of(stores.tasks), counters))
            stores.close()
        return found
    finally:
        hosting.close()


def check(programs: Sequence[Program], directory: Path, **how: Any) -> None:
    for number, (program, spark) in enumerate(zip(programs, on_spark(programs, directory, **how), strict=True)):
        answers, rows, counters = on_driver(program)
        where = f"program {number}:\n{program.topology.describe()}"
        for step, (wanted, got) in enumerate(zip(answers, spark[0], strict=True)):
            assert got == wanted, f"step {step} of {where}"
        assert spark[1] == rows, f"stores of {where}"
        assert spark[2] == counters, f"counters of {where}"


@pytest.mark.parametrize("partitions", [1, 4])
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_tasks_that_start_anew_give_the_same(random: Random, partitions: int) -> None:
    program = make_program(random, partitions)
    for restart_every in (0, 2):
        with TemporaryDirectory() as directory:
            check([program], Path(directory), on_spark=False, restart_every=restart_every)


@pytest.mark.parametrize("partitions", [1, 3])
@given(seed=st.integers(0, 1 << 32), batches=st.sampled_from((0.2, 0.5)), ttl=st.booleans())
@settings(max_examples=60, deadline=None)
def test_batches_of_records_give_what_single_values_give(
    seed: int,
    batches: float,
    ttl: bool,  # noqa: FBT001 - Hypothesis
    partitions: int,
) -> None:
    in_batches, one_by_one = (
        make_program(Random(seed), partitions, one_by_one=each, batches=batches, ttl=ttl) for each in (False, True)
    )
    assert on_driver(in_batches) == on_driver(one_by_one), in_batches.topology.describe()


@pytest.mark.spark
def test_spark_gives_the_same(tmp_path: Path) -> None:
    programs = [make_program(Random(seed), partitions) for seed in range(20) for partitions in (1, 4)]
    check(programs, tmp_path)
