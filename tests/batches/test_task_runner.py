"""One task in one process: when it goes on as it is, when it is built anew, and what a failure leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace import (
    DeserializationError,
    Materialized,
    ProcessingError,
    Serdes,
    StreamsBuilder,
)
from headrace.batches import task_runner, working_copy
from headrace.batches.executor import LocalExecutor
from headrace.batches.plan import Plan
from headrace.errors import FencedError, RetriableError
from tests.batches.kit import Bench, Driver


class Failing:
    """A sum that fails when it is told to."""

    def __init__(self) -> None:
        self.is_failing = False
        self.seen: list[Any] = []

    def __call__(self, _key: str, value: int, total: int) -> int:
        self.seen.append(value)
        if self.is_failing and value == 13:
            message = "unlucky"
            raise ValueError(message)
        return total + value


@pytest.fixture
def add() -> Failing:
    return Failing()


@pytest.fixture
def bench(tmp_path: Path, add: Failing) -> Bench:
    def build(builder: StreamsBuilder) -> None:
        totals = (
            builder.stream("in")
            .group_by_key()
            .aggregate(
                lambda: 0,
                add,
                materialized=Materialized("totals", key_serde=Serdes.string(), value_serde=Serdes.json()),
            )
        )
        totals.to_stream().to("out")

    return Bench(tmp_path, build, {"in": 1, "out": 1}, statestore_cache_max_bytes=0)


def totals(driver: Driver) -> dict[str, int]:
    return {key: row.value for key, row in driver.rows("totals").items()}


def test_a_task_is_built_once_and_goes_on(bench: Bench) -> None:
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    driver.run()
    before = driver.live("0_0")
    bench.write("in", ("a", 2, 20))
    driver.run()
    assert driver.live("0_0") is before
    assert totals(driver) == {"a": 3}


def test_every_commit_has_a_stamp_of_its_own(bench: Bench) -> None:
    stamps = []
    for number in range(3):
        driver = bench.driver()
        bench.write("in", ("a", 1, number))
        driver.run()
        stamps.append(driver.live("0_0").stamp)
        assert bench.log.open_journal("app", []).state.tasks["0_0"].stamp == stamps[-1]
        driver.close()
    assert len(set(stamps)) == 3


def test_a_task_that_was_run_elsewhere_since_is_built_anew(bench: Bench) -> None:
    one = bench.driver("one")
    bench.write("in", ("a", 1, 10))
    one.run()
    stale = one.live("0_0")
    two = bench.driver("two")
    bench.write("in", ("a", 2, 20))
    two.run()
    two.close()
    # The same process gets the task again: the application was started there anew.
    again = bench.driver("one")
    one.runner._live.clear()
    again.runner._live["0_0"] = stale
    bench.write("in", ("a", 4, 30))
    again.run()
    assert again.live("0_0") is not stale
    assert totals(again) == {"a": 7}


def test_a_failure_closes_the_task_and_leaves_nothing(bench: Bench, add: Failing) -> None:
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    driver.run()
    add.is_failing = True
    bench.write("in", ("a", 2, 20), ("a", 13, 30))
    plan = driver.plan_work()
    assert plan is not None
    outcome = driver.execute(plan)
    assert not driver.runner.knows("0_0")
    with pytest.raises(ProcessingError, match="unlucky"):
        driver.application_run.commit(plan, outcome)
    assert bench.read("out") == [("a", 1)]
    add.is_failing = False
    # The same plan is still to be run.
    assert driver.plan_work() == plan
    driver.run()
    assert totals(driver) == {"a": 16}
    assert bench.read("out") == [("a", 1), ("a", 3), ("a", 16)]


def test_what_ran_and_was_not_committed_is_not_gone_on_from(bench: Bench) -> None:
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    driver.run()
    bench.write("in", ("a", 2, 20))
    plan = driver.plan_work()
    assert plan is not None
    driver.execute(plan)
    # Another task of the batch has failed, say; it runs again.
    driver.execute(plan)
    driver.application_run.commit(plan, driver.execute(plan))
    assert totals(driver) == {"a": 3}
    assert bench.read("out") == [("a", 1), ("a", 3)]


def test_a_copy_that_somebody_has_changed_is_built_anew(bench: Bench) -> None:
    driver = bench.driver()
    for number in (1, 2):
        bench.write("in", ("a", number, 10))
        driver.run()
    before = driver.live("0_0")
    file = driver.directory / "0_0" / "lmdb" / "data.mdb"
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)
    bench.write("in", ("a", 4, 20))
    (report,) = driver.run()
    assert driver.live("0_0") is not before
    assert sum(task.restored for task in report.tasks) == 2
    assert totals(driver) == {"a": 7}


def test_a_batch_is_tried_again_if_its_copy_is_changed_while_it_runs(bench: Bench, add: Failing) -> None:
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    driver.run()
    plain = add.seen.append

    def damaging(value: int) -> None:
        plain(value)
        (driver.directory / "0_0" / "lmdb" / "data.mdb").unlink(missing_ok=True)

    add.seen = Appended(damaging)  # type: ignore[assignment]
    bench.write("in", ("a", 2, 20))
    plan = driver.plan_work()
    assert plan is not None
    failure = driver.execute(plan).failure
    assert isinstance(failure, RetriableError)
    assert "was changed by somebody else while a batch ran on it" in str(failure)
    add.seen = []
    driver.run()
    assert totals(driver) == {"a": 3}


class Appended:
    def __init__(self, append: Any) -> None:
        self.append = append


ELSEWHERE = """
import sys
from pathlib import Path
from headrace import StreamsConfig
from headrace.batches.working_copy import WorkingCopy
WorkingCopy(Path(sys.argv[1]), {"totals": "lmdb"}, StreamsConfig()).close()
"""


def test_a_copy_that_another_process_has_opened_is_opened_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_copy, "_LASTING", working_copy._LASTING._replace(rows=0))
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    driver.run()
    before = driver.live("0_0")
    # An attempt that was given up: it has opened the copy, and committed nothing.
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(driver.directory / "0_0")], check=True)
    bench.write("in", ("a", 2, 20))
    driver.run()
    assert driver.live("0_0") is not before
    assert totals(driver) == {"a": 3}


def test_a_copy_on_which_a_process_has_died_is_not_tried_again(bench: Bench) -> None:
    driver = bench.driver()
    for number in (1, 2):
        bench.write("in", ("a", number, 10))
        driver.run()
    driver.close()
    again = bench.driver()
    bench.write("in", ("a", 4, 20))
    plan = again.plan_work()
    assert plan is not None
    mark = again.directory / "0_0" / "running"
    (place,) = bench.layout.tasks
    for attempt, restored in ((0, 1), (1, 2)):
        mark.write_text(str(plan.batch_id))
        found = again.runner.run(place, plan, [], attempt=attempt)
        assert found.report.restored == restored
        again.runner.close()
    again.kill()


def test_a_task_that_was_overtaken_is_fenced(bench: Bench) -> None:
    driver = bench.driver()
    for number in (1, 2):
        bench.write("in", ("a", number, 10))
        driver.run()
    driver.runner.close()
    (place,) = bench.layout.tasks
    with pytest.raises(FencedError, match="has committed batch 1, and was asked for batch 0"):
        driver.runner.run(place, Plan(0, 0), [])


def test_too_many_open_tasks_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(materialized=Materialized("counts"))

    monkeypatch.setattr(task_runner, "_LIVE_TASKS", 2)
    bench = Bench(tmp_path, build, {"in": 4})
    driver = bench.driver()
    for number in range(3):
        for partition in range(4):
            bench.write("in", ("a", 1, number), partition=partition)
        driver.run()
        assert len(driver.runner._live) == 2
    assert driver.rows("counts", "0_3")["a"].value == 3


def test_the_last_letters_of_a_failing_task_are_written(tmp_path: Path) -> None:
    """A handler that gives up may still say which record it was."""

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").to("out")

    bench = Bench(tmp_path, build, {"in": 1, "out": 1, "letters": 1}, errors_dead_letter_queue_topic_name="letters")
    bench.log.append("in", [(0, 5, b"k", b"{no json", ())])
    driver = bench.driver()
    with pytest.raises(DeserializationError):
        driver.step()
    assert [value for _, _, _, value, _ in bench.log.read("letters", 0, 0)] == [b"{no json"]
    assert bench.read("out") == []


def test_stores_without_logging_live_as_long_as_their_process(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        grouped.count(materialized=Materialized("quiet", logging=False)).to_stream().to("out")
        grouped.count(materialized=Materialized("logged"))

    bench = Bench(tmp_path, build, {"in": 1, "out": 1})
    driver = bench.driver()
    for number in (1, 2):
        bench.write("in", ("a", number, 10))
        driver.run()
    assert driver.rows("quiet")["a"].value == driver.rows("logged")["a"].value == 2
    driver.close()
    again = bench.driver()
    bench.write("in", ("a", 3, 10))
    again.run()
    assert again.rows("quiet")["a"].value == 1
    assert again.rows("logged")["a"].value == 3


def test_functions_may_be_random(tmp_path: Path) -> None:
    """What they have returned is committed once, or never seen."""

    def build(builder: StreamsBuilder) -> None:
        latest = (
            builder.stream("in")
            .group_by_key()
            .aggregate(
                str,
                lambda _key, _value, _last: uuid4().hex,
                materialized=Materialized("latest", key_serde=Serdes.string(), value_serde=Serdes.json()),
            )
        )
        latest.to_stream().to("out")

    bench = Bench(tmp_path, build, {"in": 1, "out": 1}, statestore_cache_max_bytes=0)
    driver = bench.driver()
    for number in range(10):
        bench.write("in", ("abc"[number % 3], 1, number))
        plan = driver.plan_work()
        assert plan is not None
        outcome = driver.execute(plan)
        if number % 2:
            outcome = driver.execute(plan)
        if number % 3 == 0:
            driver.kill()
            driver = bench.driver()
            driver.run()
        else:
            driver.application_run.commit(plan, outcome)
    written = bench.read("out")
    assert len(written) == 10
    assert {key: row.value for key, row in driver.rows("latest").items()} == dict(written)


def test_edges_arrive_in_the_order_in_which_they_were_sent(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        moved = builder.stream("in").select_key(lambda key, value: "same")
        moved.group_by_key().aggregate(
            list,
            lambda _key, value, seen: [*seen, value],
            materialized=Materialized("seen", key_serde=Serdes.string(), value_serde=Serdes.json()),
        )

    found = []
    for way in ("as sent", "reversed"):
        bench = Bench(tmp_path / way, build, {"in": 3})
        for partition in range(3):
            bench.write("in", *((None, f"{partition}-{n}", 10) for n in range(3)), partition=partition)
        arrange = (lambda blobs: None) if way == "as sent" else (lambda blobs: blobs.reverse())
        driver = bench.driver(executor=LocalExecutor(arrange=arrange))
        driver.run()
        (store,) = [task for task in ("1_0", "1_1", "1_2") if "same" in driver.rows("seen", task)]
        found.append(driver.rows("seen", store)["same"].value)
    assert found[0] == found[1]
    assert len(found[0]) == 9
