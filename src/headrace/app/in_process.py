"""An engine that runs the tasks of an application in this process: the same planner, plans, chunks and commits.

Nothing has to be started for it, so it is there in milliseconds; what it has not is a second core, or a second machine.
State and progress survive a killed process as they do on Spark: the cells of all tasks are committed with the batch,
and a batch that was not committed runs again by its plan.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from struct import Struct
from typing import Any

from headrace.app.batch_thread import BatchThread, Commits, LeftBehind
from headrace.app.engine import EngineListener
from headrace.config import StreamsConfig
from headrace.errors import ProcessorStateError
from headrace.spark.application import Application
from headrace.spark.batch import BatchReport, BatchRunner, StopQuery
from headrace.spark.chunks import Cells, Head
from headrace.spark.layout import Layout, Program
from headrace.spark.plan import Plan, PlanFiles
from headrace.spark.planner import Planner
from headrace.spark.query import Query
from headrace.spark.receipts import HEARTBEAT, Row, TaskReport
from headrace.spark.task_runner import TaskRunner
from headrace.state.changes import Changes
from headrace.state.disk import LmdbEnvironment
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology

_CELLS = "cells"
_BATCH = b"batch"
_NUMBER = Struct(">Q")
_HEAD = 0

_left_behind: dict[Path, BatchThread] = {}
"""The threads of this process that were left behind, by the checkpoint whose files they have open until they end."""
_PATIENCE = 2.0
"""Seconds for a thread that was left behind to give back what it has open."""


class _StoredCells:
    """The cells of all tasks in one file; what a batch has written is not there before it is committed."""

    def __init__(self, directory: Path, *, sync: bool) -> None:
        self._environment = LmdbEnvironment(directory, sync=sync)
        self._stored = self._environment.engine(_CELLS)
        self._changed: dict[bytes, bytes | None] = {}

    @property
    def next_batch(self) -> int:
        """The id of the batch after the last that was committed."""
        found = self._stored.get(_BATCH)
        return 0 if found is None else _NUMBER.unpack(found)[0] + 1

    def read(self, key: bytes) -> bytes | None:
        return self._changed[key] if key in self._changed else self._stored.get(key)

    def write(self, key: bytes, data: bytes | None) -> None:
        self._changed[key] = data

    def commit(self, batch_id: int) -> None:
        changed, self._changed = self._changed, {}
        self._stored.apply(Changes(rows={**changed, _BATCH: _NUMBER.pack(batch_id)}))

    def close(self) -> None:
        self._environment.close()


class _TaskCells:
    """The cells of one task; see ``headrace.spark.chunks.Cells``."""

    def __init__(self, stored: _StoredCells, task: str) -> None:
        self._stored = stored
        self._prefix = f"task/{task}/".encode()

    def read_head(self) -> Head | None:
        data = self.read(_HEAD)
        return None if data is None else Head(*pickle.loads(data))

    def write_head(self, head: Head) -> None:
        self.write(_HEAD, pickle.dumps(tuple(head), protocol=5))

    def read(self, sequence: int) -> bytes | None:
        return self._stored.read(self._prefix + _NUMBER.pack(sequence))

    def write(self, sequence: int, data: bytes) -> None:
        self._stored.write(self._prefix + _NUMBER.pack(sequence), data)

    def remove(self, sequence: int) -> None:
        self._stored.write(self._prefix + _NUMBER.pack(sequence), None)


def run_levels(
    runner: TaskRunner,
    layout: Layout,
    plan: Plan,
    cells: Mapping[str, Cells],
    arrange: Callable[[list[Row]], None] = lambda rows: None,
) -> list[Row]:
    """Runs all levels of a batch, one after the other, as Spark does; ``arrange`` may change the order in a level."""
    rows = [Row(place.key, HEARTBEAT, 0, None) for place in layout.tasks]
    for level in range(layout.depth):
        arrange(rows)
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.task, []).append(row)
        rows = []
        for key, group in groups.items():
            place = layout.by_key[key]
            rows += runner.run(place, plan, group, cells[key], 0) if place.level == level else group
    return rows


class _Frame:
    """Stands for the data frame of a micro-batch: whoever collects it runs the levels."""

    def __init__(self, application: Application, stored: _StoredCells, commits: Commits) -> None:
        self._application = application
        self._commits = commits
        self._cells = {place.key: _TaskCells(stored, place.key) for place in application.layout.tasks}
        self._plan: Plan | None = None
        # With some logs each task commits its own part.
        self._runner = TaskRunner(application, check=commits.check)
        # What leads from a data frame to the properties of its jobs.
        self.sparkSession = self.sparkContext = self

    def setLocalProperty(self, _name: str, value: str) -> None:
        self._plan = Plan.from_json(value)

    def collect(self) -> list[Row]:
        """Runs all levels of a batch, one after the other; its results may be committed then."""
        assert self._plan is not None, "the plan is set before a batch runs"
        rows = run_levels(self._runner, self._application.layout, self._plan, self._cells)
        self._commits.begin()
        return rows

    def close(self) -> None:
        self._runner.close()


class InProcessEngine:
    """Runs a topology in this process until it is stopped; see ``headrace.app.engine.Engine``."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: TopicLog,
        *,
        listener: EngineListener,
        directory: Path,
        checkpoint: Path,
        keep_open: Sequence[int] = (),
    ) -> None:
        self._topology, self._config, self._log, self._listener = topology, config, log, listener
        self._directory, self._checkpoint = directory, checkpoint
        self._stopping, self._paused = threading.Event(), threading.Event()
        self._is_cancelled = False
        self._worker: BatchThread | None = None
        self._metrics: dict[str, Any] = {}

    def run(self, *, available_now: bool = False) -> None:
        """Blocks until ``stop``, or with ``available_now`` until everything that is there now is processed."""
        if self._stopping.is_set():
            return
        self._check_alone()
        worker = self._worker = BatchThread(
            lambda commits: self._run(commits, available_now=available_now), self._config.application_id
        )
        if self._is_cancelled:
            self._leave_behind(worker)
        worker.wait()

    def _check_alone(self) -> None:
        left = _left_behind.get(self._checkpoint)
        if left is None:
            return
        if left.is_alive(_PATIENCE):
            message = (
                f"application '{self._config.application_id}': a function in which it was cancelled still runs in this "
                f"process, in the thread '{left.name}', and has its state open; start again when the function has "
                "returned, or start another process"
            )
            raise ProcessorStateError(message)
        _left_behind.pop(self._checkpoint, None)

    def _leave_behind(self, worker: BatchThread) -> None:
        for checkpoint, each in list(_left_behind.items()):
            if not each.is_alive(0):
                _left_behind.pop(checkpoint, None)
        _left_behind[self._checkpoint] = worker
        worker.leave_behind()

    def _run(self, commits: Commits, *, available_now: bool) -> None:
        program = Program.on(self._log, self._topology, self._config)
        query = Query({"": program}, self._log, directory=self._directory, checkpoint=self._checkpoint)
        # There is one attempt: what goes wrong in this process goes wrong again.
        application = replace(query.application, attempts=1)
        self._log.discard_staged(application.id)
        stored = _StoredCells(self._checkpoint / _CELLS, sync=self._config.log_sync == "commit")
        try:
            planner = Planner(application, available_now=available_now, stopping=self._stopping, paused=self._paused)
            self._run_batches(application, planner, stored, commits)
        finally:
            stored.close()

    def _run_batches(self, application: Application, planner: Planner, stored: _StoredCells, commits: Commits) -> None:
        runner = BatchRunner(application, planner, PlanFiles(self._checkpoint / "plans"), on_batch=self._told)
        frame = _Frame(application, stored, commits)
        batch_id = stored.next_batch
        try:
            while True:
                try:
                    # BatchRunner asks its frame for no more than _Frame has.
                    runner(frame, batch_id)  # type: ignore[arg-type]
                    stored.commit(batch_id)
                finally:
                    commits.end()
                batch_id += 1
        except StopQuery:
            return
        except Exception:
            if runner.failure is not None:
                # Not "from": it has a cause of its own.
                raise runner.failure  # noqa: B904
            raise
        finally:
            # Also if the directories may be somebody else's by now: it gives back open files, and touches no others.
            try:
                frame.close()
            except LeftBehind:
                # Raised once in a thread, in the middle of this.
                frame.close()

    def _told(self, batch: BatchReport, _tasks: Sequence[TaskReport]) -> None:
        metrics = self._metrics
        for name, value in (
            ("records-consumed-total", batch.records_in),
            ("records-produced-total", batch.records_out),
        ):
            metrics[name] = metrics.get(name, 0) + value
        metrics |= {"batch-id": batch.batch_id, "lag": batch.lag, "state-rows": batch.state_rows}
        self._listener.on_batch(batch)

    def stop(self) -> None:
        self._stopping.set()

    def cancel(self) -> None:
        self._stopping.set()
        self._is_cancelled = True
        if self._worker is not None:
            self._leave_behind(self._worker)

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def metrics(self) -> dict[str, Any]:
        return dict(self._metrics)
