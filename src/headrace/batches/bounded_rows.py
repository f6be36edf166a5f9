"""Rows that a backfill shuffles, and what all of its tasks have in common.

The shuffle brings the rows of a task together, in the order in which a micro-batch of everything would process them: by
time, input, sender and sequence.

* A record that goes over an edge counts as old as the newest one that its task has sent to the same partition before,
  so it never overtakes that one.
* At equal times inputs go by topic, and senders by sub-topology and partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import IntEnum
from functools import cached_property
from itertools import count, repeat
from typing import NamedTuple, TypeVar

import msgspec

from headrace.batches.layout import Layout, TaskPlace
from headrace.config import StreamsConfig
from headrace.topics.log import Headers, Output, Raw

FIRST_MS = -(1 << 63)
"""Sorts before all records: state that a task has left in the round before."""
FROM_INPUT = -1
"""The sender of records that come from outside."""
ROUND_BITS = 40
"""What is sent in a later round has a higher number."""
_PAGE_ROWS = 10_000
_PAGE_BYTES = 8 << 20

T = TypeVar("T")


class RowKind(IntEnum):
    """Kind of a shuffle row."""

    STATE = 0
    """A row of a store, for the same task in the next round."""
    INPUT = 1
    """A record for a task of this round."""
    NEXT = 2
    """A record for a task of the next round: it has crossed a back edge, or a topic that is written and read."""
    OUTPUT = 3
    """A record for a topic."""
    CHANGELOG = 4
    """A record for a changelog, in partition and topic."""
    MEMORY = 5
    """What a task remembers besides its stores, as the record of a task has it; its time is its next clock, or -1."""


class ShuffleRow(NamedTuple):
    """A row that a task sends: to another task, to itself in the next round, or to the caller."""

    kind: int
    level: int
    """Of the task that it is for."""
    task: int
    """The task that it is for, or that has written it: its place among the tasks of the layout."""
    time: int
    input: int
    """Which input of the task; of state, which engine."""
    sender: int
    sequence: int
    topic: str
    partition: int | None
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: bytes | None

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return len(self.key or b"") + len(self.value or b"")

    def output(self) -> Output:
        """Returns the record that it is."""
        return self.partition, self.timestamp, self.key, self.value, unpack_headers(self.headers)


@dataclass(frozen=True)
class RowPage:
    """Shuffle rows that a task sends together, by columns; what all of them have alike stands once."""

    kind: int
    level: int
    task: int
    input: int
    sender: int
    topic: str
    first: int
    """The sequence number of the first one; those of the others follow."""
    times: Sequence[int] | int
    partitions: Sequence[int | None]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[bytes | None] | None
    """None: no record has any."""

    def __len__(self) -> int:
        return len(self.timestamps)

    def rows(self) -> Iterator[ShuffleRow]:
        """Returns the rows one by one."""
        kind, level, task, number, sender, topic = self.kind, self.level, self.task, self.input, self.sender, self.topic
        columns = (
            repeat(self.times) if isinstance(self.times, int) else self.times,
            count(self.first),
            self.partitions,
            self.timestamps,
            self.keys,
            self.values,
            repeat(None) if self.headers is None else self.headers,
        )
        for time, sequence, partition, *rest in zip(*columns, strict=False):
            yield ShuffleRow(kind, level, task, time, number, sender, sequence, topic, partition, *rest)


class Part(NamedTuple):
    """Rows of one input of a task, in their order, by columns; or of one of its engines."""

    input: int
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[bytes | None] | None = None
    """None: no record has any."""

    def __len__(self) -> int:
        return len(self.keys)


class TaskInput(NamedTuple):
    """What a task takes at once: state that it has left behind, or records that are no older than those before."""

    task: int
    is_state: bool
    parts: Sequence[Part]


def pages(rows: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Returns rows in pages of many rows, or of fewer if they are large; ``size`` gives the bytes of a row.

    >>> [len(page) for page in pages([5 << 20, 5 << 20, 1, 1], lambda row: row)]
    [2, 2]
    """
    page: list[T] = []
    left = _PAGE_BYTES
    for row in rows:
        page.append(row)
        left -= size(row)
        if left <= 0 or len(page) == _PAGE_ROWS:
            yield page
            page, left = [], _PAGE_BYTES
    if page:
        yield page


_pack_headers = msgspec.msgpack.Encoder().encode
_unpack_headers = msgspec.msgpack.Decoder(tuple[tuple[str, bytes | None], ...]).decode


def pack_headers(headers: Headers) -> bytes | None:
    """Returns headers as they travel; None if there are none."""
    return _pack_headers(headers) if headers else None


def unpack_headers(data: bytes | None) -> Headers:
    """Returns what ``pack_headers`` was given.

    >>> unpack_headers(pack_headers((("source", b"web"),)))
    (('source', b'web'),)
    """
    return _unpack_headers(data) if data else ()


@dataclass(frozen=True)
class BoundedJob:
    """Common part of all tasks of a backfill; it travels to the workers."""

    layout: Layout
    now_ms: int
    """The wall clock, which stands still."""
    chunk_records: int
    """Records between two commits of a task: caches are flushed, and stores written, so often."""
    close_windows: bool = False
    """Whether what waits for a later record is emitted at the end."""
    keeps_state: bool = False
    """Whether tasks leave their state behind for another round."""
    logs_changes: bool = False
    """Whether tasks tell the changes of stores of which the changelog needs all, in their order: versioned ones."""
    logs_rows: bool = False
    """Whether tasks leave behind what changelogs and the record of a task have, in the end."""
    round: int = 0
    tables: Mapping[str, Sequence[Raw]] = field(default_factory=dict)
    """All records of the topics of global tables."""

    @cached_property
    def readers(self) -> Mapping[str, int]:
        """Topics that tasks read, and the sub-topologies of these tasks."""
        layout = self.layout
        return {topic: part.id for part in layout.parts.values() for _, topic in layout.sources(part)}

    @cached_property
    def numbers(self) -> Mapping[tuple[int, int], int]:
        """The number of each task, by sub-topology and partition."""
        return {place.id: number for number, place in enumerate(self.layout.tasks)}

    @cached_property
    def senders(self) -> Mapping[tuple[int, int], int]:
        """The rank of each task among senders, whose records are merged in this order."""
        return {task: rank for rank, task in enumerate(sorted(self.numbers))}

    def inputs(self, place: TaskPlace) -> list[str]:
        """Returns the topics that a task reads, in the order in which it prefers them at equal times."""
        return sorted(topic for _, topic, _ in place.inputs)

    @cached_property
    def internal(self) -> frozenset[str]:
        """Topics that only the application itself reads."""
        return frozenset(self.layout.topology.internal_topics(self.layout.config.application_id))

    @property
    def has_rounds(self) -> bool:
        """Whether records may have to wait for another round: something is read that is written, and is no edge."""
        topology = self.layout.topology
        written = {self.layout.topic_name(sink.topic) for sink in topology.sink_nodes if sink.topic is not None}
        extracted = any(sink.topic_extractor is not None for sink in topology.sink_nodes)
        return extracted or any(topic in written and topic not in self.layout.edges for topic in self.readers)


def bounded_config(config: StreamsConfig) -> StreamsConfig:
    """Returns settings that make results independent of a task's speed: closed windows are emitted at once."""
    return replace(config, emit_interval=timedelta(0))
