"""The tasks of an application in one worker: which of them are open, and what happens when one fails."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from resource import RLIMIT_NOFILE, getrlimit
from typing import Any

from headrace.errors import ProcessorStateError, StreamsError
from headrace.runtime.collector_pause import collector_paused
from headrace.spark.application import Application
from headrace.spark.chunks import Cells, ChunkLog
from headrace.spark.failures import Failure
from headrace.spark.global_tables import GlobalTables
from headrace.spark.layout import TaskPlace
from headrace.spark.live_task import LiveTask, distrust
from headrace.spark.plan import Plan
from headrace.spark.receipts import HEARTBEAT, Row, TaskReport
from headrace.spark.task_batch import TaskBatch

_LIVE_TASKS = max(128, min(2048, getrlimit(RLIMIT_NOFILE)[0] // 8))
"""Tasks that a worker keeps open. Each has two files; one that is closed is built anew in the next micro-batch, all of
them if there are only a few more than this, because they take turns."""


class TaskRunner:
    """The tasks of one application in this process.

    ``check`` is called before anything that others can see; it raises if nobody waits for the batch any more.
    """

    def __init__(self, application: Application, *, check: Callable[[], None] | None = None) -> None:
        self._application = application
        self._check = check or _nothing
        self._live: OrderedDict[str, LiveTask] = OrderedDict()
        self._tables: dict[str, GlobalTables] = {}

    def place(self, key: str) -> TaskPlace:
        """Returns a task of the application by its key."""
        return self._application.layout.by_key[key]

    def knows(self, key: str) -> bool:
        """Returns whether a task is open here, as the last batch that it ran here has left it."""
        return key in self._live

    def run(
        self,
        place: TaskPlace,
        plan: Plan,
        rows: Sequence[Row],
        cells: Cells | None,
        attempt: int,
        check: Callable[[], None] | None = None,
    ) -> list[Row]:
        """Runs a task's part of a micro-batch; returns blobs for other tasks and the report.

        ``cells`` is None for a program without state. A failure is raised for Spark to try again; that of the last
        attempt is reported, so that it arrives as it is. ``check`` takes the place of the runner's own.
        """
        if not has_work(place, plan, rows):
            return []
        check = check or self._check
        check()
        blobs = [row for row in rows if row.origin != HEARTBEAT]
        try:
            return self._run(place, plan, blobs, cells, attempt, check)
        except Exception as error:
            if attempt + 1 < self._application.attempts:
                raise
            failure = error if isinstance(error, StreamsError) else _unexpected(place, error)
            return [TaskReport(place.key, failure=Failure.of(failure)).to_row()]

    def _run(
        self,
        place: TaskPlace,
        plan: Plan,
        blobs: list[Row],
        cells: Cells | None,
        attempt: int,
        check: Callable[[], None],
    ) -> list[Row]:
        started = time.perf_counter()
        batch = TaskBatch(self._application, place, plan, attempt, check)
        chunks = None if cells is None else ChunkLog(cells)
        live = self._take(batch, chunks)
        try:
            live.host.clock_ms = batch.now_ms
            live.begin(str(plan.batch_id))
            with collector_paused():
                sent, report = batch.run(live, blobs, chunks)
            live.end()
        except BaseException:
            letters = live.task.take_last_letters()
            live.close()
            if attempt + 1 >= self._application.attempts:
                check()
                batch.append(letters)
            raise
        self._live[place.key] = live
        while len(self._live) > _LIVE_TASKS:
            self._live.popitem(last=False)[1].close()
        counters = self._with_global_counts(place.program, report.counters)
        return [*sent, replace(report, counters=counters, seconds=time.perf_counter() - started).to_row()]

    def _with_global_counts(self, program: str, counters: Mapping[str, float]) -> Mapping[str, float]:
        """Adds what global tables have counted; the task that has brought them up to date reports it."""
        tables = self._tables.get(program)
        grown = {} if tables is None else tables.new_counts()
        return {name: counters.get(name, 0) + grown.get(name, 0) for name in {**counters, **grown}}

    def _take(self, batch: TaskBatch, chunks: ChunkLog | None) -> LiveTask:
        """Returns the task as it was left by the last batch, or builds it from the committed state."""
        place = batch.place
        tables = self._global_stores(batch)
        live = self._live.pop(place.key, None)
        if live is not None and batch.attempt == 0 and live.is_current(chunks):
            return live
        if live is not None:
            live.close()
        distrust(self._application.directory / place.name, str(batch.plan.batch_id), batch.attempt)
        return LiveTask(self._application, place, chunks, tables, clock_ms=batch.now_ms)

    def _global_stores(self, batch: TaskBatch) -> Mapping[str, Any]:
        program = batch.program
        if not program.topology.global_stores:
            return {}
        tables = self._tables.get(program.prefix)
        if tables is None:
            directory = self._application.directory / f"{program.prefix}global"
            tables = self._tables[program.prefix] = GlobalTables(program, self._application.log, directory)
        try:
            tables.catch_up(batch.plan.global_ends, batch.now_ms)
        except BaseException:
            # Half of what was read may be in memory.
            del self._tables[program.prefix]
            tables.close()
            raise
        return tables.stores

    def close(self) -> None:
        """Closes all tasks and tables."""
        # One by one: if this is interrupted, it goes on with the next.
        while self._live:
            self._live.popitem()[1].close()
        while self._tables:
            self._tables.popitem()[1].close()


def has_work(place: TaskPlace, plan: Plan, rows: Sequence[Row]) -> bool:
    """Returns whether a task has anything to do in a micro-batch; a heartbeat alone is nothing."""
    return place.key in plan.ranges or place.key in plan.due or any(row.origin != HEARTBEAT for row in rows)


def _nothing() -> None:
    """Somebody waits."""


def _unexpected(place: TaskPlace, error: Exception) -> StreamsError:
    message = f"task {place.name} failed with {type(error).__name__}: {error}"
    failure = ProcessorStateError(message)
    failure.__cause__ = error
    return failure
