"""Micro-batches without some of what sets them apart from the driver that recorded the cases.

A rule claims that one cause explains a difference. Here the cause is taken away and nothing else: tasks, micro-batches
and operators stay those of the batched driver. If the claim is right, what comes out is what was recorded. With all
causes left in place it must be what the batched driver gives: the order of records in a batch is written down here once
more, in the plainest way, since no recorded case can say what it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain
from typing import Any

from headrace import StreamsConfig, Topology
from headrace.runtime.queues import RecordQueue
from headrace.runtime.task import Task
from headrace.runtime.tie_heap import TieHeap
from headrace.testing import TopologyTestDriver
from headrace.testing.hosting import LocalHost, Written
from headrace.topics.log import Raw
from headrace.topology.levels import Level


class Cause(Enum):
    """What sets micro-batches apart; the value says how it is without."""

    OWN_TIME = "all tasks have one stream time"
    ONE_COMMIT = "a task commits after every record"
    FRESH_CACHE = "caches of windows live on from batch to batch"
    LEVELS = "the records of all tasks wait in the queues of one"


Causes = frozenset[Cause]
Edge = Callable[..., None]


class UndoneDriver(TopologyTestDriver):
    """The batched driver without some causes."""

    def __init__(self, topology: Topology, config: StreamsConfig, without: Causes) -> None:
        super().__init__(topology, config, initial_wall_clock_ms=0, batched=True)
        self._host.close()
        self._host = _UndoneHost(topology, self.config, self._written, without)


class _UndoneHost(LocalHost):
    def __init__(self, topology: Topology, config: StreamsConfig, written: Written, without: Causes) -> None:
        self._without = without
        self._time_ms = -1
        self._heads = TieHeap[RecordQueue]()
        super().__init__(topology, config, 0, partitions=None, by_subtopology=True, state_dir=None, written=written)

    def _make_task(self, subtopology: int, partition: int, names: Iterable[str], stores: Iterable[str]) -> Task:
        task = super()._make_task(subtopology, partition, names, stores)
        for queue in task._queues.values():
            queue.edge = self._watched(task, queue.edge)
        if Cause.LEVELS in self._without:
            task._ready = self._heads
            task.state.pipelined = False
        return task

    def _watched(self, task: Task, edge: Edge) -> Edge:
        """Returns an edge that does for each record what is otherwise done per task or once per batch."""

        def process(key: Any, value: Any, timestamp_ms: int, headers: Any) -> None:
            clocked = [task]
            if Cause.OWN_TIME in self._without:
                clocked = self._tasks
                self._time_ms = max(self._time_ms, timestamp_ms)
                for each in clocked:
                    each.state.stream_time_ms = self._time_ms
            edge(key, value, timestamp_ms, headers)
            for each in clocked:
                each.punctuate_stream_time()
            if Cause.ONE_COMMIT in self._without:
                # The task itself notes only once per batch that there is something to commit.
                task._commit_needed = True
                for each in clocked:
                    each.commit()
                    self._commit_engines(each)

        return process

    def run_batch(self) -> None:
        """Processes everything that waits, level after level or in the order of one task's queues."""
        if Cause.LEVELS in self._without:
            self._run_by_heads()
            return
        first = True
        while first or self._pending or any(task._upstreams for task in self._tasks):
            ranges, self._pending = self._pending, {}
            for origin, records in ranges.items():
                self._routes[origin].add_records(*origin, records)
            for level in self._levels:
                self._run_level(level, tick=first)
            # One stream time for all also calls punctuations of tasks that have had their turn.
            for task in self._tasks:
                self._end(task)
                self._write_outputs(task, edges=self._edges)
            first = False

    def _run_level(self, level: Level, *, tick: bool) -> None:
        for task in self._tasks:
            if task.id.subtopology in level.subtopologies:
                if tick:
                    task.punctuate_wall_clock()
                _process_in_order(task)
                self._end(task)
                self._write_outputs(task, edges=self._edges)

    def _run_by_heads(self) -> None:
        for task in self._tasks:
            task.punctuate_wall_clock()
        progress = True
        while progress:
            self._hand_over()
            while self._heads:
                queue = self._heads._entries[0][1]
                self._routes[queue.origin].process_one()
                for task in self._tasks:
                    self._write_outputs(task)
                self._hand_over()
            progress = False
            for task in self._tasks:
                self._end(task)
                progress |= self._write_outputs(task)

    def _end(self, task: Task) -> None:
        task.commit()
        self._commit_engines(task)
        if Cause.FRESH_CACHE not in self._without:
            task.forget_volatile()


def _process_in_order(task: Task) -> None:
    """Takes the oldest of all heads again and again, at equal times by topic and partition."""
    for origin, parts in task._upstreams.items():
        sent = [list(chain.from_iterable(chain.from_iterable(parts[upstream]))) for upstream in sorted(parts)]
        task.add_records(*origin, _in_order(sent))
    task._upstreams.clear()
    while heads := [(queue.head.timestamp_ms, queue.origin) for queue in task._queues.values() if queue.head]:
        _, origin = min(heads)
        # The task takes what is ready, so the chosen queue must be all that is.
        task._ready = TieHeap()
        task._ready.offer(0, task._queues[origin])
        task.process_one()


def _in_order(parts: list[list[Raw]]) -> list[Raw]:
    """The same between the tasks that sent records: the oldest of all heads, at equal times by the sender."""
    merged = []
    while waiting := [part for part in parts if part]:
        merged.append(min(waiting, key=lambda part: part[0][1]).pop(0))
    return merged
