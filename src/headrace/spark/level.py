"""A level in a worker: its tasks, one after the other. What does not concern the level passes through."""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pandas as pd
from pyspark import TaskContext

from headrace.spark.application import Payload
from headrace.spark.chunks import Cells, Head
from headrace.spark.homes import HOMES, Home, Note, TaskName, Work, ask
from headrace.spark.layout import TaskPlace
from headrace.spark.plan import Plan
from headrace.spark.receipts import Row
from headrace.spark.task_runner import TaskRunner, has_work
from headrace.spark.worker_start import leave_failures_to_the_driver

PLAN_PROPERTY = "headrace.plan"
"""Local property of the job in which tasks find their plan."""

_HEAD = 0

_runners: OrderedDict[str, TaskRunner] = OrderedDict()
_plans: OrderedDict[str, Plan] = OrderedDict()
_KEPT = 2
_busy = threading.Lock()
"""Held while a task runs: two at once in one process would only wait for each other."""


class SparkCells:
    """The state of the task at hand in Spark's state store: a map, in which chunks begin with 1, and 0 is the head.

    One map of bytes, because every call costs milliseconds with columns of several types, and a fraction with one.
    """

    def __init__(self, cells: Any) -> None:
        # Any: pyspark's handles have no useful types.
        self._cells = cells

    def read_head(self) -> Head | None:
        data = self.read(_HEAD)
        return None if data is None else Head(*pickle.loads(data))

    def write_head(self, head: Head) -> None:
        self.write(_HEAD, pickle.dumps(tuple(head), protocol=5))

    def read(self, sequence: int) -> bytes | None:
        found = self._cells.getValue((sequence,))
        return None if found is None else bytes(found[0])

    def write(self, sequence: int, data: bytes) -> None:
        self._cells.updateValue((sequence,), (data,))

    def remove(self, sequence: int) -> None:
        self._cells.removeKey((sequence,))


# Any: pyspark's handles have no useful types.
def run_task(
    payload: tuple[bytes, str], level: int, key: str, rows: Iterator[pd.DataFrame], cells: Any
) -> Iterator[pd.DataFrame]:
    """Runs one task of a level, or lets its rows pass."""
    found, own = list(rows), Payload(*payload)
    place = own.open().layout.by_key[key]
    if place.level != level:
        yield from found
        return
    produced = _run(own, place, _rows(found), SparkCells(cells))
    if produced:
        yield _frame(produced)


class PlainLevel:
    """Runs the tasks of a program that needs neither state nor a shuffle, as a plain map over heartbeats."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def __call__(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        application = self._payload.open()
        for frame in frames:
            for row in _rows([frame]):
                produced = _run(self._payload, application.layout.by_key[row.task], [row], None)
                if produced:
                    yield _frame(produced)


def _run(payload: Payload, place: TaskPlace, rows: list[Row], cells: Cells | None) -> list[Row]:
    """Runs a task where it is at home; here, if it is nowhere, and from now on."""
    context = TaskContext.get()
    assert context is not None, "levels run inside of Spark's tasks"
    text = context.getLocalProperty(PLAN_PROPERTY)
    assert text is not None, "the driver sets the plan before it runs a batch"
    plan, attempt = _plan(text), context.attemptNumber()
    if not has_work(place, plan, rows):
        return []
    path = payload.open().directory / HOMES / place.name
    note, here = Note.read(path), _home().note
    if note is not None and note != here and attempt == 0:
        produced = ask(note, Work(TaskName(payload.digest, place.key), text, rows, cells is not None), cells)
        if produced is not None:
            return produced
    with _busy:
        produced = _runner(payload).run(place, plan, rows, cells, attempt)
    if note != here:
        with suppress(OSError):
            # Without a note others build the task for themselves.
            here.write(path)
    return produced


class _Tasks:
    """The tasks of this process, for others that Spark has given them to; see ``homes.Worker``."""

    def knows(self, task: TaskName) -> bool:
        runner = _runners.get(task.application)
        return runner is not None and runner.knows(task.key)

    def run(self, work: Work, cells: Cells | None, check: Callable[[], None]) -> list[Row]:
        runner = _runners[work.task.application]
        return runner.run(runner.place(work.task.key), _plan(work.plan), work.rows, cells, 0, check)


@cache
def _home() -> Home:
    return Home(_Tasks(), _busy)


def _plan(text: str) -> Plan:
    plan = _plans.get(text)
    if plan is None:
        plan = _plans[text] = Plan.from_json(text)
        while len(_plans) > _KEPT:
            _plans.popitem(last=False)
    return plan


def _runner(payload: Payload) -> TaskRunner:
    runner = _runners.get(payload.digest)
    if runner is None:
        leave_failures_to_the_driver()
        runner = _runners[payload.digest] = TaskRunner(payload.open())
        while len(_runners) > _KEPT:
            _runners.popitem(last=False)[1].close()
    return runner


def _rows(frames: Iterable[pd.DataFrame]) -> list[Row]:
    return [Row(*values) for frame in frames for values in frame.itertuples(index=False, name=None)]


def _frame(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(Row._fields))
