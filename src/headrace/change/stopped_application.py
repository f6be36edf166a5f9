"""An application at rest, and the micro-batch that changes it.

A change is run as the next micro-batch of the application, so a crash does to it what a crash does to any batch. First
its plan is written into the description, which keeps engines from starting, and into the journal. Then every task
commits what it is from now on: a record, and rows of its changelogs. The batch is committed when all tasks are, and at
last the description is replaced by one without the plan. A command that finds a plan goes on with it: tasks that have
committed are left alone, and every other step can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_hex

from headrace.app.description import Description
from headrace.app.directories import application_directory
from headrace.app.lock import locked
from headrace.batches.change_plan import ChangePlan, change_in
from headrace.change.parallel_work import ParallelMap
from headrace.config import StreamsConfig
from headrace.errors import BatchError, FencedError
from headrace.topics.journal import DurableLog, JournalState, Receipt, TaskCommitState, TaskJournal, TaskRecord, Written
from headrace.topics.log import TopicPartition


@dataclass(frozen=True, kw_only=True)
class TaskUpdate:
    """A task as it is after a change."""

    positions: Mapping[TopicPartition, int]
    """Next offset of everything it reads from the log."""
    memory: bytes
    """As ``headrace.runtime.task_memory`` packs it."""
    next_clock_ms: int | None = None
    lineage: str = field(default_factory=lambda: token_hex(8))
    """A new one makes every working copy start over; keep the former one only if the copies fit as they are."""
    written: Written = ()
    """Records for its changelogs, page by page: they are read once, and need not be in memory together."""


@dataclass(frozen=True)
class TaskChange:
    """Change of one task, for any process to commit."""

    task: str
    changelogs: Sequence[TopicPartition]
    """The partitions that only this task writes; they must exist."""
    update: Callable[[DurableLog], TaskUpdate]


@dataclass(frozen=True)
class _Committer:
    """Commits parts of a change; one that is committed already is left alone."""

    log: DurableLog
    application: str
    incarnation: int
    batch_id: int

    def __call__(self, change: TaskChange) -> tuple[Receipt, bool]:
        """Opens a task and commits its part; returns the receipt, and whether there was something to do."""
        journal = self.log.task_journal(self.application, self.incarnation, change.task, change.changelogs)
        try:
            return self.commit(change.task, journal, journal.open(), partial(change.update, self.log))
        finally:
            journal.close()

    def commit(
        self, task: str, journal: TaskJournal, head: TaskCommitState, update: Callable[[], TaskUpdate]
    ) -> tuple[Receipt, bool]:
        found = -1 if head.record is None else head.record.batch_id
        if found > self.batch_id:
            message = (
                f"application '{self.application}': task {task} has committed batch {found}, and the change is batch "
                f"{self.batch_id}: another instance has overtaken this one"
            )
            raise FencedError(message)
        if head.record is not None and found == self.batch_id:
            receipt = Receipt.of(task, self.incarnation, head.record)
            return replace(receipt, record=head.record.pack()), False
        new = update()
        record = TaskRecord(
            self.batch_id,
            token_hex(8),
            [(*target, offset) for target, offset in new.positions.items()],
            new.next_clock_ms,
            new.memory,
            new.lineage,
        )
        return journal.commit(record, new.written, []), True


class StoppedApplication:
    """A stopped application whose journal is open for a change. Made by ``stopped_application``."""

    def __init__(self, log: DurableLog, application: str, tasks: Sequence[str]) -> None:
        self.id = application
        self.log = log
        self.description = Description.read(log, application)
        """None if nothing is known of it."""
        self._journal = log.open_journal(application, tasks)
        self._tasks: dict[str, tuple[TaskJournal, TaskCommitState]] = {}
        self._receipts: dict[str, Receipt] = {}
        self.plan: ChangePlan | None = None
        """The change that was begun, by this process or one before it."""
        try:
            self._find_plan()
        except BaseException:
            self._journal.close()
            raise

    @property
    def state(self) -> JournalState:
        """Batch and positions when it was opened."""
        return self._journal.state

    @property
    def next_batch_id(self) -> int:
        return self.state.batch_id + 1

    @property
    def is_committed(self) -> bool:
        """Whether all that is left of the change are steps behind its commit, and the new description."""
        return self.plan is not None and self.state.batch_id == self.plan.batch_id

    def _find_plan(self) -> None:
        begun = self.state.begun
        plan = None if begun is None else change_in(begun)
        if begun is not None and plan is None:
            message = (
                f"application '{self.id}': batch {self.next_batch_id} was begun and is not finished; run the "
                f"application once, until it has caught up, before it is changed"
            )
            raise BatchError(message)
        if plan is None and self.description is not None:
            plan = self.description.change
        if plan is not None and plan.batch_id not in (self.state.batch_id, self.next_batch_id):
            message = (
                f"application '{self.id}': a change was begun as batch {plan.batch_id} ({plan.change}), but the last "
                f"batch is {self.state.batch_id}: its description and its journal do not belong together; start over "
                f"with `headrace reset {self.id}`"
            )
            raise BatchError(message)
        self.plan = plan

    def check_resumes(self, change: str) -> ChangePlan | None:
        """Returns the plan of a change that was begun; complains if that is one of another kind."""
        if self.plan is not None and self.plan.change != change:
            self.plan.refuse_start(self.id)
        return self.plan

    def head(self, task: str, changelogs: Sequence[TopicPartition]) -> TaskCommitState:
        """Returns where a task stands, and keeps its part of the journal open.

        ``changelogs`` are the partitions that only this task writes; they must exist.
        """
        if task not in self._tasks:
            journal = self.log.task_journal(self.id, self._journal.incarnation, task, changelogs)
            self._tasks[task] = (journal, journal.open())
        return self._tasks[task][1]

    def begin(self, plan: ChangePlan, description: Description | None = None) -> None:
        """Records a plan; after this the change has to be finished. Another time, with the same plan, it does nothing.

        ``description`` describes the application until then, if there is none yet.
        """
        if self.is_committed:
            return
        known = self.description or description
        if known is None:
            message = f"application '{self.id}' has no description in the log; pass the new one"
            raise BatchError(message)
        if known.change != plan:
            self.description = replace(known, change=plan)
            self.description.write(self.log)
        self._journal.begin(plan.batch_id, plan.pack())
        self.plan = plan

    def commit_task(self, task: str, changelogs: Sequence[TopicPartition], update: TaskUpdate) -> bool:
        """Commits a task's part of the change; False if it has been committed before, and nothing was to be done."""
        plan = self._begun_plan()
        if self.is_committed:
            return False
        head = self.head(task, changelogs)
        committer = self._committer(plan)
        receipt, is_new = committer.commit(task, self._tasks[task][0], head, lambda: update)
        self._receipts[task] = receipt
        return is_new

    def commit_tasks(self, changes: Sequence[TaskChange], parallel: ParallelMap) -> Iterator[bool]:
        """Commits the parts of several tasks, wherever that is done; says of each whether it was still to be done."""
        plan = self._begun_plan()
        if self.is_committed:
            return
        for change, (receipt, is_new) in zip(changes, parallel(self._committer(plan), changes), strict=True):
            self._receipts[change.task] = receipt
            yield is_new

    def _committer(self, plan: ChangePlan) -> _Committer:
        return _Committer(self.log, self.id, self._journal.incarnation, plan.batch_id)

    def commit(self, positions: Mapping[TopicPartition, int] | None = None) -> None:
        """Commits the change as a whole, with further positions, once all its tasks are committed."""
        plan = self._begun_plan()
        if not self.is_committed:
            self._journal.commit(plan.batch_id, list(self._receipts.values()), positions)

    def finish(self, description: Description) -> None:
        """Replaces the description: from now on the application can be run again. The change must be committed."""
        self.description, self.plan = replace(description, change=None), None
        self.description.write(self.log)

    def _begun_plan(self) -> ChangePlan:
        if self.plan is None:
            message = f"application '{self.id}': no change was begun; call begin() first"
            raise BatchError(message)
        return self.plan

    def close(self) -> None:
        for journal, _ in self._tasks.values():
            journal.close()
        self._journal.close()


@contextmanager
def stopped_application(
    config: StreamsConfig, log: DurableLog, tasks: Sequence[str] = ()
) -> Iterator[StoppedApplication]:
    """Opens a stopped application: a running instance on this machine is an error, one elsewhere is fenced.

    ``tasks`` are those that it has or will have.
    """
    with ExitStack() as held:
        held.enter_context(locked(application_directory(config), config.application_id))
        stopped = StoppedApplication(log, config.application_id, tasks)
        held.callback(stopped.close)
        yield stopped
