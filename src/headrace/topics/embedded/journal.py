"""The journal of an application in the embedded log: a micro-batch is one transaction, so it is there or it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from headrace.topics.embedded.committing import check_owner, commit
from headrace.topics.embedded.staging import StageWriter, StagingArea
from headrace.topics.embedded.tables import Application, Tables
from headrace.topics.journal import (
    EdgeBlob,
    JournalState,
    Receipt,
    TaskCommitState,
    TaskRecord,
    TaskStatus,
    Written,
)
from headrace.topics.log import Committed, Topic, TopicPartition

T = TypeVar("T")
# Runs an action in a transaction.
Transact = Callable[[Callable[[Tables], Any]], Any]


class EmbeddedJournal:
    """The driver's side; see ``headrace.topics.journal.Journal``."""

    def __init__(self, write: Transact, staging: StagingArea, application: str) -> None:
        self._write = write
        self._staging = staging
        self._application = application
        self.incarnation, self.state = self._open()
        # What drivers have staged that are fenced now; a task of one that still runs finds its commit refused.
        staging.discard(application, self.incarnation)

    def _open(self) -> tuple[int, JournalState]:
        name = self._application

        def take_over(tables: Tables) -> tuple[int, JournalState]:
            found = tables.application(name) or Application()
            found.incarnation += 1
            tables.put_application(name, found)
            records = {task: TaskRecord.unpack(data) for task, data in tables.task_records(name).items()}
            return found.incarnation, JournalState(
                found.batch_id,
                {(topic, partition): offset for topic, partition, offset in found.positions},
                {task: TaskStatus(record.stamp, record.next_clock_ms) for task, record in records.items()},
            )

        opened: tuple[int, JournalState] = self._write(take_over)
        return opened

    def begin(self, batch_id: int, plan: bytes) -> None:
        """Does nothing: a batch of which nothing was committed needs no plan any more."""

    def commit(
        self, batch_id: int, receipts: Sequence[Receipt], positions: Mapping[TopicPartition, int] | None = None
    ) -> Committed:
        application = self._application
        done: Committed = self._write(
            lambda tables: commit(
                tables,
                lambda receipt: self._staging.frames(application, receipt),
                application,
                self.incarnation,
                batch_id,
                receipts,
                positions or {},
            )
        )
        if any(receipt.file for receipt in receipts):
            self._staging.discard(application, self.incarnation, batch_id)
        return done

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        def delete(tables: Tables) -> None:
            check_owner(self._application, self.incarnation, tables.application(self._application) or Application())
            tables.delete_records(before)

        self._write(delete)

    def close(self) -> None:
        """Does nothing: the log has nothing open for it."""


class EmbeddedTaskJournal:
    """A task's side: what it commits waits in its receipt, or in a file beside the log."""

    def __init__(
        self,
        read: Transact,
        staging: StagingArea,
        topic: Callable[[str], Topic],
        application: str,
        incarnation: int,
        task: str,
        changelogs: Sequence[TopicPartition],
    ) -> None:
        self._read = read
        self._staging = staging
        self._topic = topic
        self._application = application
        self._incarnation = incarnation
        self._task = task
        self._changelogs = changelogs

    def open(self) -> TaskCommitState:
        # The ends of changelogs and the record belong together, so they are read in one transaction.
        def head_of(tables: Tables) -> TaskCommitState:
            application = tables.application(self._application) or Application()
            check_owner(self._application, self._incarnation, application)
            ends = {target: tables.partition(target)[1].end for target in self._changelogs}
            return TaskCommitState(self._record(tables), ends)

        head: TaskCommitState = self._read(head_of)
        return head

    def read_record(self) -> TaskRecord | None:
        found: TaskRecord | None = self._read(self._record)
        return found

    def _record(self, tables: Tables) -> TaskRecord | None:
        record = tables.task_record(self._application, self._task)
        return None if record is None else TaskRecord.unpack(record)

    def commit(self, record: TaskRecord, written: Written, edges: Sequence[EdgeBlob]) -> Receipt:
        stage = StageWriter(self._staging, self._topic, self._application, self._incarnation, self._task, record)
        try:
            for topic, outputs in written:
                stage.write(topic, outputs)
            return stage.finish()
        except BaseException:
            stage.discard()
            raise

    def read_edges(self, record: TaskRecord) -> list[EdgeBlob]:
        """Returns nothing: there is no batch of which some tasks have committed and others have not."""
        return []

    def close(self) -> None:
        """Does nothing: staged output is deleted with the next commit, or the next start."""
