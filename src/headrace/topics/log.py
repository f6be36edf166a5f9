"""Topic log protocol: reads and appends of records.

Offsets count the records of a partition and never change; removed records leave gaps. What makes micro-batches durable
is the other half of a log, ``headrace.topics.journal``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, TypeAlias

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
    """Description of a topic: its partitions and settings.

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


@dataclass(frozen=True)
class Committed:
    """Records that a batch has added to the log."""

    batch_id: int
    written: Mapping[TopicPartition, tuple[int, int]]
    """For each partition that got records: the offset of the first one and the one after the last."""

    @property
    def records(self) -> int:
        return sum(end - first for first, end in self.written.values())


class ReadableLog(Protocol):
    """Topics and their records, for readers only."""

    def topics(self) -> list[str]: ...
    def describe_topic(self, name: str) -> Topic: ...

    def topic_id(self, name: str) -> str:
        """Returns what tells a topic from one of the same name that was deleted before."""
        ...

    def partition_counts(self) -> dict[str, int]:
        """Returns all topics in their order, and how many partitions each has."""
        ...

    def partitions_of(self, topic: str) -> int:
        """Returns the number of partitions of a topic, cached for some seconds: for frequent calls."""
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

    def wait_for_data(self, positions: Mapping[TopicPartition, int], timeout: timedelta) -> bool:
        """Waits until a partition has something at its position or behind; False when the time is over."""
        ...


class TopicLog(ReadableLog, Protocol):
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

    def delete_topic(self, name: str) -> None: ...

    def grow_topic(self, name: str, partitions: int) -> None:
        """Gives a topic so many partitions; nothing happens if it has them. It can never have fewer again."""
        ...

    def append(self, topic: str, records: Iterable[Output]) -> Written:
        """Writes records and returns once they are acknowledged."""
        ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Forgets what lies before the offsets."""
        ...

    def applications(self) -> list[str]:
        """Returns the ids of applications that have committed batches or positions, and perhaps of other readers."""
        ...

    def last_batch(self, application: str) -> Committed | None: ...
    def positions(self, application: str) -> Offsets: ...
    def begin_at(self, application: str, positions: Mapping[TopicPartition, int]) -> None:
        """Lets an application that has committed no batch begin at these positions."""
        ...

    def reset_application(self, application: str, internal_topics: Iterable[str] = ()) -> None:
        """Forgets an application and empties its internal topics; other topics stay as they are."""
        ...

    def forget_application(self, application: str) -> None:
        """Forgets that there ever was an application that was reset; nothing of it may run any more, or ever again."""
        ...

    def close(self) -> None: ...
