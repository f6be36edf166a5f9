"""A change that is interrupted at any step is finished by the same command, and nothing runs before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import Materialized, Migration, Serdes, StreamsBuilder
from headrace.app.description import Description
from headrace.change.topology_change import apply_evolution, plan_evolution
from headrace.change.verdicts import Options
from headrace.errors import BatchError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog
from tests.change.cases import add, stream, write, zero
from tests.change.kit import Program
from tests.change.kit import write as write_rows
from tests.change.test_changes import last_values

STEPS = ("create_topic", "describe_application", "begin", "commit", "delete_topic")
OPENS = ("open_journal", "task_journal")
OPTIONS = Options({"counts": "totals"})


class Crash(Exception):
    """The process dies here."""


class Mortal:
    """A log, or a journal of it, under a process that dies at a step, before it is done or right after."""

    def __init__(self, inner: Any, die: Callable[[], str]) -> None:
        self._inner = inner
        self._die = die

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in OPENS:
            return lambda *args: Mortal(found(*args), self._die)
        if name not in STEPS:
            return found

        def step(*args: Any, **options: Any) -> Any:
            moment = self._die()
            if moment == "before":
                raise Crash
            result = found(*args, **options)
            if moment == "after":
                raise Crash
            return result

        return step


def before(builder: StreamsBuilder) -> None:
    write(stream(builder, "other").group_by_key().count(materialized=Materialized("dropped")), "dropped")
    grouped = stream(builder).group_by_key()
    write(grouped.count(materialized=Materialized("counts")))
    write(grouped.aggregate(zero, add, materialized=Materialized("sums", value_serde=Serdes.long())), "sums")


def after(builder: StreamsBuilder) -> None:
    grouped = stream(builder).group_by_key()
    write(grouped.count(materialized=Materialized("totals")))
    option = Materialized[Any, Any]("sums", value_serde=Serdes.json(), migrate=Migration(Serdes.long()))
    write(grouped.aggregate(zero, add, materialized=option), "sums")


def change(program: Program, log: Any) -> None:
    evolution = plan_evolution(program.topology, program.config, log, OPTIONS)
    apply_evolution(evolution, log, "headrace plan-change shop:build --apply")


def make_topics(log: DurableLog) -> None:
    for topic in ("in", "other"):
        log.create_topic(topic, partitions=2)


def crash_at(number: int, moment: str, log: DurableLog, directory: Path) -> bool:
    """Lets a change crash at a step, and checks that it can be finished; False if there are not so many steps."""
    old, new = Program(log, directory, before), Program(log, directory, after)
    write_rows(log, "in", [("a", 1, 0), ("b", 2, 1), ("a", 3, 2)])
    old.run()
    left = iter([""] * number + [moment])
    try:
        change(new, Mortal(log, lambda: next(left, "")))
    except Crash:
        pass
    else:
        return False
    known = Description.read(log, "app")
    assert known is not None
    if known.change is not None:
        for program in (old, new):
            with pytest.raises(BatchError, match="finish it by the same command: `headrace plan-change shop:build"):
                program.run()
    write_rows(log, "in", [("a", 4, 3), ("c", 5, 4)])
    if known.change is not None or "counts" in known.outline.store_named:
        change(new, log)
    new.run()
    assert last_values(log, "out") == {"a": 3, "b": 1, "c": 1}
    assert last_values(log, "sums") == {"a": 8, "b": 2, "c": 5}
    changelogs = {topic for topic in log.topics() if topic.startswith("app-") and topic.endswith("-changelog")}
    assert changelogs == {"app-totals-changelog", "app-sums-changelog"}
    return True


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_change_that_crashes_at_any_step_is_finished_by_the_next_attempt(moment: str, tmp_path: Path) -> None:
    number = 0
    while True:
        directory = tmp_path / str(number)
        with EmbeddedLog(directory / "log", sync="none") as log:
            make_topics(log)
            if not crash_at(number, moment, log, directory):
                break
        number += 1
    # A topic, two descriptions, the begin, four tasks, the batch, and two topics that are deleted.
    assert number == 11


@pytest.mark.kafka
@pytest.mark.parametrize("number", [4, 7], ids=["second task", "batch"])
def test_on_kafka_tasks_that_have_committed_are_left_alone(number: int, log: DurableLog, tmp_path: Path) -> None:
    make_topics(log)
    assert crash_at(number, "after", log, tmp_path)
