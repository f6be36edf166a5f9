"""The topic log as everybody else sees it: what is read, what is appended, and one commit per micro-batch.

Offsets count the records of a partition and never change; removed records leave gaps. The engine's seam is the second
half of the protocol: tasks ``stage`` what they write, and ``commit_batch`` makes it visible. On the embedded log one
commit publishes all tasks together; on Kafka, ``finish`` commits the task's own transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self, TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

Raw: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]
"""Offset, timestamp, key, value, headers: what a task reads."""

Output: TypeAlias = tuple[int | None, int, bytes | None, bytes | None, Headers]
"""Partition (None: by the key's hash), timestamp, key, value, headers: what a task writes."""

TopicPartition: TypeAlias = tuple[str, int]

Offsets: TypeAlias = dict[TopicPartition, int]

Written: TypeAlias = dict[int, tuple[int, int]]
"""By partition: the offset of the first record that was written and the one after the last."""


@dataclass(frozen=True)
class Topic:
    """What a log knows about a topic.

    >>> Topic("users", 4, {"cleanup.policy": "compact"}).is_compacted
    True
    """

    name: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    """Only what was set; everything else has its default."""

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.configs.get("cleanup.policy", "")


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What a task has staged for a batch, for the driver to commit. It travels from the executors, so it pickles."""

    application: str
    batch_id: int
    task: str
    attempt: int
    records: int
    positions: Mapping[TopicPartition, int]
    """Up to where the task has consumed its inputs."""
    file: str = ""
    """Where the log keeps what was staged, if that is not in the receipt."""
    size: int = 0
    """Bytes that were staged."""
    inline: bytes = b""
    """Small outputs themselves: a file would cost more than they do."""


@dataclass(frozen=True)
class Committed:
    """What a batch has added to the log."""

    batch_id: int
    written: Mapping[TopicPartition, tuple[int, int]]
    """For each partition that got records: the offset of the first one and the one after the last."""

    @property
    def records(self) -> int:
        return sum(end - first for first, end in self.written.values())


class Stage(Protocol):
    """The outputs of one attempt of a task in one micro-batch. Leaving it as a context unfinished discards them."""

    def write(self, topic: str, outputs: Sequence[Output]) -> None: ...
    def finish(self, positions: Mapping[TopicPartition, int]) -> Receipt: ...
    def discard(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class TopicLog(Protocol):
    """A log of topics, for several processes at once. A handle pickles, and opens the log anew where it arrives."""

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        configs: Mapping[str, object] | None = None,
    ) -> Topic:
        """Makes a topic; ``replicas`` are for a log that has them."""
        ...

    def topics(self) -> list[str]: ...
    def describe_topic(self, name: str) -> Topic: ...

    def topic_id(self, name: str) -> str:
        """Returns what tells a topic from one of the same name that was deleted before."""
        ...

    def delete_topic(self, name: str) -> None: ...

    def partition_counts(self) -> dict[str, int]:
        """Returns all topics in their order, and how many partitions each has."""
        ...

    def partitions_of(self, topic: str) -> int:
        """Returns how many partitions a topic has, as it was known some seconds ago: for those who ask often."""
        ...

    def append(self, topic: str, records: Iterable[Output]) -> Written:
        """Writes records and returns once they are acknowledged."""
        ...

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        stop: int | None = None,
        *,
        max_records: int = ...,
        max_bytes: int = ...,
    ) -> list[Raw]:
        """Returns records with start ≤ offset < stop, in order; an empty list says that there are no more of them.

        Go on behind the last offset returned. ``max_bytes`` is kept approximately; at least one record is returned.
        """
        ...

    def begin_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets: ...

    def end_offsets(self, partitions: Iterable[TopicPartition], *, stable: bool = True) -> Offsets:
        """Returns the offsets after the last records; ``stable`` ones end before transactions that are still open."""
        ...

    def offsets_for_time(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Returns the first offset whose record is at or after the time, for each partition; None if there is none."""
        ...

    def latest_time(self, topic: str, partition: int, start: int, stop: int) -> int | None:
        """Returns the largest timestamp of the records with start ≤ offset < stop; None if there are none."""
        ...

    def offset_after(self, topic: str, partition: int, start: int, stop: int, time_ms: int) -> int | None:
        """Returns the first offset from ``start`` to before ``stop`` whose record is later than the time, or None."""
        ...

    def record_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns about how many bytes a record of each partition has."""
        ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Forgets what lies before the offsets."""
        ...

    def wait_for_data(self, positions: Mapping[TopicPartition, int], timeout: timedelta) -> bool:
        """Waits until a partition has something at its position or behind; False when the time is over."""
        ...

    def stage(
        self,
        application: str,
        batch_id: int,
        task: str,
        attempt: int,
        *,
        plan: str = "",
        checkpoint: str = "",
        changes: Callable[[], str] | None = None,
    ) -> Stage:
        """Returns where one attempt of a task puts its outputs.

        A log in which every task commits for itself keeps with them what they belong to: the ``plan`` of the batch, the
        ``checkpoint`` that has the state, and a digest of the ``changes`` of that state, which is asked for if needed.
        """
        ...

    def before_replay(self, application: str, batch_id: int) -> None:
        """Complains about a batch that was begun before, if the log cannot say any more what of it was written."""
        ...

    def commit_batch(
        self,
        application: str,
        batch_id: int,
        receipts: Iterable[Receipt],
        *,
        plan: str = "",
        positions: Mapping[TopicPartition, int] | None = None,
    ) -> Committed:
        """Publishes what the receipts name, in their order, and the positions with it. A second call changes nothing.

        ``plan`` says what the batch read, in a digest for instance: the same id with another plan is refused.
        """
        ...

    def applications(self) -> list[str]:
        """Returns who has committed batches or positions, and perhaps others who read."""
        ...

    def last_batch(self, application: str) -> Committed | None: ...
    def positions(self, application: str) -> Offsets: ...
    def discard_staged(self, application: str) -> int: ...
    def reset_application(self, application: str) -> None: ...
    def close(self) -> None: ...
