"""A level in a worker: its tasks, one after the other. What does not concern the level passes through."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark import TaskContext

from headrace.spark.application import Payload
from headrace.spark.chunks import Head
from headrace.spark.plan import Plan
from headrace.spark.receipts import Row
from headrace.spark.task_runner import TaskRunner
from headrace.spark.worker_logging import leave_failures_to_the_driver

PLAN_PROPERTY = "headrace.plan"
"""Local property of the job in which tasks find their plan."""

_HEAD = 0

_runners: OrderedDict[str, TaskRunner] = OrderedDict()
_plans: OrderedDict[str, Plan] = OrderedDict()
_KEPT = 2


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
    context = _context()
    produced = _runner(own).run(place, _plan(context), _rows(found), SparkCells(cells), context.attemptNumber())
    if produced:
        yield _frame(produced)


class PlainLevel:
    """Runs the tasks of a program that needs neither state nor a shuffle, as a plain map over heartbeats."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def __call__(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        application = self._payload.open()
        context = _context()
        for frame in frames:
            for row in _rows([frame]):
                place = application.layout.by_key[row.task]
                produced = _runner(self._payload).run(place, _plan(context), [row], None, context.attemptNumber())
                if produced:
                    yield _frame(produced)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "levels run inside of Spark's tasks"
    return context


def _plan(context: TaskContext) -> Plan:
    text = context.getLocalProperty(PLAN_PROPERTY)
    assert text is not None, "the driver sets the plan before it runs a batch"
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
