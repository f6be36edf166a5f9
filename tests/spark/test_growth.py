"""Growth on Spark: what it gives is what growth in one process gives, and a task whose worker dies is run again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.change.grow import grow_application
from headrace.errors import ChangeRefusedError, DeserializationError, StreamsError, TopologyError
from tests.change.kit import Build, Program
from tests.change.test_grow import BUILDS, PHASES, SETTINGS, check_goes_on, feed, make_inputs, used_topics
from tests.change.test_grow_refusals import ByValue
from tests.spark.stand import MASTER, Stand

if TYPE_CHECKING:
    from headrace.spark.parallel_map import SparkMap

pytestmark = pytest.mark.spark


def started(stand: Stand, directory: Path, build: Build) -> Program:
    """Returns an application that has read the first phase from two partitions."""
    make_inputs(stand.log)
    place = {} if stand.servers is None else {"bootstrap_servers": stand.servers}
    program = Program(stand.log, directory / "two", build, **{**SETTINGS, **place, "spark.master": MASTER})
    feed(stand.log, PHASES[0])
    program.run()
    return program


@contextmanager
def opened(program: Program) -> Iterator[SparkMap]:
    from headrace.spark.parallel_map import open_spark_map

    with open_spark_map(program.topology, program.config, Path(program.config.state_dir)) as parallel:
        yield parallel


def grow(program: Program) -> list[str]:
    """Grows it on Spark; returns what was told."""
    told: list[str] = []
    with opened(program) as parallel:
        topics = used_topics(program)
        grow_application(program.topology, program.config, program.log, topics, tell=told.append, parallel=parallel)
    return told


# Each has something else to be sent: windows, versions, rows that are rewritten, a store of the user's class.
@pytest.mark.parametrize("name", ["windows", "stream-table with grace", "foreign key", "own store"])
def test_results_are_those_of_a_run_that_had_six_partitions(name: str, stand: Stand, tmp_path: Path) -> None:
    program = started(stand, tmp_path, BUILDS[name])
    told = grow(program)
    assert sum(line.startswith("task 0_") and "has taken over its part of" in line for line in told) == 4
    check_goes_on(name, program, tmp_path)


def test_what_cannot_be_moved_is_refused_by_name(stand: Stand, tmp_path: Path) -> None:
    program = started(stand, tmp_path, lambda builder: builder.stream("orders").process(ByValue))
    before = (stand.log.partition_counts(), stand.log.application_description("app"))
    with pytest.raises(ChangeRefusedError, match=r"store 'by-value' has rows that are not where their keys go"):
        grow(program)
    assert (stand.log.partition_counts(), stand.log.application_description("app")) == before


def test_what_captures_a_thing_of_this_process_is_refused(stand: Stand, tmp_path: Path) -> None:
    import threading

    lock = threading.Lock()

    def build(builder: object) -> object:
        stream = builder.stream("orders")  # type: ignore[attr-defined]
        return stream.filter(lambda key, value: not lock.locked()).to("out")

    program = started(stand, tmp_path, build)
    with pytest.raises(TopologyError, match="captures 'lock'"):
        grow(program)


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers; the first call with 3 ends its process, and one with 7 fails."""

    directory: Path

    def __call__(self, number: int) -> int:
        if number == 3:
            try:
                (self.directory / "died").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(1)
        if number == 7:
            message = "seven cannot be read"
            raise DeserializationError(message)
        return 2 * number


def doubled(numbers: Sequence[int], stand: Stand, tmp_path: Path) -> list[int]:
    program = Program(stand.log, tmp_path, BUILDS["count"], **{"spark.master": MASTER})
    with opened(program) as parallel:
        return list(parallel(Doubling(tmp_path), numbers))


def test_a_value_whose_worker_has_died_is_given_to_another_one(stand: Stand, tmp_path: Path) -> None:
    assert doubled(range(7), stand, tmp_path) == [0, 2, 4, 6, 8, 10, 12]
    assert (tmp_path / "died").exists()
    assert doubled([], stand, tmp_path) == []


def test_an_error_of_a_worker_is_raised_here(stand: Stand, tmp_path: Path) -> None:
    with pytest.raises(DeserializationError, match="seven cannot be read"):
        doubled([1, 7, 2], stand, tmp_path)
    with pytest.raises(StreamsError, match=r"a task failed on Spark: TypeError: .*NoneType"):
        doubled([1, None], stand, tmp_path)  # type: ignore[list-item]  # a mistake of whoever wrote it
