"""The journal of an application: the seam between micro-batches and the log that makes them durable.

The driver opens the journal, which fences earlier drivers, and records each micro-batch in it. A task opens its
own part before it runs, and commits into it what it has written: outputs, changelogs, and a record of itself. On the
embedded log a task's part waits in a receipt until the driver commits the batch as a whole; on Kafka it is a
transaction of its own, and the batch is there when all tasks have committed theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from headrace.errors import BatchError
from headrace.topics.consumer_group import GroupMember, GroupOffset
from headrace.topics.log import Committed, Offsets, Output, Raw, TopicLog, TopicPartition

Written: TypeAlias = Iterable[tuple[str, Sequence[Output]]]
"""Records by topic, in the order in which they are written; it is gone through once."""


class EdgeBlob(NamedTuple):
    """Records that one task sends to another one over a repartition edge, packed."""

    receiver: str
    """Name of the task that gets it."""
    topic: str
    """The repartition topic that the edge stands for."""
    sender: str
    """Name of the task that has sent it."""
    sequence: int
    """Its place among the blobs of the same sender, receiver and topic."""
    blob: bytes


class TaskRecord(msgspec.Struct, array_like=True, frozen=True):
    """A task as it was left by the last micro-batch that it has committed."""

    batch_id: int
    stamp: str
    """Random, new in every commit: a task that has the same stamp in memory has seen this commit, and none after it."""
    positions: list[tuple[str, int, int]]
    """Topic, partition and next offset of everything it reads from the log."""
    next_clock_ms: int | None
    """When its next wall-clock punctuation is due."""
    memory: bytes
    """What besides the stores decides later results, as the task has packed it."""
    lineage: str = ""
    """Random, made with the task's first record: another one after a reset, when offsets may mean other rows."""
    edges: list[tuple[str, str, int, int]] = []
    """Receiver, topic, sequence and offset of the blobs it has sent, where the log keeps them."""
    rows: dict[str, int] = {}
    """How many entries each store has; for people."""

    def pack(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def unpack(cls, data: bytes) -> TaskRecord:
        return msgspec.msgpack.decode(data, type=cls)


class TaskCommitState(NamedTuple):
    """State of a task in the log at one moment."""

    record: TaskRecord | None
    """None if it has never committed anything."""
    ends: Mapping[TopicPartition, int]
    """Up to where its changelogs are committed: a restore reads no further."""


class TaskStatus(NamedTuple):
    """Status of a task that has committed, for the driver."""

    stamp: str
    next_clock_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Receipt of a task's part of a batch, for the driver to commit. It travels from the executors, so it pickles."""

    task: str
    batch_id: int
    incarnation: int
    stamp: str
    positions: Mapping[TopicPartition, int]
    """Up to where the task has consumed its inputs."""
    next_clock_ms: int | None = None
    record: bytes = b""
    """The packed ``TaskRecord``, if the driver has to write it."""
    file: str = ""
    """Where the log keeps what was staged, if that is not in the receipt."""
    size: int = 0
    """Bytes that were staged."""
    inline: bytes = b""
    """Small outputs themselves: a file would cost more than they do."""
    written: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """First offset and the one after the last, by partition, if the task has published its records itself.

    Of the task's own partition only its ``TaskRecord`` counts.
    """

    @classmethod
    def of(cls, task: str, incarnation: int, record: TaskRecord) -> Receipt:
        """Returns the receipt of what a record says that the task has done."""
        return cls(
            task=task,
            batch_id=record.batch_id,
            incarnation=incarnation,
            stamp=record.stamp,
            positions={(topic, partition): offset for topic, partition, offset in record.positions},
            next_clock_ms=record.next_clock_ms,
        )

    @property
    def status(self) -> TaskStatus:
        return TaskStatus(self.stamp, self.next_clock_ms)


@dataclass(frozen=True)
class JournalState:
    """State of an application when its journal is opened."""

    batch_id: int = -1
    """The last micro-batch that all its tasks have committed."""
    positions: Offsets = field(default_factory=dict)
    tasks: Mapping[str, TaskStatus] = field(default_factory=dict)
    """By task, as of that batch."""
    begun: bytes | None = None
    """The plan of the next batch, if that was begun: some tasks may have committed it, and the others must."""


@dataclass(frozen=True)
class ApplicationCut:
    """An application exactly as one of its micro-batches has left it, whether or not it has gone on since."""

    batch_id: int
    positions: Offsets
    records: Mapping[str, TaskRecord]
    """By task, as of that batch."""
    ends: Offsets
    """Up to where the batch and those before it have written, by partition."""
    tails: Mapping[TopicPartition, list[Raw]]
    """Records before the ends, from where the caller has read to."""


class Journal(Protocol):
    """An application's journal in the hands of its driver. Opening it fences all earlier drivers and their tasks."""

    @property
    def incarnation(self) -> int:
        """The number of this opening: larger than that of all before it."""
        ...

    @property
    def state(self) -> JournalState:
        """What was there when it was opened."""
        ...

    def begin(self, batch_id: int, plan: bytes) -> None:
        """Records the plan of a batch before any task runs; raises FencedError if another driver has taken over."""
        ...

    def commit(
        self, batch_id: int, receipts: Sequence[Receipt], positions: Mapping[TopicPartition, int] | None = None
    ) -> Committed:
        """Makes a batch final, with further ``positions``; raises FencedError if another driver has taken over."""
        ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Deletes what the application needs no more; raises FencedError if another driver has taken over.

        Then topics of these names may be others, made anew by a reset.
        """
        ...

    def close(self) -> None: ...


class TaskJournal(Protocol):
    """One task's part of the journal, in the process that runs the task."""

    def open(self) -> TaskCommitState:
        """Ends what earlier processes have left open, and returns where the task stands.

        Raises FencedError if another driver has taken over.
        """
        ...

    def read_record(self) -> TaskRecord | None:
        """Returns the last record that can be read, for a reader that does not run the task: nothing is fenced."""
        ...

    def commit(self, record: TaskRecord, written: Written, edges: Sequence[EdgeBlob]) -> Receipt:
        """Commits what the task has done in a batch, or stages it for the driver to commit.

        Whatever is raised, the end is not known: ``open`` it again.
        """
        ...

    def read_edges(self, record: TaskRecord) -> list[EdgeBlob]:
        """Returns the blobs that a committed record names; a log that commits whole batches never needs them."""
        ...

    def close(self) -> None:
        """Gives up what is not committed."""
        ...


class DurableLog(TopicLog, Protocol):
    """A topic log with journals: what an engine runs on."""

    def application_description(self, application: str) -> bytes | None:
        """Returns what ``describe_application`` was given last; None before that, and after a reset."""
        ...

    def describe_application(self, application: str, description: bytes) -> None:
        """Keeps a description of an application beside its journal."""
        ...

    def cut_application(self, application: str, starts: Mapping[TopicPartition, int | None]) -> ApplicationCut | None:
        """Returns an application as its last micro-batch has left it, or one soon after; None if it has made none.

        It is for partitions that only the application writes. ``starts`` say from where the records of each are
        returned, besides; None: from where the application has read to. A running application is not disturbed.
        """
        ...

    def open_journal(self, application: str, tasks: Sequence[str]) -> Journal:
        """Opens an application's journal for the driver of its ``tasks``."""
        ...

    def group_offsets(self, application: str) -> Mapping[TopicPartition, GroupOffset]:
        """Returns what the application's consumer group has committed; only Kafka has such groups."""
        ...

    def commit_group_offsets(self, application: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commits offsets of the application's consumer group, which must have no members."""
        ...

    def group_members(self, application: str) -> Sequence[GroupMember]:
        """Returns the members of the application's consumer group. Headrace never joins it."""
        ...

    def task_journal(
        self, application: str, incarnation: int, task: str, changelogs: Sequence[TopicPartition]
    ) -> TaskJournal:
        """Returns a task's part; ``changelogs`` are the partitions that only this task writes."""
        ...


def check_receipts(application: str, incarnation: int, batch_id: int, receipts: Sequence[Receipt]) -> None:
    """Complains about receipts of another batch or driver, and about two of one task."""
    tasks = set()
    for receipt in receipts:
        if (receipt.incarnation, receipt.batch_id) != (incarnation, batch_id):
            message = (
                f"batch {batch_id} of application '{application}' (instance {incarnation}) has a receipt of batch "
                f"{receipt.batch_id} of instance {receipt.incarnation} (task {receipt.task}); commit only receipts of "
                "this batch"
            )
            raise BatchError(message)
        if receipt.task in tasks:
            message = (
                f"batch {batch_id} of application '{application}' has two receipts of task {receipt.task}; commit the "
                "one of the attempt that counts"
            )
            raise BatchError(message)
        tasks.add(receipt.task)
