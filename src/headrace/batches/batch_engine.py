"""The engine of an application: micro-batch after micro-batch, on whichever executor it is given."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from headrace.batches.application_run import ApplicationRun
from headrace.batches.batch_thread import Abandoned, BatchThread, CommitGuard
from headrace.batches.executor import Executor
from headrace.batches.inputs import check_deleted, check_inputs, ids_of, input_partitions, named_inputs
from headrace.batches.layout import Layout
from headrace.batches.loop import Loop, Member, SingleLoop
from headrace.batches.planner import Planner
from headrace.batches.reports import BatchReport, TaskReport
from headrace.config import StreamsConfig
from headrace.errors import IncompatibleTopologyError, ProcessorStateError, UnknownTopicError
from headrace.topics.embedded.housekeeping import Housekeeping
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)

_PATIENCE_S = 2.0
"""For a thread that was left behind to give back what it has open."""

_left_behind: dict[Path, BatchThread] = {}
"""The threads of this process that were left behind, by the directory whose files they have open until they end."""


class EngineListener(Protocol):
    """Whom the engine tells what it has done."""

    def on_started(self) -> None: ...
    def on_batch(self, batch: BatchReport) -> None: ...
    def on_restores(self, tasks: Sequence[TaskReport]) -> None: ...
    def on_moves(self, tasks: Collection[str]) -> None: ...


OpenLoop: TypeAlias = Callable[[StreamsConfig, Path, Callable[[], None]], AbstractContextManager[Loop]]
"""(config, directory, what to call before every commit): opens the loop of an engine."""


class BatchEngine:
    """Runs a topology until it is stopped; see ``headrace.app.engine.Engine``."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: DurableLog,
        *,
        listener: EngineListener,
        directory: Path,
        open_loop: OpenLoop,
    ) -> None:
        self._topology, self._config, self._log = topology, config, log
        self._listener, self._directory = listener, directory
        self._open_loop = open_loop
        self._stopping, self._paused = threading.Event(), threading.Event()
        self._is_cancelled = False
        self._worker: BatchThread | None = None
        self._loop: Loop | None = None
        self._tasks: set[str] | None = None
        self._counts: dict[str, int] = {}
        self._metrics: dict[str, Any] = {}

    def run(self, *, until_end: bool = False) -> None:
        """Blocks until ``stop``, or with ``until_end`` until everything that is there now is processed."""
        if self._stopping.is_set():
            return
        self._check_alone()
        worker = self._worker = BatchThread(
            lambda commits: self._run(commits, until_end=until_end), self._config.application_id
        )
        if self._is_cancelled:
            self._leave_behind(worker)
        worker.wait()

    def _run(self, commits: CommitGuard, *, until_end: bool) -> None:
        with self._open_loop(self._config, self._directory, commits.check) as loop:
            self._loop = loop
            try:
                while not self._run_layout(loop, commits, until_end=until_end):
                    logger.info("%s: there are other topics or partitions to read now", self._config.application_id)
            finally:
                self._loop = None

    def _run_layout(self, loop: Loop, commits: CommitGuard, *, until_end: bool) -> bool:
        """Returns whether the application is at its end; otherwise there are other topics to be read."""
        if self._stopping.is_set():
            return True
        # All of them were there when the application was started.
        check_deleted(self._config.application_id, named_inputs(self._topology), self._log.partition_counts())
        self._check_grown()
        layout = Layout.on(self._log, self._topology, self._config)
        self._check_tasks(layout)
        run = ApplicationRun(
            layout,
            self._log,
            self._directory,
            planner=partial(Planner, until_end=until_end, is_outdated=self._watch()),
            on_restores=self._listener.on_restores,
            on_moves=self._listener.on_moves,
        )
        member = Member(
            run,
            self._tell,
            committing=commits.committing,
            is_paused=self._paused.is_set,
            is_stopping=self._stopping.is_set,
        )
        try:
            loop.run(member)
        finally:
            run.close()
        if member.failure is not None:
            raise member.failure
        return self._stopping.is_set() or run.is_finished

    def _tell(self, report: BatchReport) -> None:
        metrics = self._metrics
        first = not metrics
        for name, value in (
            ("batches-total", 1),
            ("records-consumed-total", report.records_in),
            ("records-produced-total", report.records_out),
            ("dropped-records-total", report.dropped),
            ("late-records-total", report.late),
        ):
            metrics[name] = metrics.get(name, 0) + value
        metrics |= {
            "batch-id": report.batch_id,
            "batch-ms": report.duration_ms,
            "batch-phases-ms": dict(report.phases),
            "lag": report.lag,
            "state-rows": report.state_rows,
        }
        if first:
            self._listener.on_started()
        self._listener.on_batch(report)

    def _check_grown(self) -> None:
        """Complains if inputs of an application with state have grown while it ran, before tasks are counted.

        Inputs of a join of which only one has grown have no number in common.
        """
        now, before = self._inputs(), self._counts
        self._counts = now
        grown = {topic: (before[topic], n) for topic, n in now.items() if before.get(topic, n) != n}
        if not grown or not self._topology.state_stores:
            return
        name = self._config.application_id
        found = " and ".join(f"'{topic}' had {old} partitions and now has {new}" for topic, (old, new) in grown.items())
        options = " ".join(f"--topic {topic}={new}" for topic, (_, new) in grown.items())
        message = (
            f"application '{name}': {found}; keys would go to tasks that do not have their state; split it with "
            f"`headrace grow {name} MODULE:BUILD {options}`, or start over with `headrace reset {name}`"
        )
        raise IncompatibleTopologyError(message)

    def _check_tasks(self, layout: Layout) -> None:
        """Complains if there are other tasks with state than before, by the topics that a pattern matches."""
        tasks = {place.name for place in layout.tasks}
        if self._tasks not in (None, tasks) and self._topology.state_stores:
            grown = ", ".join(f"'{topic}' with {n} partitions" for topic, n in sorted(self._inputs().items()))
            message = (
                f"application '{self._config.application_id}': a pattern matches a topic with more partitions "
                f"({grown}), so keys would go to other tasks than those that have their state; delete what is new, or "
                "start over with "
                f"`headrace reset {self._config.application_id}`"
            )
            raise IncompatibleTopologyError(message)
        self._tasks = tasks

    def _watch(self) -> Callable[[], bool]:
        """Returns how to find out that there are other topics or partitions to read than before."""
        before = self._inputs()
        ids = ids_of(self._topology, before, self._log)

        def is_outdated() -> bool:
            now = self._inputs()
            try:
                found = ids_of(self._topology, now, self._log)
            except UnknownTopicError:
                # One that is gone is missed where it is read.
                return False
            check_inputs(self._config.application_id, ids, found)
            return any(before.get(topic) != partitions for topic, partitions in now.items())

        return is_outdated

    def _inputs(self) -> dict[str, int]:
        return input_partitions(self._topology, self._config.application_id, self._log)

    def _check_alone(self) -> None:
        left = _left_behind.get(self._directory)
        if left is None:
            return
        if left.is_alive(_PATIENCE_S):
            message = (
                f"application '{self._config.application_id}': a function in which it was cancelled still runs in this "
                f"process, in the thread '{left.name}', and has its state open; start again when the function has "
                "returned, or start another process"
            )
            raise ProcessorStateError(message)
        _left_behind.pop(self._directory, None)

    def _leave_behind(self, worker: BatchThread) -> None:
        for directory, each in list(_left_behind.items()):
            if not each.is_alive(0):
                _left_behind.pop(directory, None)
        _left_behind[self._directory] = worker
        worker.abandon()

    def stop(self) -> None:
        self._stopping.set()

    def cancel(self) -> None:
        self._stopping.set()
        self._is_cancelled = True
        loop, worker = self._loop, self._worker
        if loop is not None:
            loop.cancel(self._config.application_id)
        if worker is not None:
            self._leave_behind(worker)

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def metrics(self) -> dict[str, Any]:
        return dict(self._metrics)


@contextmanager
def own_loop(executor: Executor, log: DurableLog) -> Iterator[Loop]:
    """The loop of an engine that has an executor for itself, and keeps the log tidy."""
    try:
        with Housekeeping(log):
            yield SingleLoop(executor, log)
    finally:
        try:
            executor.close()
        except Abandoned:
            # Raised once, in the middle of it: open files are given back all the same.
            executor.close()
