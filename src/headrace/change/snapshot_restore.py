"""Restore of a snapshot as another application, which goes on where the first one was."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from headrace.app.description import Description
from headrace.app.topics import is_empty
from headrace.batches.change_plan import ChangePlan
from headrace.batches.inputs import check_inputs
from headrace.change.changelog_rows import latest_rows, read_pages
from headrace.change.snapshot import Snapshot, Tell, existing_snapshot, task_records
from headrace.change.stopped_application import StoppedApplication, TaskUpdate, stopped_application
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError
from headrace.runtime.task import TaskId
from headrace.runtime.task_memory import pack_memory, unpack_memory
from headrace.topics.journal import DurableLog, TaskRecord
from headrace.topics.log import Output, TopicPartition

_CHANGE = "restore"


def restore_snapshot(
    name: str, config: StreamsConfig, log: DurableLog, *, command: str = "", tell: Tell = lambda _line: None
) -> None:
    """Makes an application of a snapshot, under the ``application_id`` of a configuration, of which nothing is known.

    It reads the same inputs, from where the first one had read to, and writes wherever its topology says. If this is
    interrupted, another call goes on. Raises ChangeRefusedError if it cannot be done.
    """
    started = time.monotonic()
    snapshot = existing_snapshot(log, name)
    restoring = _Restoring(snapshot, config.application_id, log, tell)
    command = command or f"headrace restore {name} --as {config.application_id}"
    with stopped_application(config, log, sorted(restoring.records)) as app:
        restoring.run(app, command)
    tell(f"application '{config.application_id}' goes on from batch {snapshot.batch_id} of '{snapshot.application}'")
    tell(f"done in {time.monotonic() - started:.1f} s")


@dataclass(frozen=True)
class _Source:
    """A partition of an internal topic, and where its records are in the snapshot."""

    target: TopicPartition
    copy: TopicPartition
    is_versioned: bool = False

    def pages(self, log: DurableLog) -> Iterator[tuple[str, list[Output]]]:
        begin, end = log.begin_offsets([self.copy])[self.copy], log.end_offsets([self.copy])[self.copy]
        # Of a back edge, too, every record counts.
        is_table = self.target[0].endswith("-changelog") and not self.is_versioned
        topic, partition = self.target
        for page in (latest_rows if is_table else read_pages)(log, self.copy, begin, end):
            yield topic, [(partition, time_ms, key, value, headers) for _, time_ms, key, value, headers in page]


class _Restoring:
    def __init__(self, snapshot: Snapshot, application: str, log: DurableLog, tell: Tell) -> None:
        self._snapshot = snapshot
        self._log = log
        self._tell = tell
        self._names = {
            topic: f"{application}-{topic.removeprefix(f'{snapshot.application}-')}" for topic in snapshot.topics
        }
        found = Description.parse(application, snapshot.description)
        self._description = replace(found, internal_topics=tuple(self._names.values()))
        self.records = task_records(log, snapshot)

    def run(self, app: StoppedApplication, command: str) -> None:
        plan = app.check_resumes(_CHANGE)
        if plan is None:
            self._check(app)
            plan = ChangePlan(_CHANGE, command, app.next_batch_id, {"snapshot": self._snapshot.name})
        elif plan.details["snapshot"] != self._snapshot.name:
            plan.refuse_start(app.id)
        app.begin(plan, self._description)
        if not app.is_committed:
            self._make_topics()
            for task, record in self.records.items():
                self._commit_task(app, task, record)
            app.commit(self._positions(self._snapshot.positions))
        app.finish(self._description)

    def _check(self, app: StoppedApplication) -> None:
        there = set(self._log.topics())
        filled = [topic for topic in self._names.values() if topic in there and not is_empty(topic, self._log)]
        if app.description is not None or app.state.batch_id >= 0 or filled:
            message = (
                f"snapshot '{self._snapshot.name}' cannot be restored as '{app.id}': there is an application of that "
                f"name, or what it has left; choose another name, or delete it with `headrace reset {app.id}`"
            )
            raise ChangeRefusedError(message)
        inputs = self._description.input_ids
        missing = [topic for topic in inputs if topic not in there]
        if missing:
            message = f"snapshot '{self._snapshot.name}' cannot be restored: its inputs {missing} are not in this log"
            raise ChangeRefusedError(message)
        check_inputs(app.id, inputs, {topic: self._log.topic_id(topic) for topic in inputs})

    def _make_topics(self) -> None:
        there = set(self._log.topics())
        for topic, copy in self._snapshot.topics.items():
            name, partitions = self._names[topic], self._log.partitions_of(copy)
            if name in there and self._log.partitions_of(name) != partitions:
                # Emptied by a reset, and of another size: nothing was written to it before it fits.
                self._log.delete_topic(name)
                there.remove(name)
            if name not in there:
                self._log.create_topic(name, partitions=partitions, configs=self._snapshot.configs[topic])

    def _commit_task(self, app: StoppedApplication, task: str, record: TaskRecord) -> None:
        changelogs, edges = self._changelogs(task), self._edges(task, record)
        update = TaskUpdate(
            positions=self._positions({(topic, partition): at for topic, partition, at in record.positions}),
            memory=self._rename_memory(record.memory),
            next_clock_ms=record.next_clock_ms,
            written=chain.from_iterable(source.pages(self._log) for source in [*changelogs, *edges]),
        )
        if app.commit_task(task, [source.target for source in changelogs], update):
            self._tell(f"task {task} is restored")

    def _changelogs(self, task: str) -> list[_Source]:
        part, partition = TaskId.parse(task)
        found = []
        for store, kind in self._description.topology.parts[part].stores.items():
            topic = f"{self._snapshot.application}-{store}-changelog"
            if topic in self._snapshot.topics:
                found.append(self._source(topic, partition, is_versioned=kind.startswith("versioned")))
        return found

    def _edges(self, task: str, record: TaskRecord) -> list[_Source]:
        """Returns back edges that a task reads, or, if they are read by a task that has never run, by the first one."""
        edges = [topic for topic in self._snapshot.topics if not topic.endswith("-changelog")]
        own = {(topic, partition) for topic, partition, _ in record.positions}
        read = {(topic, n) for each in self.records.values() for topic, n, _ in each.positions}
        if task == min(self.records):
            counts = {topic: self._log.partitions_of(self._snapshot.topics[topic]) for topic in edges}
            own |= {(topic, n) for topic, count in counts.items() for n in range(count)} - read
        return [self._source(*target) for target in sorted(own) if target[0] in edges]

    def _source(self, topic: str, partition: int, *, is_versioned: bool = False) -> _Source:
        copy = self._snapshot.topics[topic]
        return _Source((self._names[topic], partition), (copy, partition), is_versioned)

    def _positions(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Returns positions in the topics of the new application, whose back edges have only the unread records."""
        edges = {(self._names[topic], n) for topic, n in positions if topic in self._names}
        others = {target: at for target, at in positions.items() if target[0] not in self._names}
        return {**others, **self._log.begin_offsets(edges)}

    def _rename_memory(self, memory: bytes) -> bytes:
        """Returns what a task remembers; offsets of its changelogs mean nothing in those of the new application."""
        # Any: the parts of a memory are of several types.
        remembered: dict[str, Any] = unpack_memory(memory)
        clocks = remembered.pop("clocks")
        remembered.pop("samples")
        times = {
            (self._names.get(topic, topic), partition): time_ms
            for (topic, partition), time_ms in remembered["partition_times"].items()
        }
        return pack_memory({**remembered, "partition_times": times}, clocks)
