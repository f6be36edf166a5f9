"""The levels of a query without Spark: the same tasks, plans, chunks and blobs in this process, and much faster.

What Spark itself does is left out, so nothing is proved about it; but what tasks do between two micro-batches, how they
come back after a restart and how records cross edges is all here. Rows arrive in random order, as after a shuffle.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

from headrace.app.in_process import run_levels
from headrace.spark.application import Application, Payload
from headrace.spark.batch import BatchReport, BatchRunner, StopQuery
from headrace.spark.chunks import Head
from headrace.spark.plan import Plan, PlanFiles
from headrace.spark.planner import BatchSource
from headrace.spark.receipts import Row, TaskReport
from headrace.spark.task_runner import TaskRunner


class _Cells:
    """The state of one task."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._chunks: dict[int, bytes] = {}

    def read_head(self) -> Head | None:
        return self._head

    def write_head(self, head: Head) -> None:
        self._head = head

    def read(self, sequence: int) -> bytes | None:
        return self._chunks.get(sequence)

    def write(self, sequence: int, data: bytes) -> None:
        self._chunks[sequence] = data

    def remove(self, sequence: int) -> None:
        self._chunks.pop(sequence, None)


class _Frame:
    """Stands for the data frame of a micro-batch: whoever collects it runs the levels."""

    def __init__(self, application: Application, restart_every: int) -> None:
        self._application = application
        self._restart_every = restart_every
        self._batches = 0
        self._payload = Payload.of(application)
        self._random = Random(len(application.layout.tasks))
        self._cells = {place.key: _Cells() for place in application.layout.tasks}
        self._plan: Plan | None = None
        self._runner = TaskRunner(self._payload.open())
        # What leads from a data frame to the properties of its jobs.
        self.sparkSession = self.sparkContext = self

    def setLocalProperty(self, _name: str, value: str) -> None:
        self._plan = Plan.from_json(value)

    def collect(self) -> list[Row]:
        """Runs all levels of a batch."""
        assert self._plan is not None, "the driver sets the plan before it runs a batch"
        if self._restart_every and self._batches % self._restart_every == self._restart_every - 1:
            self._restart()
        self._batches += 1
        layout = self._application.layout
        return run_levels(self._runner, layout, self._plan, self._cells, self._random.shuffle)

    def _restart(self) -> None:
        """Forgets the open tasks, and some of the working copies: they come back from the chunks."""
        self._runner.close()
        for place in self._application.layout.tasks:
            if self._random.random() < 0.5:
                shutil.rmtree(self._application.directory / place.name, ignore_errors=True)
        self._runner = TaskRunner(self._payload.open())

    def close(self) -> None:
        self._runner.close()


def run_without_spark(application: Application, source: BatchSource, plans: Path, *, restart_every: int = 0) -> None:
    """Runs micro-batches until the source ends them; raises what a task has failed of."""
    frame = _Frame(application, restart_every)
    runner = BatchRunner(application, source, PlanFiles(plans), on_batch=_ignore)
    batch_id = 0
    try:
        while True:
            # BatchRunner asks its frame for no more than _Frame has.
            runner(frame, batch_id)  # type: ignore[arg-type]
            batch_id += 1
    except StopQuery:
        return
    except Exception:
        if runner.failure is not None:
            # Not "from": it has a cause of its own.
            raise runner.failure  # noqa: B904
        raise
    finally:
        frame.close()


def _ignore(_batch: BatchReport, _tasks: Sequence[TaskReport]) -> None:
    """Nobody watches the micro-batches."""
