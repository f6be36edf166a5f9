"""The run of an application: fencing, batches that were begun, failures that pass, ends of input."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import EmbeddedLog, Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.batches import application_run
from headrace.batches.executor import LocalExecutor
from headrace.batches.plan import Plan, Range
from headrace.batches.reports import BatchReport, Outcome, TaskReport
from headrace.errors import (
    FencedError,
    IncompatibleTopologyError,
    MissingInternalTopicsError,
    MissingSourceTopicError,
    RetriableError,
)
from headrace.handlers import StreamThreadExceptionResponse
from headrace.runtime.task_clock import task_clock_ms
from headrace.topics.embedded.journal import EmbeddedJournal
from headrace.topics.journal import JournalState
from tests.app.kit import SOON
from tests.batches.kit import Bench, summing


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, summing, {"in": 2, "out": 1}, statestore_cache_max_bytes=0)


def test_the_older_of_two_drivers_is_fenced_when_a_task_is_opened(bench: Bench) -> None:
    bench.write("in", ("a", 1, 10), partition=0)
    old = bench.driver("old")
    plan = old.plan_work()
    assert plan is not None
    new = bench.driver("new")
    outcome = old.execute(plan)
    assert isinstance(outcome.failure, FencedError)
    with pytest.raises(FencedError, match="another instance has taken over"):
        old.application_run.commit(plan, outcome)
    new.run()
    assert bench.read("out") == [("a", 1)]


def test_the_older_of_two_drivers_is_fenced_when_it_commits(bench: Bench) -> None:
    old = bench.driver("old")
    bench.write("in", ("a", 1, 10), partition=0)
    old.run()
    bench.write("in", ("a", 2, 20), partition=0)
    plan = old.plan_work()
    assert plan is not None
    outcome = old.execute(plan)
    assert outcome.failure is None
    new = bench.driver("new")
    with pytest.raises(FencedError):
        old.application_run.commit(plan, outcome)
    assert bench.read("out") == [("a", 1)]
    new.run()
    # The other one's batch is another one: both have the same number, and only one of them is there.
    with pytest.raises(FencedError):
        old.application_run.commit(plan, outcome)
    assert bench.read("out") == [("a", 1), ("a", 3)]
    assert bench.read(bench.changelog("totals")) == [("a", 1), ("a", 3)]


def test_two_drivers_that_take_turns_never_repeat_anything(bench: Bench) -> None:
    drivers = [bench.driver(f"{number}") for number in range(2)]
    for number in range(20):
        bench.write("in", ("a", 1, number), partition=0)
        turn = number % 2
        try:
            drivers[turn].step()
        except FencedError:
            drivers[turn].close()
            drivers[turn] = bench.driver(f"{turn}")
            drivers[turn].run()
    assert [value for _, value in bench.read("out")] == list(range(1, 21))


def test_an_engine_that_is_deposed_ends_with_that_error_and_does_not_come_back(bench: Bench) -> None:
    def application(host: str) -> Streams:
        config = {**bench.config.to_mapping(), "state.dir": str(bench.directory / host), "log.sync": "none"}
        return Streams(bench.topology, StreamsConfig.of(config), log=bench.log, engine=local_engine)

    started, counted = threading.Event(), threading.Semaphore(0)
    old, new = application("old"), application("new")
    # Whoever comes back deposes the other one in its turn.
    old.set_uncaught_exception_handler(lambda _error: StreamThreadExceptionResponse.REPLACE_THREAD)
    old.add_batch_listener(lambda _batch: started.set())
    taken_over = threading.Event()
    new.add_batch_listener(lambda _batch: taken_over.set())
    new.add_batch_listener(lambda batch: counted.release(batch.records_in) if batch.records_in else None)
    old.start()
    assert started.wait(SOON)
    with new:
        assert taken_over.wait(SOON)
        for number in (1, 2):
            bench.write("in", ("a", number, 10), partition=0)
            assert counted.acquire(timeout=SOON)
        with pytest.raises(FencedError):
            old.wait(timedelta(seconds=SOON))
    assert bench.read("out") == [("a", 1), ("a", 3)]


class BegunLog(EmbeddedLog):
    """A log whose journal says that a batch was begun, as Kafka's does after a crash of the driver."""

    begun: bytes | None = None
    recorded: list[int]

    def open_journal(self, application: str, tasks: Any) -> EmbeddedJournal:
        journal = super().open_journal(application, tasks)
        state = journal.state
        journal.state = JournalState(state.batch_id, state.positions, state.tasks, self.begun)
        journal.begin = lambda batch_id, plan: self.recorded.append(batch_id)  # type: ignore[method-assign]
        return journal


@pytest.fixture
def begun(tmp_path: Path) -> BegunLog:
    log = BegunLog(tmp_path / "log", sync="none", map_size=1 << 22)
    log.recorded = []
    return log


def test_a_batch_that_was_begun_is_finished_as_it_was_planned(tmp_path: Path, begun: BegunLog) -> None:
    bench = Bench(tmp_path, summing, {"in": 2, "out": 1}, log=begun, statestore_cache_max_bytes=0)
    bench.write("in", *(("a", number, number) for number in range(10)), partition=0)
    plan = Plan(0, 77, {"0_0": (Range("in", 0, 0, 4, None),)})
    begun.begun = plan.pack()
    driver = bench.driver()
    first = driver.plan_work()
    assert first == plan
    driver.application_run.commit(first, driver.execute(first))
    begun.begun = None
    # Its plan is there already; those of later batches are recorded before they run.
    assert begun.recorded == []
    driver.run()
    assert begun.recorded == [1]
    assert [value for _, value in bench.read("out")] == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]


def test_a_batch_that_other_tasks_have_begun_cannot_be_finished(tmp_path: Path, begun: BegunLog) -> None:
    bench = Bench(tmp_path, summing, {"in": 2, "out": 1}, log=begun)
    begun.begun = Plan(0, 77, {"0_0": (Range("in", 0, 0, 4, None),), "3_1": ()}).pack()
    with pytest.raises(
        IncompatibleTopologyError, match=r"batch 0 was begun .* that this topology has not: 3_1; run the"
    ):
        bench.driver()


def test_a_plan_is_recorded_once_however_often_it_is_run(tmp_path: Path, begun: BegunLog) -> None:
    bench = Bench(tmp_path, summing, {"in": 1, "out": 1}, log=begun)
    driver = bench.driver()
    plan = driver.plan_work()
    assert plan is not None
    driver.application_run.commit(plan, Outcome([], RetriableError("away")))
    driver.application_run._retry_at = 0.0
    assert driver.plan_work() == plan
    assert begun.recorded == [0]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_plan_that_is_carried_out_again_later_goes_by_its_own_clock(
    tmp_path: Path, begun: BegunLog, *, restarted: bool
) -> None:
    seen: list[tuple[int, int]] = []
    away: list[RetriableError] = []

    def stamp(value: int) -> int:
        seen.append((value, task_clock_ms()))
        return task_clock_ms()

    def be_away_once() -> None:
        if seen and not away:
            away.append(RetriableError("the broker is away"))
            raise away[0]

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(stamp).to("out")

    bench = Bench(tmp_path, build, {"in": 1, "out": 1}, log=begun)
    bench.write("in", ("a", 1, 10))
    driver = bench.driver(executor=LocalExecutor(check=be_away_once))
    plan = driver.plan_work()
    assert plan is not None
    assert driver.application_run.commit(plan, driver.execute(plan)) is None
    assert bench.read("out") == []
    bench.clock_ms = 9_000
    if restarted:
        driver.kill()
        begun.begun = plan.pack()
        driver = bench.driver("another")
    driver.application_run._retry_at = 0.0
    bench.write("in", ("a", 2, 20))
    driver.run()
    assert seen == [(1, 1_000), (1, 1_000), (2, 9_000)]
    assert bench.read("out") == [("a", 1_000), ("a", 9_000)]


def test_a_failure_that_may_pass_is_tried_again_until_the_time_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    driver = bench.driver()
    run = driver.application_run
    bench.write("in", ("a", 1, 10), partition=0)
    plan = driver.plan_work()
    assert plan is not None
    away = Outcome([], RetriableError("the broker is away"))
    assert run.commit(plan, away) is None
    # Not at once, and the same again.
    assert run.next_plan() is None
    assert run.waits_for() == ({}, application_run._RETRY_S)
    patience_s = bench.config.task_timeout.total_seconds()
    now += patience_s / 2
    assert run.next_plan() == plan
    assert run.commit(plan, away) is None
    now += patience_s / 2 + 1
    assert run.next_plan() == plan
    with pytest.raises(RetriableError, match="the broker is away"):
        run.commit(plan, away)


def test_patience_begins_anew_after_a_success(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    driver = bench.driver()
    run = driver.application_run
    away = Outcome([], RetriableError("away"))
    for number in range(5):
        bench.write("in", ("a", 1, number), partition=0)
        plan = run.next_plan()
        assert plan is not None
        assert run.commit(plan, away) is None
        now += bench.config.task_timeout.total_seconds() - 1
        assert run.commit(plan, driver.execute(plan)) is not None
    assert bench.read("out")[-1] == ("a", 5)


def test_a_failure_of_a_function_is_raised_at_once(bench: Bench) -> None:
    driver = bench.driver()
    plan = driver.plan_work()
    assert plan is not None
    with pytest.raises(ValueError, match="no"):
        driver.application_run.commit(plan, Outcome([], ValueError("no")))


def test_a_report_adds_up_what_tasks_have_told(bench: Bench) -> None:
    driver = bench.driver()
    bench.write("in", ("a", 1, 10), ("b", 1, 10), partition=0)
    bench.write("in", ("c", 1, 10), partition=1)
    report = driver.step()
    assert isinstance(report, BatchReport)
    assert (report.batch_id, report.records_in, report.records_out, report.lag) == (0, 3, 3, 0)
    assert set(report.phases) == {"wait", "run", "publish"}
    assert {task.task: task.records for task in report.tasks} == {"0_0": 2, "0_1": 1}
    assert all(task.receipt is None for task in report.tasks)


def test_positions_of_inputs_that_nothing_was_read_of_are_kept(tmp_path: Path) -> None:
    """Where "latest" is, is decided once."""
    bench = Bench(tmp_path, summing, {"in": 2, "out": 1}, log=None, **{"consumer.auto.offset.reset": "latest"})
    bench.write("in", ("a", 1, 10), partition=0)
    bench.driver("one").run()
    bench.write("in", ("a", 2, 20), partition=0)
    bench.write("in", ("b", 5, 20), partition=1)
    bench.driver("two").run()
    assert sorted(bench.read("out")) == [("a", 2), ("b", 5)]


def engine_on(bench: Bench, listener: Any) -> Any:
    return local_engine(
        bench.topology, bench.config, bench.log, listener=listener, directory=bench.directory / "engine"
    )


class Listener:
    def __init__(self, on_batch: Callable[[BatchReport], None] = lambda _: None) -> None:
        self.started = 0
        self.batches: list[BatchReport] = []
        self._on_batch = on_batch

    def on_started(self) -> None:
        self.started += 1

    def on_restores(self, tasks: Sequence[TaskReport]) -> None:
        """Nobody looks at it."""

    def on_moves(self, tasks: Collection[str]) -> None:
        """Nobody looks at it."""

    def on_batch(self, batch: BatchReport) -> None:
        self.batches.append(batch)
        self._on_batch(batch)


def test_an_engine_that_is_to_do_what_is_available_ends_with_it(bench: Bench) -> None:
    bench.write("in", *(("a", 1, number) for number in range(5)), partition=0)
    listener = Listener()
    engine = engine_on(bench, listener)
    engine.run(until_end=True)
    assert bench.read("out")[-1] == ("a", 5)
    assert listener.started == 1
    metrics = engine.metrics()
    assert (metrics["records-consumed-total"], metrics["lag"]) == (5, 0)
    # It can be run again, and finds nothing.
    engine.run(until_end=True)
    assert len(bench.read("out")) == 5


def test_an_engine_that_was_stopped_first_does_nothing(bench: Bench) -> None:
    bench.write("in", ("a", 1, 10), partition=0)
    engine = engine_on(bench, Listener())
    engine.stop()
    engine.run()
    assert bench.read("out") == []


def test_a_paused_engine_runs_nothing_until_it_is_resumed(bench: Bench) -> None:
    bench.write("in", ("a", 1, 10), partition=0)
    done = threading.Event()
    listener = Listener(lambda batch: done.set() if batch.records_in else None)
    engine = engine_on(bench, listener)
    engine.pause()
    thread = threading.Thread(target=engine.run)
    thread.start()
    assert not done.wait(0.3)
    assert listener.batches == []
    engine.resume()
    assert done.wait(SOON)
    engine.stop()
    thread.join(SOON)
    assert not thread.is_alive()
    assert bench.read("out") == [("a", 1)]


def test_input_that_is_deleted_between_plan_and_task_is_missed_and_no_other_suggested(bench: Bench) -> None:
    bench.log.create_topic("inn")
    bench.write("in", ("a", 1, 10), partition=0)
    driver = bench.driver()
    plan = driver.plan_work()
    assert plan is not None
    bench.log.delete_topic("in")
    outcome = driver.execute(plan)
    with pytest.raises(MissingSourceTopicError, match=r"'in', which it reads, was deleted") as caught:
        driver.application_run.commit(plan, outcome)
    assert "inn" not in str(caught.value)
    driver.kill()


def test_changelog_that_is_deleted_between_task_and_commit_is_missed(bench: Bench) -> None:
    bench.log.create_topic("apq-totals-changelog", partitions=2)
    driver = bench.driver()
    bench.write("in", ("a", 1, 10), partition=0)
    plan = driver.plan_work()
    assert plan is not None
    outcome = driver.execute(plan)
    bench.log.delete_topic("app-totals-changelog")
    with pytest.raises(MissingInternalTopicsError, match="'app-totals-changelog' was deleted while it ran") as caught:
        driver.application_run.commit(plan, outcome)
    assert "apq" not in str(caught.value)
    driver.kill()


def test_topic_of_a_global_table_that_is_deleted_is_missed_and_no_other_suggested(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        rates = builder.global_table("rates")
        builder.stream("in").join(rates, lambda value, rate: rate, key_selector=lambda key, value: key).to("out")

    bench = Bench(tmp_path, build, {"in": 1, "rates": 1, "rate": 1, "out": 1})
    driver = bench.driver()
    bench.write("in", ("a", 1, 10))
    bench.log.delete_topic("rates")
    with pytest.raises(MissingSourceTopicError, match=r"'rates', which it reads, was deleted") as caught:
        driver.run()
    assert "'rate'" not in str(caught.value)
    driver.close()


def test_changelog_that_is_deleted_is_missed_and_none_of_another_application_suggested(bench: Bench) -> None:
    bench.log.create_topic("apq-totals-changelog", partitions=2)
    driver = bench.driver()
    bench.write("in", ("a", 1, 10), partition=0)
    driver.run()
    bench.write("in", ("a", 1, 10), partition=0)
    bench.log.delete_topic("app-totals-changelog")
    with pytest.raises(
        MissingInternalTopicsError, match=r"'app-totals-changelog' was deleted.*headrace reset"
    ) as caught:
        driver.run()
    assert caught.value.topics == ("app-totals-changelog",)
    assert "apq" not in str(caught.value)
    driver.kill()
