"""Tasks that are restored while others go on."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace import Grouped, Materialized, StreamsBuilder
from headrace.batches import restore as restoring
from headrace.batches.executor import LocalExecutor
from headrace.batches.layout import TaskPlace
from headrace.batches.readiness import Readiness
from headrace.batches.reports import StoreRestore
from headrace.batches.standby import StandbyCopy
from headrace.batches.task_runner import TaskRunner
from headrace.errors import LogError
from headrace.topics.log import Raw
from tests.app.kit import SOON
from tests.batches.kit import Bench, Driver, summing


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(
        tmp_path,
        summing,
        {"in": 2, "out": 1},
        statestore_cache_max_bytes=0,
        acceptable_recovery_lag=5,
    )
    made.write("in", *((f"k{number}", 1, number) for number in range(100)), partition=0)
    made.write("in", ("few", 1, 1), partition=1)
    driver = made.driver("one")
    driver.run()
    driver.close()
    return made


def until_all_run(driver: Driver) -> None:
    """Goes on until no task waits for being restored."""
    deadline = time.monotonic() + SOON
    while driver.application_run._planner._readiness.waiting:  # type: ignore[attr-defined]  # the planner's own
        assert time.monotonic() < deadline
        driver.run()
        threading.Event().wait(0.01)
    driver.run()


def test_others_go_on_while_a_task_is_restored(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = threading.Event()
    read = bench.log.read
    topic = bench.changelog("totals")

    def slow(*args: Any, **options: Any) -> list[Raw]:
        if args[:2] == (topic, 0):
            assert opened.wait(SOON)
        return read(*args, **options)

    monkeypatch.setattr(bench.log, "read", slow)
    bench.write("in", ("k1", 1, 200), partition=0)
    bench.write("in", ("few", 1, 200), partition=1)
    driver = bench.driver("two")
    driver.run()
    # The one with little to restore takes part at once.
    assert bench.read("out")[-1] == ("few", 2)
    assert not driver.runner.knows("0_0")
    opened.set()
    until_all_run(driver)
    assert bench.read("out")[-1] == ("k1", 2)
    assert len(driver.rows("totals", "0_0")) == 100
    driver.close()


def test_a_restored_copy_is_taken_over_by_its_task(bench: Bench) -> None:
    driver = bench.driver("two")
    until_all_run(driver)
    # What was restored ahead needs not be restored once more.
    bench.write("in", ("k1", 1, 200), partition=0)
    (report,) = driver.run()
    assert [task.restored for task in report.tasks] == [0]
    assert bench.read("out")[-1] == ("k1", 2)
    driver.close()


def test_a_standby_follows_what_the_task_commits_elsewhere(bench: Bench) -> None:
    standby_bench = bench.driver("standby").application_run.application
    (place, _) = bench.layout.tasks
    copy = StandbyCopy(standby_bench, place)
    copy.open()
    assert copy.lag == 100
    copy.start()
    driver = bench.driver("one")
    until_all_run(driver)
    bench.write("in", *((f"k{number}", 1, number) for number in range(50)), partition=0)
    driver.run()
    driver.close()
    deadline = time.monotonic() + SOON
    end = bench.log.end_offsets([(bench.changelog("totals"), 0)])[bench.changelog("totals"), 0]
    while (applied := copy.open().applied("totals")) is None or applied.offset < end:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    copy.close()
    shutil.rmtree(bench.directory / "one")
    again = bench.driver("standby")
    bench.write("in", ("k1", 1, 300), partition=0)
    until_all_run(again)
    assert again.rows("totals", "0_0")["k1"].value == 3
    assert bench.read("out")[-1] == ("k1", 3)
    again.close()


def test_a_copy_that_cannot_be_restored_ahead_is_restored_by_its_task(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = 1
    find = restoring.find_restores

    def failing(*args: Any) -> list[StoreRestore]:
        nonlocal failures
        if failures:
            failures -= 1
            message = "the disk is gone"
            raise LogError(message)
        return find(*args)

    monkeypatch.setattr("headrace.batches.standby.find_restores", failing)
    driver = bench.driver("two")
    until_all_run(driver)
    assert "cannot be restored ahead: the disk is gone" in caplog.text
    assert len(driver.rows("totals", "0_0")) == 100
    driver.close()


class Machines:
    """A driver whose tasks run on one of two machines, and the tasks of each machine."""

    def __init__(self, bench: Bench) -> None:
        self.driver = bench.driver("one")
        application = self.driver.application_run.application
        self.executors = {"one": self.driver.executor, "two": LocalExecutor()}
        self.executors["two"].add(replace(application, directory=bench.directory / "two"))

    def runner(self, host: str) -> TaskRunner:
        return self.executors[host]._runners[self.driver.application_run.key][1]

    def standby(self, host: str, place: TaskPlace) -> StandbyCopy:
        """Follows a task on a machine until nothing is missing there."""
        deadline = time.monotonic() + SOON
        while self.runner(host).follow(place) != 0:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        return self.runner(host)._standbys[place.name]

    def close(self) -> None:
        self.driver.application_run.close()
        for executor in self.executors.values():
            executor.close()


@pytest.fixture
def machines(bench: Bench) -> Iterator[Machines]:
    made = Machines(bench)
    until_all_run(made.driver)
    yield made
    made.close()


def read_by(standby: StandbyCopy) -> int:
    return sum(each.records for each in standby.restores)


def test_a_promoted_standby_restores_nothing_that_it_has_followed(bench: Bench, machines: Machines) -> None:
    place = bench.layout.by_name["0_0"]
    assert read_by(machines.standby("two", place)) == 100
    bench.write("in", *((f"k{number}", 1, 200) for number in range(4)), partition=0)
    machines.driver.run()
    deadline = time.monotonic() + SOON
    while read_by(standby := machines.standby("two", place)) < 104:
        assert time.monotonic() < deadline
    standby.close()
    # These it has not seen.
    bench.write("in", *((f"k{number}", 1, 300) for number in range(3)), partition=0)
    machines.driver.run()
    bench.write("in", ("k1", 1, 400), partition=0)
    machines.driver.executor = machines.executors["two"]
    (report,) = machines.driver.run()
    assert [(task.task, task.restored) for task in report.tasks] == [("0_0", 3)]
    assert bench.read("out")[-1] == ("k1", 4)
    assert not machines.runner("two")._standbys


def test_a_task_that_has_moved_away_leaves_a_standby(bench: Bench, machines: Machines) -> None:
    place = bench.layout.by_name["0_0"]
    bench.write("in", ("k1", 1, 200), partition=0)
    machines.driver.run()
    assert machines.runner("one").knows("0_0")
    machines.standby("two", place)
    bench.write("in", ("k1", 1, 300), partition=0)
    machines.driver.executor = machines.executors["two"]
    machines.driver.run()
    # What is open on the first machine is stale. It goes on from its copy: it does not begin anew.
    standby = machines.standby("one", place)
    assert not machines.runner("one").knows("0_0")
    assert read_by(standby) < 5
    bench.write("in", ("k1", 1, 400), partition=0)
    machines.driver.executor = machines.executors["one"]
    machines.driver.run()
    assert bench.read("out")[-1] == ("k1", 4)


def test_what_is_not_wanted_any_more_is_closed(bench: Bench, machines: Machines) -> None:
    first, second = bench.layout.tasks
    machines.standby("two", first)
    machines.runner("two").close_task(first)
    assert not machines.runner("two")._standbys
    bench.write("in", ("few", 1, 200), partition=1)
    machines.driver.run()
    machines.runner("one").close_task(second)
    assert not machines.runner("one").knows(second.name)
    bench.write("in", ("few", 1, 300), partition=1)
    machines.driver.run()
    assert bench.read("out")[-1] == ("few", 3)


def test_a_standby_that_has_failed_is_opened_anew(
    bench: Bench, machines: Machines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = bench.layout.by_name["0_0"]
    follow = restoring.follow_changelogs

    def failing(*args: Any) -> Iterator[StoreRestore]:
        monkeypatch.setattr("headrace.batches.standby.follow_changelogs", follow)
        message = "no room"
        raise OSError(message)

    monkeypatch.setattr("headrace.batches.standby.follow_changelogs", failing)
    assert machines.runner("two").follow(place) in (None, 100)
    machines.standby("two", place)
    assert "the copy of task 0_0 does not follow: no room" in caplog.text


def test_a_task_without_state_needs_no_standby(tmp_path: Path) -> None:
    bench = Bench(tmp_path, lambda builder: builder.stream("in").to("out"), {"in": 1, "out": 1})
    driver = bench.driver()
    assert driver.runner.follow(bench.layout.tasks[0]) == 0
    assert not driver.runner._standbys
    driver.close()


def test_rows_in_memory_are_read_again_wherever_a_task_goes(tmp_path: Path) -> None:
    def counting(builder: StreamsBuilder) -> None:
        store = Materialized[str, int]("counts", store_type="in_memory")
        builder.stream("in").group_by_key().count(materialized=store)

    bench = Bench(tmp_path, counting, {"in": 1}, statestore_cache_max_bytes=0)
    bench.write("in", *((f"k{number}", 1, number) for number in range(30)))
    driver = bench.driver("one")
    driver.run()
    runner = driver.runner
    (place,) = bench.layout.tasks
    # Nothing is followed, and nothing is caught up: the task would read all of it.
    deadline = time.monotonic() + SOON
    while (lag := runner.follow(place)) is None:
        assert time.monotonic() < deadline
    assert lag == 30
    driver.close()


def two_levels(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by(lambda key, value: f"{value}", Grouped("moved"))
    grouped.count(materialized=Materialized("counts"))
    builder.stream("other").group_by_key().count(materialized=Materialized("others"))


def test_a_task_runs_only_if_those_behind_it_can(tmp_path: Path) -> None:
    layout = Bench(tmp_path, two_levels, {"in": 2, "other": 1}).layout
    names = {place.name for place in layout.tasks}
    by_store = {store: place.name for place in layout.tasks for store in place.changelogs if place.id.partition == 0}
    readiness = Readiness(layout, names, acceptable_lag=10)
    # Those without stores have nothing to restore; but what they send would have nobody to get it.
    assert readiness.runnable == frozenset()
    readiness.note({by_store["others"]: 10})
    assert readiness.runnable == {by_store["others"]}
    behind = sorted(readiness.waiting)
    readiness.note({behind[0]: 3})
    assert readiness.runnable == {by_store["others"], behind[0]}
    readiness.note({behind[1]: 11})
    assert readiness.waiting == {behind[1]: 11}
    readiness.note({behind[1]: 0})
    assert readiness.runnable == names


def test_tasks_that_have_never_committed_have_nothing_to_wait_for(tmp_path: Path) -> None:
    layout = Bench(tmp_path, two_levels, {"in": 2, "other": 1}).layout
    assert Readiness(layout, [], acceptable_lag=0).runnable == {place.name for place in layout.tasks}
