"""Carrying over of task records: the tasks of a new topology, made of what those of the former one have left.

Positions and partition times follow topics, what operators remember follows stores, and deadlines of punctuations
follow processors, always within the same partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from headrace.change.verdicts import Comparison
from headrace.runtime.task import TaskId
from headrace.runtime.task_memory import pack_memory, unpack_memory
from headrace.topics.journal import TaskRecord
from headrace.topics.log import Offsets
from headrace.topology.outline import Outline, PartOutline

_NO_TIME = -1


@dataclass(frozen=True)
class CarriedTask:
    """A task as it is after a change."""

    positions: Offsets
    memory: bytes
    lineage: str


@dataclass
class _Memory:
    """Memory of a new task, while it is put together."""

    stream_time_ms: int = _NO_TIME
    # Any: a cell holds whatever plain value its operator keeps, and so does what a store says of its expiry.
    cells: dict[str, Any] = field(default_factory=dict)
    punctuations: dict[str, Any] = field(default_factory=dict)
    partition_times: Offsets = field(default_factory=dict)
    expiries: dict[str, Any] = field(default_factory=dict)
    clocks: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    samples: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def pack(self) -> bytes:
        remembered = {
            "stream_time_ms": self.stream_time_ms,
            "cells": self.cells,
            "punctuations": self.punctuations,
            "partition_times": self.partition_times,
            "expiries": self.expiries,
        }
        return pack_memory(remembered, self.clocks, self.samples)


class TaskRecordMigration:
    """Makes the records of new tasks from those that former tasks have committed last."""

    def __init__(
        self,
        application: str,
        old: Outline,
        new: Outline,
        comparison: Comparison,
        records: Mapping[str, TaskRecord | None],
    ) -> None:
        self._application = application
        self._old = old
        self._new = new
        self._comparison = comparison
        self._records = records
        self._nodes = {name: part.number for part in new.parts for name in part.nodes}

    def retired(self) -> CarriedTask:
        """Returns the record of a task that there is no more: one that begins anew, if there ever is one again."""
        return CarriedTask({}, _Memory().pack(), token_hex(8))

    def task(self, part: PartOutline, partition: int) -> CarriedTask:
        """Returns the record of a new task."""
        if part.number in self._comparison.rebuilt_parts:
            return self.retired()
        memory, positions = _Memory(), dict[tuple[str, int], int]()
        for former in self._old.parts:
            record = self._records.get(str(TaskId(former.number, partition)))
            if record is not None:
                positions |= self._positions(part, record)
                self._remember(memory, part, former, unpack_memory(record.memory))
        return CarriedTask(positions, memory.pack(), self._lineage(part, partition))

    def topics(self, part: PartOutline) -> dict[str, str]:
        """Returns the topics that a new sub-topology goes on to read, by their former names in the log."""
        return {
            self._old.full_topic_name(before, self._application): self._new.full_topic_name(now, self._application)
            for before, now in self._comparison.topic_names.items()
            if now in part.topics
        }

    def _positions(self, part: PartOutline, record: TaskRecord) -> Offsets:
        topics = self.topics(part)
        # Positions in an internal topic of another name mean nothing: what was in it is read.
        return {(topic, n): offset for topic, n, offset in record.positions if topics.get(topic) == topic}

    def _remember(self, memory: _Memory, part: PartOutline, former: PartOutline, found: Mapping[str, Any]) -> None:
        stores = {
            before: now
            for before, now in self._comparison.store_names.items()
            if now in part.stores and before in former.stores
        }
        topics = self.topics(part)
        times = {
            (topics[topic], n): time_ms for (topic, n), time_ms in found["partition_times"].items() if topic in topics
        }
        memory.partition_times |= times
        memory.stream_time_ms = max(memory.stream_time_ms, self._stream_time_ms(part, former, found, times))
        for key, value in found["cells"].items():
            store, _, name = key.partition("/")
            if store in stores:
                memory.cells[f"{stores[store]}/{name}"] = value
        for key, value in found["punctuations"].items():
            node, _, number = key.rpartition("/")
            now = self._comparison.node_names.get(node)
            if now is not None and self._nodes.get(now) == part.number:
                memory.punctuations[f"{now}/{number}"] = value
        memory.expiries |= _rename_keys(found.get("expiries", {}), stores)
        memory.clocks |= _rename_keys(found["clocks"], stores)
        # They are offsets of the changelog, so they are of no use to another one.
        same = {before: now for before, now in stores.items() if before == now}
        memory.samples |= _rename_keys(found["samples"], same)

    def _stream_time_ms(self, part: PartOutline, former: PartOutline, found: Mapping[str, Any], times: Offsets) -> int:
        """Returns the time up to which a new task has come by what it takes over of a former one."""
        stream_time_ms: int = found["stream_time_ms"]
        names = self._comparison.topic_names
        if all(names.get(topic) in part.topics for topic in former.topics):
            return stream_time_ms
        return min(stream_time_ms, max(times.values(), default=_NO_TIME))

    def _lineage(self, part: PartOutline, partition: int) -> str:
        """Returns the former lineage if working copies fit as they are: they have all stores, and perhaps lack some."""
        record = self._records.get(str(TaskId(part.number, partition)))
        before = next((each.stores for each in self._old.parts if each.number == part.number), ())
        fits = all(self._is_untouched(store, part) for store in before)
        return token_hex(8) if record is None or not fits else record.lineage

    def _is_untouched(self, store: str, part: PartOutline) -> bool:
        if store not in part.stores or store in self._comparison.converted:
            return False
        before, now = self._old.store_named[store], self._new.store_named[store]
        same = (before.kind, before.by_time, before.topic) == (now.kind, now.by_time, now.topic)
        return same and self._comparison.store_names.get(store) == store


def _rename_keys(found: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[store]: value for store, value in found.items() if store in names}
