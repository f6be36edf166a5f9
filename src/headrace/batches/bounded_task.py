"""Task over bounded input: records in the order of their times, a commit per chunk, state in files of its own.

Where chunks end makes no difference but to caches, which are flushed there; see ``headrace.batches.bounded_rows`` for
the order of what a task gets.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, count, repeat
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec

from headrace.batches.bounded_host import BoundedHost, global_stores
from headrace.batches.bounded_rows import (
    FIRST_MS,
    ROUND_BITS,
    BoundedJob,
    Part,
    RowKind,
    RowPage,
    TaskInput,
    pack_headers,
    pages,
    unpack_headers,
)
from headrace.batches.edges import FIRST_PARTITION
from headrace.batches.live_task import unlogged_rows
from headrace.runtime.gc_pause import collector_paused
from headrace.runtime.punctuation import NEVER
from headrace.runtime.task import Task
from headrace.runtime.task_memory import pack_memory, unpack_memory
from headrace.state import OverlayEngine
from headrace.state.engines.changes import Changes
from headrace.topics.log import Output, Raw, Topic
from headrace.topics.record_partitioning import spread


class BoundedTask:
    """One task, from its first record to its last."""

    def __init__(self, job: BoundedJob, number: int, directory: Path, tables: Mapping[str, Any]) -> None:
        self._job = job
        self._number = number
        self._place = job.layout.tasks[number]
        self._topics = job.inputs(self._place)
        self._directory = Path(mkdtemp(prefix=f"{self._place.name}-", dir=directory))
        self._host = BoundedHost(job, self._directory, tables)
        layout, part = job.layout, job.layout.parts[self._place.id.subtopology]
        self._builders = [layout.topology.store_builders[store] for store in part.state_stores]
        self._nodes = [layout.topology.nodes[name] for name in part.nodes]
        self._task: Task | None = None
        self._memory: dict[str, Any] = {}
        self._kept_memory: dict[bytes, bytes | None] = {}
        self._offsets = [0] * len(self._topics)
        self._sequence = job.round << ROUND_BITS
        self._sent_ms: dict[tuple[str, int], int] = {}
        self._count = 0
        changelogs = {store: topic for store, topic in self._place.changelogs.items() if store in layout.changelogs}
        self._changelogs = changelogs if job.logs_changes or job.logs_rows else {}

    def take(self, given: TaskInput) -> Iterator[list[RowPage]]:
        """Takes what is next, and returns what the task has sent since; after a chunk it commits."""
        if given.is_state:
            self._restore(given.parts)
            return
        yield self._process(given.parts)
        self._count += sum(map(len, given.parts))
        if self._count >= self._job.chunk_records:
            yield self._committed()

    def finish(self) -> Iterator[list[RowPage]]:
        """Processes the rest of the input; returns the outputs and, if wanted, the state."""
        task = self._opened()
        if self._count:
            yield self._committed()
        if self._job.close_windows:
            task.close_windows()
            yield self._taken(task)
        if self._job.logs_rows or self._job.keeps_state:
            yield from self._state(task)

    def _restore(self, parts: Sequence[Part]) -> None:
        """Takes over what the task has left behind in the round before."""
        for part in parts:
            pairs = {key or b"": value for key, value in zip(part.keys, part.values, strict=True)}
            if part.input < len(self._builders):
                self._host.fill(self._builders[part.input], pairs)
            else:
                self._kept_memory |= pairs

    def _opened(self) -> Task:
        if self._task is None:
            layout = self._job.layout
            if self._kept_memory:
                self._memory = unpack_memory(self._kept_memory[b""] or b"")
                offsets = msgspec.msgpack.decode(self._kept_memory[b"offsets"] or b"", type=dict[str, int])
                self._offsets = [offsets.get(topic, 0) for topic in self._topics]
            self._task = Task(
                self._place.id,
                self._nodes,
                layout.topology.children,
                self._builders,
                layout.config,
                self._host,
                self._memory,
            )
            for source, topic, partition in self._place.inputs:
                self._task.add_partition(source, topic, partition)
        return self._task

    def _process(self, parts: Sequence[Part]) -> list[RowPage]:
        task = self._opened()
        with collector_paused():
            for part in parts:
                task.add_records(self._topics[part.input], self._place.id.partition, self._raws(part))
            task.process_all()
            return self._sent(task)

    def _raws(self, part: Part) -> list[Raw]:
        """Returns records with offsets that count those of their input."""
        number, timestamps, keys, values, packed = part
        headers = repeat(()) if packed is None else map(unpack_headers, packed)
        first = self._offsets[number]
        self._offsets[number] = first + len(part)
        return list(zip(count(first), timestamps, keys, values, headers, strict=False))

    def _committed(self) -> list[RowPage]:
        """Commits what was processed: caches are flushed, and stores written."""
        self._count = 0
        task = self._opened()
        with collector_paused():
            task.commit()
            return self._taken(task)

    def _taken(self, task: Task) -> list[RowPage]:
        """Makes what was done final, and returns what was sent, and what versioned stores have changed.

        A versioned store is restored from its changes in the order in which they came, other stores from their rows.
        """
        sent = self._sent(task)
        for name, engine in task.engines().items():
            if self._job.logs_changes and self._needs_all(task, name):
                sent += self._logged(task, name, engine.changes())
            engine.commit()
        return sent

    def _sent(self, task: Task) -> list[RowPage]:
        """Returns what the task has sent since the last call: a task that fails begins anew, so this need not wait."""
        sent: list[RowPage] = []
        for topic, outputs in task.take_outputs():
            self._send(topic, outputs, sent)
        return sent

    def _needs_all(self, task: Task, store: str) -> bool:
        return store in self._changelogs and task.stores[store].kind.startswith("versioned")

    def _send(self, topic: str, outputs: Sequence[Output], sent: list[RowPage]) -> None:
        job = self._job
        if not outputs:
            return
        if topic not in job.internal:
            sent.append(self._page(RowKind.OUTPUT, topic, outputs))
        reader = job.readers.get(topic)
        if reader is None:
            return
        kind = RowKind.INPUT if topic in job.layout.edges else RowKind.NEXT
        for partition, part in spread(Topic(topic, job.layout.partitions[topic]), outputs, FIRST_PARTITION):
            number = job.numbers[reader, partition]
            place = job.layout.tasks[number]
            newest_ms = self._sent_ms.get((topic, partition), FIRST_MS + 1)
            times = list(accumulate((output[1] for output in part), max, initial=newest_ms))[1:]
            self._sent_ms[topic, partition] = times[-1]
            rank, sender = job.inputs(place).index(topic), job.senders[self._place.id]
            sent.append(self._page(kind, topic, part, reader=number, times=times, rank=rank, sender=sender))

    def _page(
        self,
        kind: RowKind,
        topic: str,
        outputs: Sequence[Output],
        *,
        reader: int | None = None,
        times: Sequence[int] | int = 0,
        rank: int = 0,
        sender: int = 0,
    ) -> RowPage:
        """Returns a page of records for the task ``reader``; without one, of results of this task, or of its state."""
        task = self._number if reader is None else reader
        partitions, timestamps, keys, values, headers = zip(*outputs, strict=True)
        first = self._sequence + 1
        self._sequence += len(outputs)
        packed = list(map(pack_headers, headers)) if any(headers) else None
        level = self._job.layout.tasks[task].level
        place = (kind, level, task, rank, sender, topic, first, times)
        return RowPage(*place, partitions, timestamps, keys, values, packed)

    def _logged(self, task: Task, store: str, changes: Changes) -> list[RowPage]:
        now_ms = max(task.state.stream_time_ms, 0)
        outputs = task.stores[store].changelog_outputs(changes, self._place.id.partition, now_ms)
        return [self._page(RowKind.CHANGELOG, self._changelogs[store], outputs)] if outputs else []

    def _state(self, task: Task) -> Iterator[list[RowPage]]:
        memory = pack_memory(task.remember(), unlogged_rows(task, self._place))
        if self._job.logs_rows:
            for store in self._changelogs:
                for page in () if self._needs_all(task, store) else _pages(task.engines()[store]):
                    yield self._logged(task, store, Changes(rows=dict(page)))
            clock_ms = task.next_wall_clock_ms
            remembered = (None, -1 if clock_ms == NEVER else clock_ms, None, memory, ())
            yield [self._page(RowKind.MEMORY, "", [remembered])]
        if self._job.keeps_state:
            for number, builder in enumerate(self._builders):
                for page in _pages(task.engines()[builder.name]):
                    yield [self._state_page(number, page)]
            offsets = msgspec.msgpack.encode(dict(zip(self._topics, self._offsets, strict=True)))
            yield [self._state_page(len(self._builders), [(b"", memory), (b"offsets", offsets)])]

    def _state_page(self, number: int, rows: Sequence[tuple[bytes, bytes]]) -> RowPage:
        outputs: list[Output] = [(None, 0, key, value, ()) for key, value in rows]
        return self._page(RowKind.STATE, "", outputs, times=FIRST_MS, rank=number)

    def close(self) -> None:
        """Closes processors and stores, and deletes the files."""
        try:
            if self._task is not None:
                self._task.close()
        finally:
            self._host.close()
            shutil.rmtree(self._directory, ignore_errors=True)


def _pages(engine: OverlayEngine) -> Iterator[list[tuple[bytes, bytes]]]:
    return pages(engine.scan(), lambda row: len(row[0]) + len(row[1]))


def run_tasks(job: BoundedJob, inputs: Iterable[TaskInput], directory: Path) -> Iterator[list[RowPage]]:
    """Runs the tasks that get something, one after the other; all that is for a task comes together, in its order."""
    tables: Mapping[str, Any] | None = None
    task: BoundedTask | None = None
    current = -1
    try:
        for given in inputs:
            if task is None or given.task != current:
                if task is not None:
                    yield from task.finish()
                    task.close()
                    task = None
                if tables is None:
                    tables = global_stores(job)
                task, current = BoundedTask(job, given.task, directory, tables), given.task
            yield from task.take(given)
        if task is not None:
            yield from task.finish()
    finally:
        if task is not None:
            task.close()
