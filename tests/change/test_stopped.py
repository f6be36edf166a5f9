"""A change to a stopped application is a micro-batch: begun, committed by every task, and finished, or gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace import Materialized, StreamsBuilder
from headrace.app.description import Description
from headrace.batches.change_plan import ChangePlan
from headrace.change.changelog_rows import latest_rows, read_pages
from headrace.change.stopped_application import StoppedApplication, TaskUpdate, stopped_application
from headrace.errors import BatchError, LockError
from headrace.topics.journal import DurableLog
from headrace.topics.log import Output
from tests.change.kit import Program, read_by_key, write

CHANGELOG = "app-counts-changelog"
TASKS = ("0_0", "0_1")


def counting(builder: StreamsBuilder) -> Any:
    return builder.stream("in").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")


@pytest.fixture
def program(log: DurableLog, tmp_path: Path) -> Program:
    """An application that has counted ten keys once."""
    log.create_topic("in", partitions=2)
    program = Program(log, tmp_path, counting)
    write(log, "in", [(f"k{number}", 1, number) for number in range(10)])
    program.run()
    return program


def count(number: int) -> bytes:
    """Returns what the table has for a key."""
    return number.to_bytes(8, "big")


def plan_of(app: StoppedApplication, change: str = "renew") -> ChangePlan:
    return ChangePlan(change, "headrace renew app", app.next_batch_id, {"why": "a test"})


def commit_tasks(app: StoppedApplication, *tasks: str) -> list[bool]:
    """Lets tasks count everything from a hundred."""

    def update(task: str) -> bool:
        target = (CHANGELOG, int(task[2:]))
        head = app.head(task, [target])
        assert head.record is not None

        def rewritten() -> Iterator[tuple[str, list[Output]]]:
            for page in latest_rows(app.log, target, 0, head.ends[target]):
                rows: list[Output] = [(target[1], time_ms, key, count(100), ()) for _, time_ms, key, _, _ in page]
                yield CHANGELOG, rows

        positions = {(topic, partition): at for topic, partition, at in head.record.positions}
        return app.commit_task(
            task, [target], TaskUpdate(positions=positions, memory=head.record.memory, written=rewritten())
        )

    return [update(task) for task in tasks]


def check_goes_on(program: Program, log: DurableLog) -> None:
    """Checks that the application counts on from what the change has written."""
    write(log, "in", [("k3", 1, 20), ("k4", 1, 21)])
    program.run()
    counts = read_by_key(log, "out")
    assert [counts[key][-1] for key in (b"k3", b"k4")] == [(20, count(101)), (21, count(101))]


@pytest.mark.both_logs
def test_the_application_goes_on_from_what_a_change_has_made(program: Program, log: DurableLog) -> None:
    before = log.last_batch("app")
    assert before is not None
    with stopped_application(program.config, log, TASKS) as app:
        assert app.description is not None
        app.begin(plan_of(app))
        assert commit_tasks(app, *TASKS) == [True, True]
        app.commit()
        app.finish(app.description)
    after = log.last_batch("app")
    assert after is not None
    assert after.batch_id == before.batch_id + 1
    write(log, "in", [("k3", 1, 20)])
    program.run()
    assert read_by_key(log, "out")[b"k3"] == [(3, count(1)), (20, count(101))]


@pytest.mark.parametrize("done", range(5), ids=["begun", "one task", "all tasks", "committed", "nothing"])
def test_an_interrupted_change_is_gone_on_with(program: Program, log: DurableLog, done: int) -> None:
    with stopped_application(program.config, log, TASKS) as app:
        if done < 4:
            app.begin(plan_of(app))
            commit_tasks(app, *TASKS[: min(done, 2)])
        if done == 3:
            app.commit()
    if done < 4:
        with pytest.raises(BatchError, match=r"'app': a change was begun as batch \d+ \(renew\).*`headrace renew app`"):
            program.run()
    with stopped_application(program.config, log, TASKS) as app:
        assert (app.plan is not None) == (done < 4)
        assert app.is_committed == (done == 3)
        app.begin(app.check_resumes("renew") or plan_of(app))
        commit_tasks(app, *TASKS)
        app.commit()
        assert app.description is not None
        app.finish(app.description)
    check_goes_on(program, log)


@pytest.mark.kafka
def test_tasks_that_have_committed_are_left_alone(program: Program, log: DurableLog) -> None:
    with stopped_application(program.config, log, TASKS) as app:
        app.begin(plan_of(app))
        commit_tasks(app, "0_0")
    with pytest.raises(BatchError, match="`headrace renew app`"):
        program.run()
    with stopped_application(program.config, log, TASKS) as app:
        app.begin(app.check_resumes("renew") or plan_of(app))
        assert commit_tasks(app, *TASKS) == [False, True]
        app.commit()
        assert app.description is not None
        app.finish(app.description)
    check_goes_on(program, log)


def test_another_change_has_to_wait(program: Program, log: DurableLog) -> None:
    with stopped_application(program.config, log, TASKS) as app:
        app.begin(plan_of(app))
    with (
        stopped_application(program.config, log, TASKS) as app,
        pytest.raises(BatchError, match="`headrace renew app`"),
    ):
        app.check_resumes("grow")


def test_a_reset_forgets_a_change(program: Program, log: DurableLog) -> None:
    with stopped_application(program.config, log, TASKS) as app:
        app.begin(plan_of(app))
        assert app.description is not None
        app.description.resetting().write(log)
    program.run()
    found = Description.read(log, "app")
    assert found is not None
    assert found.change is None


def test_who_runs_it_is_not_disturbed(program: Program, log: DurableLog) -> None:
    with (
        stopped_application(program.config, log, TASKS),
        pytest.raises(LockError, match="in use by"),
        stopped_application(program.config, log, TASKS),
    ):
        pass


def test_plan_of_another_history_is_refused(program: Program, log: DurableLog) -> None:
    with stopped_application(program.config, log, TASKS) as app:
        assert app.description is not None
        replace(app.description, change=replace_batch(plan_of(app), 77)).write(log)
    with (
        pytest.raises(BatchError, match=r"begun as batch 77 .* do not belong together"),
        stopped_application(program.config, log, TASKS),
    ):
        pass


def replace_batch(plan: ChangePlan, batch_id: int) -> ChangePlan:
    return ChangePlan(plan.change, plan.command, batch_id, plan.details)


def test_rows_are_the_last_record_of_each_key(log: DurableLog) -> None:
    log.create_topic("rows")
    header = (("h", b"1"),)
    log.append("rows", [(0, 1, b"a", b"old", ()), (0, 2, b"b", b"gone", ()), (0, 3, b"a", b"new", header)])
    log.append("rows", [(0, 4, b"b", None, ()), (0, 5, b"c", b"beyond", ())])
    found = [raw[1:] for page in latest_rows(log, ("rows", 0), 0, 4) for raw in page]
    assert found == [(3, b"a", b"new", header)]
    assert [raw[0] for page in read_pages(log, ("rows", 0), 1, 4) for raw in page] == [1, 2, 3]
