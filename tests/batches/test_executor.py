"""Executors: later levels after a failure, and applications side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Materialized, Serdes, StreamsBuilder
from headrace.batches.application_run import ApplicationRun
from headrace.batches.executor import LocalExecutor
from headrace.batches.loop import Member, tick
from headrace.batches.plan import Plan
from headrace.batches.reports import BatchReport
from headrace.batches.shared_loop import SharedLoop
from headrace.errors import ProcessingError, StreamsError
from tests.app.kit import SOON
from tests.batches.kit import Bench, Build


def two_levels(check: Callable[[str, Any], None], seen: list[Any]) -> Build:
    """Moves records to another task by their value, and sums them there; ``check`` may raise on the way."""

    def move(key: str, value: Any) -> str:
        check(key, value)
        return f"{value}"

    def count(_key: str, value: Any, total: int) -> int:
        seen.append(value)
        return total + 1

    def build(builder: StreamsBuilder) -> None:
        counts = (
            builder.stream("in")
            .group_by(move)
            .aggregate(
                lambda: 0,
                count,
                materialized=Materialized("counts", key_serde=Serdes.string(), value_serde=Serdes.json()),
            )
        )
        counts.to_stream().to("out")

    return build


def refuse(_key: str, value: Any) -> None:
    if value == "bad":
        message = "this one is refused"
        raise ValueError(message)


def accept(_key: str, _value: Any) -> None:
    """Lets everything pass."""


class Several:
    """Applications with a log each, on one executor."""

    def __init__(self, directory: Path, executor: LocalExecutor, **builds: Build) -> None:
        self.executor = executor
        self.benches = {
            name: Bench(directory / name, build, {"in": 2, "out": 1}, statestore_cache_max_bytes=0)
            for name, build in builds.items()
        }
        self.runs = {
            name: ApplicationRun(bench.layout, bench.log, directory / name / "host", key=name)
            for name, bench in self.benches.items()
        }

    def add_all(self) -> None:
        for run in self.runs.values():
            self.executor.add(run.application)

    def plans(self) -> dict[str, Plan]:
        return {name: plan for name, run in self.runs.items() if (plan := run.next_plan()) is not None}


def test_a_failing_task_holds_back_later_levels_of_its_own_application_only(tmp_path: Path) -> None:
    seen: dict[str, list[Any]] = {"well": [], "ill": []}
    several = Several(
        tmp_path, LocalExecutor(), well=two_levels(refuse, seen["well"]), ill=two_levels(refuse, seen["ill"])
    )
    several.add_all()
    for name, bench in several.benches.items():
        bench.write("in", ("a", "x", 1), partition=0)
        bench.write("in", ("b", "bad" if name == "ill" else "y", 1), partition=1)
    plans = several.plans()
    outcomes = several.executor.run(plans)
    assert outcomes["well"].failure is None
    assert isinstance(outcomes["ill"].failure, ProcessingError)
    # A task of the first level had sent records already: they are part of an input, and nobody gets them.
    assert seen == {"well": ["x", "y"], "ill": []} or seen == {"well": ["y", "x"], "ill": []}
    several.runs["well"].commit(plans["well"], outcomes["well"])
    with pytest.raises(ProcessingError):
        several.runs["ill"].commit(plans["ill"], outcomes["ill"])
    assert sorted(several.benches["well"].read("out")) == [("x", 1), ("y", 1)]
    assert several.benches["ill"].read("out") == []
    several.executor.close()


def test_a_tick_runs_all_who_have_something_to_do_in_one_job(tmp_path: Path) -> None:
    jobs: list[set[str]] = []

    class Counting(LocalExecutor):
        def run(self, plans: Any, *, apart: bool = False) -> Any:
            jobs.append(set(plans))
            return super().run(plans)

    several = Several(tmp_path, Counting(), one=two_levels(accept, []), two=two_levels(accept, []))
    several.add_all()
    told: list[tuple[str, int]] = []
    members = [
        Member(run, lambda report, name=name: told.append((name, report.records_in)))  # type: ignore[misc]
        for name, run in several.runs.items()
    ]
    several.benches["one"].write("in", ("a", "x", 1))
    assert tick(several.executor, members)
    assert jobs == [{"one", "two"}]
    assert sorted(told) == [("one", 1), ("two", 0)]
    while tick(several.executor, members):
        """Whatever is left."""
    assert several.benches["one"].read("out") == [("x", 1)]
    several.executor.close()


class Collected:
    """A listener that can be waited on."""

    def __init__(self) -> None:
        self._records = threading.Semaphore(0)

    def __call__(self, report: BatchReport) -> None:
        if report.records_in:
            self._records.release(report.records_in)

    def wait(self, records: int = 1) -> None:
        for _ in range(records):
            assert self._records.acquire(timeout=SOON)


class InLoop:
    """Applications in a shared loop, each in the thread of whoever waits for it."""

    def __init__(self, several: Several, loop: SharedLoop) -> None:
        self.told = {name: Collected() for name in several.runs}
        self.paused = threading.Event()
        self.stopping = {name: threading.Event() for name in several.runs}
        self.members = {
            name: Member(run, self.told[name], is_paused=self.paused.is_set, is_stopping=self.stopping[name].is_set)
            for name, run in several.runs.items()
        }
        self.threads = {
            name: threading.Thread(target=loop.run, args=(member,)) for name, member in self.members.items()
        }
        for thread in self.threads.values():
            thread.start()

    def end(self, name: str) -> BaseException | None:
        self.stopping[name].set()
        self.threads[name].join(SOON)
        assert not self.threads[name].is_alive()
        return self.members[name].failure


def test_a_failure_in_a_shared_loop_ends_the_one_that_it_is_of(tmp_path: Path) -> None:
    several = Several(tmp_path, LocalExecutor(), well=two_levels(refuse, []), ill=two_levels(refuse, []))
    # They share a log in a real server; what a loop waits for are the topics of one log.
    loop = SharedLoop(several.executor, several.benches["well"].log)
    running = InLoop(several, loop)
    try:
        several.benches["ill"].write("in", ("a", "bad", 1))
        several.benches["well"].write("in", ("a", "x", 1))
        running.told["well"].wait()
        running.threads["ill"].join(SOON)
        assert isinstance(running.members["ill"].failure, ProcessingError)
        several.benches["well"].write("in", ("a", "y", 2))
        running.told["well"].wait()
        assert running.end("well") is None
    finally:
        loop.close()
        several.executor.close()
    assert several.benches["ill"].read("out") == []
    assert sorted(several.benches["well"].read("out")) == [("x", 1), ("y", 1)]


def test_a_slow_application_does_not_hold_up_the_others(tmp_path: Path) -> None:
    entered, opened = threading.Event(), threading.Event()

    def wait(_key: str, value: Any) -> None:
        if value == "slow":
            entered.set()
            assert opened.wait(SOON)

    several = Several(tmp_path, LocalExecutor(), quick=two_levels(accept, []), slow=two_levels(wait, []))
    loop = SharedLoop(several.executor, several.benches["quick"].log)
    running = InLoop(several, loop)
    try:
        # Those who are in the same job wait for it, so both are through with their first one before.
        for name, bench in several.benches.items():
            bench.write("in", ("a", "first", 0))
            running.told[name].wait()
        several.benches["slow"].write("in", ("a", "slow", 1))
        assert entered.wait(SOON)
        for number in range(3):
            several.benches["quick"].write("in", ("a", f"{number}", number))
            running.told["quick"].wait()
        assert several.benches["slow"].read("out") == [("first", 1)]
        opened.set()
        running.told["slow"].wait()
        assert [running.end(name) for name in ("quick", "slow")] == [None, None]
    finally:
        opened.set()
        loop.close()
        several.executor.close()
    assert several.benches["slow"].read("out") == [("first", 1), ("slow", 1)]


def test_an_application_whose_tasks_take_long_to_open_is_not_slow(tmp_path: Path) -> None:
    ran: list[tuple[set[str], bool]] = []

    class Opening(LocalExecutor):
        """Tells of tasks that took nine seconds, those of one application until they were open."""

        def run(self, plans: Any, *, apart: bool = False) -> Any:
            ran.append((set(plans), apart))
            taken = {"opened": 9.0, "slow": 0.0}
            return {
                key: replace(
                    outcome, reports=[replace(each, seconds=9.0, opening=taken[key]) for each in outcome.reports]
                )
                for key, outcome in super().run(plans).items()
            }

    several = Several(tmp_path, Opening(), opened=two_levels(accept, []), slow=two_levels(accept, []))
    loop = SharedLoop(several.executor, several.benches["slow"].log)
    running = InLoop(several, loop)
    try:
        for number in range(3):
            for name, bench in several.benches.items():
                bench.write("in", ("a", f"{number}", number), partition=0)
                running.told[name].wait()
        assert [running.end(name) for name in several.runs] == [None, None]
    finally:
        loop.close()
        several.executor.close()
    assert {apart for keys, apart in ran if "opened" in keys} == {False}
    assert ({"slow"}, True) in ran


class Endable(LocalExecutor):
    """Runs jobs that can be ended, as those of Spark can."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[set[str]] = []
        self.ended: list[set[str]] = []
        self._end = threading.Event()

    def run(self, plans: Any, *, apart: bool = False) -> Any:
        self.jobs.append(set(plans))
        if "hung" in plans and any(each.start for several in plans["hung"].ranges.values() for each in several):
            # Behind its first record.
            assert self._end.wait(SOON)
            self._end.clear()
            message = "the job was cancelled"
            raise StreamsError(message)
        return super().run(plans)

    def cancel(self, keys: Collection[str]) -> None:
        self.ended.append(set(keys))
        self._end.set()


def test_a_function_that_never_returns_does_not_hold_up_those_in_the_same_job(tmp_path: Path) -> None:
    executor = Endable()
    several = Several(tmp_path, executor, **{name: two_levels(accept, []) for name in ("one", "two", "hung")})
    loop = SharedLoop(executor, several.benches["one"].log, patience=timedelta(seconds=0.5))
    running = InLoop(several, loop)
    try:
        for name, bench in several.benches.items():
            bench.write("in", ("a", "first", 0), partition=0)
            running.told[name].wait()
        running.paused.set()
        for bench in several.benches.values():
            bench.write("in", ("a", "x", 1), partition=0)
        executor.jobs.clear()
        running.paused.clear()
        for name in ("one", "two"):
            running.told[name].wait()
        # Now it hangs alone, and the others share their jobs again.
        ended = list(executor.ended)
        assert all("hung" in job for job in ended)
        for number in range(3):
            for name in ("one", "two"):
                several.benches[name].write("in", ("a", f"{number}", 2 + number))
            for name in ("one", "two"):
                running.told[name].wait()
        assert [job for job in executor.jobs if "hung" in job] == [*ended, {"hung"}]
        assert executor.ended == ended
        assert [running.end(name) for name in ("one", "two")] == [None, None]
        # It ends when it is told to.
        running.stopping["hung"].set()
        loop.cancel("hung")
        running.threads["hung"].join(SOON)
        assert not running.threads["hung"].is_alive()
        assert executor.ended == [*ended, {"hung"}]
    finally:
        loop.close()
        executor.close()
    assert several.benches["hung"].read("out") == [("first", 1)]
    assert several.benches["one"].read("out") == [("first", 1), ("x", 1), ("0", 1), ("1", 1), ("2", 1)]


def test_a_job_that_fails_as_a_whole_is_tried_one_by_one(tmp_path: Path) -> None:
    class Breaking(LocalExecutor):
        """Ends as a whole if a certain application is in the job, as a worker does that runs out of memory."""

        def run(self, plans: Any, *, apart: bool = False) -> Any:
            if "ill" in plans and plans["ill"].ranges:
                message = "the worker was killed"
                raise StreamsError(message)
            return super().run(plans)

    several = Several(tmp_path, Breaking(), well=two_levels(accept, []), ill=two_levels(accept, []))
    for bench in several.benches.values():
        bench.write("in", ("a", "x", 1))
    loop = SharedLoop(several.executor, several.benches["well"].log)
    running = InLoop(several, loop)
    try:
        running.told["well"].wait()
        running.threads["ill"].join(SOON)
        assert "the worker was killed" in str(running.members["ill"].failure)
        assert running.end("well") is None
    finally:
        loop.close()
        several.executor.close()
    assert several.benches["well"].read("out") == [("x", 1)]
