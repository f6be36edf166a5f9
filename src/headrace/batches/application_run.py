"""The run of one application: its journal, its planner, and the micro-batches that it commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from headrace.batches.application import Application
from headrace.batches.change_plan import change_in
from headrace.batches.inputs import naming_deleted
from headrace.batches.layout import Layout
from headrace.batches.plan import Plan
from headrace.batches.planner import Planner
from headrace.batches.reports import BatchReport, Outcome, TaskReport
from headrace.errors import IncompatibleTopologyError, RetriableError
from headrace.topics.journal import DurableLog, JournalState
from headrace.topics.log import Offsets

logger = logging.getLogger(__name__)

_RETRY_S = 0.5
"""Pause before a batch is tried again that failed because a broker or worker was unreachable."""


class PlanSource(Protocol):
    """Source of plans: the planner, or a script."""

    lag: int
    begun_at: Offsets
    finished: bool
    outdated: bool

    def next_plan(self, batch_id: int) -> Plan | None: ...
    def waits_for(self) -> tuple[Offsets, float]: ...
    def done(self, plan: Plan, reports: Sequence[TaskReport], duration_ms: float) -> None: ...
    def take_obsolete(self) -> Offsets: ...


MakePlanner: TypeAlias = Callable[[Layout, DurableLog, JournalState], PlanSource]


class ApplicationRun:
    """An application from the moment when its journal is opened, which fences other instances, until it is closed."""

    def __init__(
        self,
        layout: Layout,
        log: DurableLog,
        directory: Path,
        *,
        key: str | None = None,
        planner: MakePlanner = Planner,
        on_restores: Callable[[Sequence[TaskReport]], None] | None = None,
        on_moves: Callable[[Collection[str]], None] | None = None,
    ) -> None:
        self.id = layout.config.application_id
        self.key = self.id if key is None else key
        self._on_restores = on_restores
        self._on_moves = on_moves
        self._journal = log.open_journal(self.id, [place.name for place in layout.tasks])
        try:
            state = self._journal.state
            self.application = Application(self.key, layout, log, directory, self._journal.incarnation)
            with naming_deleted(layout):
                self._planner = planner(layout, log, state)
            self._next_id = state.batch_id + 1
            self._pending = None if state.begun is None else self._checked(state.begun)
        except BaseException:
            self._journal.close()
            raise
        self._is_recorded = self._pending is not None
        self._has_committed = False
        self._retry_at = 0.0
        self._failing_since: float | None = None
        self._rows: dict[str, int] = {}
        self._rank = {place.name: rank for rank, place in enumerate(layout.tasks)}
        self._planned = time.perf_counter()
        self._waited_ms = 0.0

    def _checked(self, begun: bytes) -> Plan:
        """Complains about a batch that was begun by other tasks than there are now: it can be finished only by them."""
        change = change_in(begun)
        if change is not None:
            change.refuse_start(self.id)
        plan = Plan.unpack(begun)
        known = self.application.layout.by_name
        strangers = sorted({*plan.ranges, *plan.due} - known.keys())
        if strangers:
            message = (
                f"application '{self.id}': batch {plan.batch_id} was begun and is not finished, with tasks that this "
                f"topology has not: {', '.join(strangers)}; run the former version once, or start over with "
                f"`headrace reset {self.id}`"
            )
            raise IncompatibleTopologyError(message)
        return plan

    def next_plan(self) -> Plan | None:
        """Returns the micro-batch to be run now, or None if there is nothing to do, or it is too early."""
        if time.monotonic() < self._retry_at:
            return None
        begun = time.perf_counter()
        if self._pending is None:
            with naming_deleted(self.application.layout):
                self._pending = self._planner.next_plan(self._next_id)
            if self._pending is None:
                return None
        if not self._is_recorded and self._pending.has_work:
            self._journal.begin(self._pending.batch_id, self._pending.pack())
            self._is_recorded = True
        self._waited_ms, self._planned = (begun - self._planned) * 1000, begun
        return self._pending

    def tell_moves(self, tasks: Collection[str]) -> None:
        """Tells that tasks with work go on elsewhere."""
        if tasks and self._on_moves is not None:
            self._on_moves(tasks)

    @property
    def is_finished(self) -> bool:
        """Whether all input was read that was there at the beginning, if that was asked for."""
        return self._planner.finished and self._pending is None

    @property
    def is_outdated(self) -> bool:
        """Whether there are other topics or partitions to read than there were."""
        return self._planner.outdated and self._pending is None

    def waits_for(self) -> tuple[Offsets, float]:
        """Returns the positions at which there may be something to do, and in how many seconds there is anyway."""
        early_s = self._retry_at - time.monotonic()
        if early_s > 0:
            return {}, early_s
        return self._planner.waits_for() if self._pending is None else ({}, 0.0)

    def commit(self, plan: Plan, outcome: Outcome) -> BatchReport | None:
        """Makes a micro-batch final that all tasks have run.

        Raises what a task has failed of; None says that the batch is to be tried again, because a broker is away.
        """
        ran = time.perf_counter()
        if outcome.failure is not None:
            self._tolerate(outcome.failure)
            return None
        self._failing_since = None
        if self._on_restores is not None:
            self._on_restores(outcome.reports)
        if not plan.has_work:
            # Tasks were asked how far they are restored.
            self._pending = None
            self._planner.done(plan, outcome.reports, 0.0)
            return None
        reports = sorted(outcome.reports, key=lambda report: self._rank[report.task])
        receipts = [report.receipt for report in reports if report.receipt is not None]
        read = {target for receipt in receipts for target in receipt.positions}
        # Where inputs begin that nothing was read of yet is decided once: "latest" is another place tomorrow.
        begun = {} if self._has_committed else self._planner.begun_at
        unread = {target: at for target, at in begun.items() if target not in read}
        with naming_deleted(self.application.layout):
            self._journal.commit(plan.batch_id, receipts, unread)
        self._has_committed = True
        self._pending, self._is_recorded, self._next_id = None, False, plan.batch_id + 1
        committed = time.perf_counter()
        duration_ms = (committed - self._planned) * 1000
        self._planner.done(plan, reports, duration_ms)
        obsolete = self._planner.take_obsolete()
        if obsolete:
            # If somebody is away it waits: there will be more of the kind.
            with suppress(RetriableError):
                self._journal.delete_records(obsolete)
        phases = {
            "wait": self._waited_ms,
            "run": (ran - self._planned) * 1000,
            "publish": (committed - ran) * 1000,
        }
        self._planned = committed
        return self._report(plan, reports, duration_ms, phases)

    def _tolerate(self, failure: BaseException) -> None:
        """Raises a failure, unless a retry may still succeed within the time limit."""
        if not isinstance(failure, RetriableError):
            with naming_deleted(self.application.layout):
                raise failure
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("application '%s' tries its micro-batch again: %s", self.id, failure)
        patience_s = self.application.layout.config.task_timeout.total_seconds()
        if now - self._failing_since > patience_s:
            raise failure
        self._retry_at = now + _RETRY_S

    def _report(
        self, plan: Plan, reports: list[TaskReport], duration_ms: float, phases: dict[str, float]
    ) -> BatchReport:
        self._rows.update({report.task: report.rows for report in reports})
        passed = sum(report.offsets for report in reports)
        return BatchReport.of(
            plan.batch_id,
            reports,
            duration_ms=duration_ms,
            lag=max(0, self._planner.lag - passed),
            state_rows=sum(self._rows.values()),
            phases=phases,
        )

    def close(self) -> None:
        self._journal.close()
