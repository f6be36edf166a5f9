"""One micro-batch on the driver: plan, run the levels, publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql import DataFrame

from headrace.errors import BatchError
from headrace.spark.application import Application
from headrace.spark.level import PLAN_PROPERTY
from headrace.spark.plan import Plan, PlanFiles
from headrace.spark.planner import BatchSource
from headrace.spark.receipts import REPORT, TaskReport
from headrace.topics.log import Receipt


class StopQuery(Exception):
    """Ends the query before anything of the batch was done."""


class BatchFailed(Exception):
    """Ends the query because of a failure; it comes to the application by another way than through Spark."""


@dataclass(frozen=True)
class BatchReport:
    """What a micro-batch did."""

    batch_id: int
    records_in: int
    """Records that were read from the log."""
    records_out: int
    """Records that were written to topics; changelogs do not count."""
    duration_ms: float
    lag: int
    """Records that wait in the log."""
    state_rows: int
    """Rows in all stores before the batch."""
    chunk_rows: int
    """Rows in the chunks of Spark's state, the outdated ones included."""
    dropped: int
    late: int
    phases: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by phase: wait, plan, run, publish."""
    tasks: Sequence[TaskReport] = ()
    """What each task that had something to do has reported, under its name."""


OnBatch: TypeAlias = Callable[[BatchReport, Sequence[TaskReport]], None]


class BatchRunner:
    """Called by Spark for every micro-batch, in the application's own process."""

    def __init__(
        self,
        application: Application,
        source: BatchSource,
        plans: PlanFiles,
        *,
        on_batch: OnBatch,
    ) -> None:
        self._application = application
        self._source = source
        self._plans = plans
        self._on_batch = on_batch
        self._names = {place.key: place.name for place in application.layout.tasks}
        self._rank = {place.key: rank for rank, place in enumerate(application.layout.tasks)}
        self._state_rows: dict[str, int] = {}
        self._chunk_rows: dict[str, int] = {}
        self._is_first = True
        self._has_published = False
        self.failure: BaseException | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Runs a batch. Whatever goes wrong is kept in ``failure``: Spark would make a text of it."""
        try:
            self._run(frame, batch_id)
        except StopQuery:
            raise
        except BaseException as error:
            self.failure = error
            message = f"batch {batch_id} failed"
            raise BatchFailed(message) from None

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        begun = time.perf_counter()
        if self._is_first:
            self._check_history(batch_id)
            self._is_first = False
        plan = self._plans.load(batch_id)
        if plan is None:
            plan = self._source.next_plan(batch_id)
            if plan is None:
                raise StopQuery
            planned = time.perf_counter()
            self._plans.save(plan)
        else:
            self._application.log.before_replay(self._application.id, batch_id)
            planned = begun
        saved = time.perf_counter()
        reports = self._run_levels(frame, plan)
        ran = time.perf_counter()
        receipts = [report.receipt for report in reports if report.receipt is not None]
        self._publish(plan, receipts)
        published = time.perf_counter()
        duration_ms = (published - planned) * 1000
        self._source.done(plan, reports, duration_ms)
        phases = {
            "wait": (planned - begun) * 1000,
            "plan": (saved - planned) * 1000,
            "run": (ran - saved) * 1000,
            "publish": (published - ran) * 1000,
        }
        self._on_batch(self._report(plan, reports, duration_ms, phases), reports)

    def _check_history(self, batch_id: int) -> None:
        """Complains if the log has lost batches that the checkpoint has: their outputs would never be written."""
        last = self._application.log.last_batch(self._application.id)
        written = -1 if last is None else last.batch_id
        if written < batch_id - 1:
            found = "no batch of it" if written < 0 else f"its batches up to {written}"
            message = (
                f"the checkpoint of application '{self._application.id}' is at batch {batch_id}, and the log has only "
                f"{found}: the log was exchanged, or has lost writes in a power failure (log_sync='none'); bring back "
                "the log that belongs to the checkpoint, or reset the application"
            )
            raise BatchError(message)

    def _run_levels(self, frame: DataFrame, plan: Plan) -> list[TaskReport]:
        # Tasks find the plan among the properties of the job that this thread starts.
        frame.sparkSession.sparkContext.setLocalProperty(PLAN_PROPERTY, plan.to_json())
        rows = frame.collect()
        reports = [TaskReport.from_bytes(bytes(row.blob)) for row in rows if row.origin == REPORT]
        for report in reports:
            if report.failure is not None:
                raise report.failure.restored()
        reports.sort(key=lambda report: self._rank[report.task])
        return reports

    def _publish(self, plan: Plan, receipts: Sequence[Receipt]) -> None:
        # Where inputs begin that nothing was read of yet is decided once: "latest" is another place tomorrow.
        read = {target for receipt in receipts for target in receipt.positions}
        begun = {} if self._has_published else getattr(self._source, "begun_at", {})
        self._application.log.commit_batch(
            self._application.id,
            plan.batch_id,
            receipts,
            plan=plan.digest(),
            positions={target: at for target, at in begun.items() if target not in read},
        )
        self._has_published = True

    def _report(
        self,
        plan: Plan,
        reports: Sequence[TaskReport],
        duration_ms: float,
        phases: Mapping[str, float],
    ) -> BatchReport:
        for report in reports:
            self._state_rows[report.task] = report.rows
            self._chunk_rows[report.task] = report.chunk_rows
        counters: dict[str, float] = {}
        for report in reports:
            for name, value in report.counters.items():
                counters[name] = counters.get(name, 0) + value
        records_in = sum(report.records for report in reports)
        return BatchReport(
            plan.batch_id,
            records_in,
            sum(report.written for report in reports),
            duration_ms,
            max(0, getattr(self._source, "lag", 0) - records_in),
            sum(self._state_rows.values()),
            sum(self._chunk_rows.values()),
            int(counters.get("dropped-records-total", 0)),
            int(counters.get("late-records-total", 0)),
            phases,
            tuple(replace(each, task=self._names[each.task], receipt=None) for each in reports),
        )
