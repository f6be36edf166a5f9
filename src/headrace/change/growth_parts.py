"""Parts of a growth that any process can do: the rows of a partition are looked at, and a task is split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from headrace.change.growth_plan import StoreGrowth
from headrace.change.partition_keys import partition_key_of, primary_key_of
from headrace.change.row_moves import MisplacedRowError, PartitionMoves
from headrace.change.stopped_application import TaskUpdate
from headrace.config import StreamsConfig
from headrace.runtime.task_memory import pack_memory, unpack_memory
from headrace.topics.journal import DurableLog, TaskRecord
from headrace.topics.log import ReadableLog, TopicPartition
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class ChangelogPart:
    """One partition of a changelog, up to an offset."""

    growth: StoreGrowth
    partition: int
    end: int


@dataclass(frozen=True)
class MoveFinder:
    """Looks at every row of a part of a changelog; returns its moves, or a text that says why it cannot be moved."""

    log: ReadableLog
    topology: Topology
    config: StreamsConfig

    def __call__(self, part: ChangelogPart) -> PartitionMoves | str:
        keys = partition_key_of(self.topology, part.growth.store, self.config)
        primary = primary_key_of(self.topology, part.growth.store, self.config)
        try:
            return PartitionMoves.find(self.log, part.growth, part.partition, part.end, keys, primary)
        except MisplacedRowError as error:
            return str(error)


@dataclass(frozen=True)
class TakingOver:
    """Update of a task that is added: rows that are its own now, and what the task that had them remembers."""

    partition: int
    positions: Mapping[TopicPartition, int]
    """Where its inputs begin."""
    origin: TaskRecord
    moves: Sequence[PartitionMoves]
    """From the partition of the task that had the rows."""

    def __call__(self, log: DurableLog) -> TaskUpdate:
        return TaskUpdate(
            positions=self.positions,
            memory=_inherited(self.origin.memory, self.partition),
            next_clock_ms=self.origin.next_clock_ms,
            written=chain.from_iterable(each.copied(log, self.partition) for each in self.moves),
        )


@dataclass(frozen=True)
class GivingAway:
    """Update of a task that was there before: deletions of rows that are others' now."""

    record: TaskRecord
    moves: Sequence[PartitionMoves]

    def __call__(self, log: DurableLog) -> TaskUpdate:
        return TaskUpdate(
            positions={(topic, number): at for topic, number, at in self.record.positions},
            memory=self.record.memory,
            next_clock_ms=self.record.next_clock_ms,
            # Its changelogs go on where they were, so working copies do, too.
            lineage=self.record.lineage,
            written=chain.from_iterable(each.given_away(log) for each in self.moves),
        )


def _inherited(memory: bytes, partition: int) -> bytes:
    """Returns what a task remembers, for one that takes over some of its keys in another partition.

    Offsets of its changelogs mean nothing there.
    """
    # Any: the parts of a memory are of several types.
    remembered: dict[str, Any] = unpack_memory(memory)
    clocks = remembered.pop("clocks")
    remembered.pop("samples")
    times = {(topic, partition): time_ms for (topic, _), time_ms in remembered["partition_times"].items()}
    return pack_memory({**remembered, "partition_times": times}, clocks)
