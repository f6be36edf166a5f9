"""An application without Spark: each task of each batch runs once, in this process, and nothing ever fails."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headrace.config import StreamsConfig
from headrace.spark.application import Application
from headrace.spark.layout import Layout, Program
from headrace.spark.plan import Plan
from headrace.spark.planner import BatchSource
from headrace.spark.receipts import HEARTBEAT, REPORT, Row, TaskReport
from headrace.spark.task_runner import TaskRunner
from headrace.topics.log import TopicLog
from headrace.topology.queryable import changelogs_of
from headrace.topology.topology import Topology
from tests.spark.memory_cells import MemoryCells


class Undisturbed:
    """Runs the batches that it is given; the log then has what a run writes that nobody disturbs."""

    def __init__(
        self, topology: Topology, config: StreamsConfig, log: TopicLog, *, directory: Path, spark_partitions: int = 2
    ) -> None:
        program = Program.on(log, topology, config)
        changelogs = changelogs_of(topology, config.application_id)
        layout = Layout({"": program}, spark_partitions)
        self.application = Application(config.application_id, layout, log, directory, {"": changelogs}, attempts=1)
        self._runner = TaskRunner(self.application)
        self._cells = {place.key: MemoryCells() for place in layout.tasks}

    def replay(self, plans: Iterable[Plan]) -> None:
        """Runs batches as they were planned elsewhere."""
        for plan in plans:
            self.run(plan)

    def run_all(self, source: BatchSource) -> list[TaskReport]:
        """Runs what a planner plans, until it has nothing more; returns what all tasks have told."""
        told: list[TaskReport] = []
        number = 0
        while (plan := source.next_plan(number)) is not None:
            reports = self.run(plan)
            source.done(plan, reports, 100.0)
            told += reports
            number += 1
        return told

    def run(self, plan: Plan) -> list[TaskReport]:
        """Runs one batch."""
        reports: list[TaskReport] = []
        travelling: dict[str, list[Row]] = {}
        # In the order of levels: what a task gets, its upstream tasks have sent before.
        for place in self.application.layout.tasks:
            rows = [Row(place.key, HEARTBEAT, 0, None), *travelling.pop(place.key, [])]
            for row in self._runner.run(place, plan, rows, self._cells[place.key], 0):
                if row.origin == REPORT:
                    assert row.blob is not None
                    report = TaskReport.from_bytes(row.blob)
                    if report.failure is not None:
                        raise report.failure.restored()
                    reports.append(report)
                else:
                    travelling.setdefault(row.task, []).append(row)
        assert not travelling, "a record went to a task that had run before"
        receipts = [report.receipt for report in reports if report.receipt is not None]
        self.application.log.commit_batch(self.application.id, plan.batch_id, receipts, plan=plan.digest())
        return reports

    def close(self) -> None:
        self._runner.close()
