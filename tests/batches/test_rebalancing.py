"""REBALANCING while tasks with work are restored or move, and RUNNING once all of them run."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace import EmbeddedLog, Materialized, Streams, StreamsBuilder
from headrace.app.streams_state import StreamsState
from headrace.batches import restore, standby
from headrace.batches.application import Application
from headrace.batches.batch_engine import BatchEngine, own_loop
from headrace.batches.executor import LocalExecutor
from headrace.batches.plan import Plan
from headrace.batches.reports import Outcome, StoreRestore
from tests.app.kit import SOON, States, config

REBALANCING, RUNNING = StreamsState.REBALANCING, StreamsState.RUNNING
PENDING_SHUTDOWN, NOT_RUNNING = StreamsState.PENDING_SHUTDOWN, StreamsState.NOT_RUNNING


class Cluster(LocalExecutor):
    """Runs tasks in this process as if in another one that can be lost, or that tasks can leave."""

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        """Whether the process with all tasks and its directory is gone before the next micro-batch."""
        self.leaving: frozenset[str] = frozenset()
        """Tasks that run elsewhere from the next micro-batch on."""
        self.let_run: Callable[[], object] = lambda: None
        self.let_close: Callable[[], object] = lambda: None
        """What is called before a micro-batch, and before the tasks are closed."""
        self._application: Application | None = None

    def add(self, application: Application) -> None:
        self._application = application
        super().add(application)

    def remove(self, application: Application) -> None:
        self.let_close()
        super().remove(application)

    def moving(self, plans: Mapping[str, Plan]) -> Mapping[str, Collection[str]]:
        leaving, self.leaving = self.leaving, frozenset()
        return {key: leaving.intersection(plan.ranges) for key, plan in plans.items()}

    def run(self, plans: Mapping[str, Plan], *, apart: bool = False) -> Mapping[str, Outcome]:
        if self.is_lost and self._application is not None:
            self.is_lost = False
            super().remove(self._application)
            for place in self._application.layout.tasks:
                shutil.rmtree(self._application.directory / place.name)
            super().add(self._application)
        self.let_run()
        return super().run(plans, apart=apart)


class Batches:
    """Waits for micro-batches with records."""

    def __init__(self) -> None:
        self._records = 0
        self._changed = threading.Condition()

    def __call__(self, batch: Any) -> None:
        with self._changed:
            self._records += batch.records_in
            self._changed.notify_all()

    def until(self, records: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._records >= records, SOON)


class Suspensions:
    """A restore listener that remembers how restores have ended."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, int, int]] = []

    def on_restore_start(self, topic: str, partition: int, store: str, start: int, end: int) -> None: ...
    def on_batch_restored(self, topic: str, partition: int, store: str, offset: int, count: int) -> None: ...
    def on_restore_end(self, topic: str, partition: int, store: str, total: int) -> None:
        self.ends.append(("end", partition, total))

    def on_restore_suspended(self, topic: str, partition: int, store: str, total: int) -> None:
        self.ends.append(("suspended", partition, total))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        log.create_topic("in", partitions=2)
        yield log


def application(
    log: EmbeddedLog, directory: Path, cluster: Cluster, **settings: Any
) -> tuple[Streams, States, Batches]:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))

    def make(topology: Any, config: Any, log: Any, *, listener: Any, directory: Path) -> BatchEngine:
        loop = lambda *_: own_loop(cluster, log)  # noqa: E731
        return BatchEngine(topology, config, log, listener=listener, directory=directory, open_loop=loop)

    streams = Streams(builder.build(), config(directory, **settings), log=log, engine=make)
    states, batches = States(), Batches()
    streams.set_state_listener(states)
    streams.add_batch_listener(batches)
    return streams, states, batches


def write(log: EmbeddedLog, *partitions: int) -> None:
    log.append("in", [(partition, 0, b"k%d" % partition, b"1", ()) for partition in partitions])


def test_loss_of_a_process_is_told_when_its_tasks_were_restored(log: EmbeddedLog, tmp_path: Path) -> None:
    cluster, listener = Cluster(), Suspensions()
    streams, states, batches = application(log, tmp_path, cluster)
    streams.set_global_state_restore_listener(listener)
    with streams:
        write(log, 0, 1)
        batches.until(2)
        cluster.is_lost = True
        write(log, 0)
        batches.until(3)
        # The other one has had no work yet, and is not missed.
        assert listener.ends == [("end", 0, 1)]
        write(log, 1, 0)
        batches.until(5)
    assert listener.ends == [("end", 0, 1), ("end", 1, 1)]
    assert states.seen == [
        REBALANCING,
        RUNNING,
        REBALANCING,
        RUNNING,
        REBALANCING,
        RUNNING,
        PENDING_SHUTDOWN,
        NOT_RUNNING,
    ]


def test_task_with_work_that_moves_is_told_of_before_it_runs_elsewhere(log: EmbeddedLog, tmp_path: Path) -> None:
    cluster = Cluster()
    streams, states, batches = application(log, tmp_path, cluster)
    with streams:
        write(log, 0, 1)
        batches.until(2)
        seen: list[StreamsState] = []
        cluster.let_run = lambda: seen.append(streams.state)
        cluster.leaving = frozenset({"0_1"})
        write(log, 0)
        batches.until(3)
        # A task that moves without having work holds up nothing.
        assert (set(seen), streams.state) == ({RUNNING}, RUNNING)
        seen.clear()
        cluster.leaving = frozenset({"0_1"})
        write(log, 1)
        batches.until(4)
    assert seen[0] is REBALANCING
    assert states.seen == [REBALANCING, RUNNING, REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]


def prepare(log: EmbeddedLog, directory: Path) -> None:
    """Leaves an application whose second task has much to restore."""
    write(log, 0, 1)
    application(log, directory, Cluster())[0].run(until_end=True)
    shutil.rmtree(directory / "app")


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is waited for by the restore of the second task."""
    go_on, follow = threading.Event(), restore.follow_changelogs

    def follow_slowly(layout: Any, place: Any, *others: Any) -> Iterator[StoreRestore]:
        if place.name == "0_1":
            assert go_on.wait(SOON)
        yield from follow(layout, place, *others)

    monkeypatch.setattr(standby, "follow_changelogs", follow_slowly)
    return go_on


def test_start_is_over_when_all_tasks_that_are_restored_take_part(
    log: EmbeddedLog, tmp_path: Path, go_on: threading.Event
) -> None:
    prepare(log, tmp_path)
    streams, states, batches = application(log, tmp_path, Cluster(), acceptable_recovery_lag=0)
    with streams:
        write(log, 0)
        batches.until(1)
        # The first task runs already.
        assert states.seen == [REBALANCING]
        go_on.set()
        states.until(RUNNING)
    assert states.seen == [REBALANCING, RUNNING, PENDING_SHUTDOWN, NOT_RUNNING]


def test_restore_that_the_end_of_the_application_cuts_off_is_suspended(
    log: EmbeddedLog, tmp_path: Path, go_on: threading.Event
) -> None:
    prepare(log, tmp_path)
    listener, cluster = Suspensions(), Cluster()
    cluster.let_close = go_on.set
    streams, _, batches = application(log, tmp_path, cluster, acceptable_recovery_lag=0)
    streams.set_global_state_restore_listener(listener)
    with streams:
        write(log, 0)
        batches.until(1)
    assert listener.ends == [("end", 0, 1), ("suspended", 1, 0)]
