"""Evolution of a stopped application: another topology takes over what the former one has left in the log.

Renamed stores get copies of their rows in new changelogs, converted ones get their rows again in another serde, and
every task gets a record that is made of those of the former tasks; all of that is one micro-batch. What nobody needs
any more is deleted after it.
"""

from __future__ import annotations

import json
import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Any

from headrace.app.description import Description
from headrace.app.directories import application_directory
from headrace.app.fingerprint import check_compatible, check_formats, check_generated_names
from headrace.app.topics import (
    WantedTopic,
    check_sources,
    external_partitions,
    internal_topics,
    is_empty,
    make_internal,
)
from headrace.batches.change_plan import ChangePlan
from headrace.batches.inputs import check_inputs, input_ids
from headrace.batches.layout import Layout
from headrace.batches.positions import start_positions
from headrace.batches.working_copy import discard
from headrace.change.comparison import compare
from headrace.change.copying import Convert, Copy, converter, copied_pages, copy_of
from headrace.change.stopped_application import StoppedApplication, TaskUpdate, stopped_application
from headrace.change.task_records import CarriedTask, TaskRecordMigration
from headrace.change.verdicts import Comparison, Options
from headrace.config import StreamsConfig
from headrace.errors import BatchError, IncompatibleTopologyError, UnknownTopicError
from headrace.runtime.task import TaskId
from headrace.topics.journal import DurableLog, TaskCommitState
from headrace.topics.log import Offsets, TopicPartition
from headrace.topology.outline import Outline
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)

CHANGE = "plan-change"


@dataclass(frozen=True)
class Evolution:
    """A change from the topology that the log knows to another one: what it means, and all that it takes to make it."""

    topology: Topology
    config: StreamsConfig
    options: Options
    known: Description
    """As the log has it."""
    new: Description
    """As it is after the change."""
    comparison: Comparison
    wanted: tuple[WantedTopic, ...]
    can_start: bool
    """Whether the new topology fits the state, so that no change is needed."""
    unfinished: ChangePlan | None = None
    """A change that was begun."""

    @property
    def application(self) -> str:
        return self.config.application_id

    @property
    def is_needed(self) -> bool:
        """Whether there is something to be done before a start, or was begun."""
        return self.unfinished is not None or not self.can_start or bool(self.comparison.rebuilt_parts)

    @cached_property
    def converters(self) -> Mapping[str, Convert]:
        """What rewrites values, by store."""
        builders, outline = self.topology.store_builders, self.new.outline
        return {
            store: converter(builders[store], self.config, outline.changelog_of(store, self.application) or "")
            for store in self.comparison.converted
        }

    @property
    def digest(self) -> str:
        """Identifies this change, for a command that continues it."""
        options = [dict(self.options.renames), sorted(self.options.keep_bytes), sorted(self.options.rebuild)]
        text = json.dumps([self.new.outline.to_json(), options], sort_keys=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()


def plan_evolution(topology: Topology, config: StreamsConfig, log: DurableLog, options: Options) -> Evolution:
    """Compares the topology that the log knows of an application with another one; nothing is touched."""
    application = config.application_id
    known = Description.read(log, application)
    if known is None or known.is_resetting:
        message = (
            f"application '{application}': the log knows of no topology to compare with, because it has never run "
            "there, or was reset; start it"
        )
        raise BatchError(message)
    if known.change is not None and known.change.change != CHANGE:
        known.change.refuse_start(application)
    external = external_partitions(topology, application, log)
    check_sources(topology, external)
    check_inputs(application, known.input_ids, input_ids(topology, application, log))
    wanted = tuple(internal_topics(topology, config, external))
    new = Description.of(log, topology, config, external, (topic.name for topic in wanted))
    comparison = compare(topology, config, known.outline, new.outline, options)
    if known.change is None:
        comparison = replace(comparison, problems=(*comparison.problems, *_unread(known, comparison, log)))
    return Evolution(topology, config, options, known, new, comparison, wanted, _can_start(known, new), known.change)


def apply_evolution(evolution: Evolution, log: DurableLog, command: str = f"headrace {CHANGE}") -> None:
    """Makes a change, or finishes one that was begun; errors about an unfinished one name ``command``."""
    tasks = sorted({*_tasks(evolution.known.outline), *_tasks(evolution.new.outline)})
    with stopped_application(evolution.config, log, tasks) as stopped:
        plan = stopped.check_resumes(CHANGE)
        if plan is None:
            plan = _begin(evolution, stopped, command)
        elif plan.details["digest"] != evolution.digest:
            plan.refuse_start(evolution.application)
        details = _Details.from_json(plan.details)
        if not stopped.is_committed:
            make_internal(evolution.wanted, evolution.config, log)
            stopped.begin(plan)
            _commit(evolution, stopped, details)
        for topic in details.deleted:
            with suppress(UnknownTopicError):
                log.delete_topic(topic)
        for task in details.retired:
            discard(application_directory(evolution.config) / task)
        stopped.finish(evolution.new)


@dataclass(frozen=True)
class _Details:
    """The plan of the change: it decides everything, so that a continuation does the same."""

    digest: str
    tasks: Mapping[str, CarriedTask]
    copies: Mapping[str, Sequence[Copy]]
    """By the task that makes them, which may be of another sub-topology than the store."""
    positions: Offsets
    """Of inputs that begin anew."""
    deleted: Sequence[str]
    """Topics."""
    retired: Sequence[str]
    """Tasks that there are no more."""
    changelogs: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)
    """What each task writes."""

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "tasks": [
                [task, _listed(each.positions), b64encode(each.memory).decode(), each.lineage]
                for task, each in self.tasks.items()
            ],
            "copies": {task: [astuple(copy) for copy in copies] for task, copies in self.copies.items()},
            "positions": _listed(self.positions),
            "deleted": list(self.deleted),
            "retired": list(self.retired),
            "changelogs": {task: [list(target) for target in targets] for task, targets in self.changelogs.items()},
        }

    # Any: JSON.
    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> _Details:
        return cls(
            found["digest"],
            {
                task: CarriedTask(_offsets(positions), b64decode(memory), lineage)
                for task, positions, memory, lineage in found["tasks"]
            },
            {task: [_copy(*copy) for copy in copies] for task, copies in found["copies"].items()},
            _offsets(found["positions"]),
            found["deleted"],
            found["retired"],
            {task: [(topic, n) for topic, n in targets] for task, targets in found["changelogs"].items()},
        )


def _begin(evolution: Evolution, stopped: StoppedApplication, command: str) -> ChangePlan:
    """Plans the change; other writers are fenced."""
    if stopped.description != evolution.known:
        message = (
            f"application '{evolution.application}' was run or changed while its change was planned; look at what it "
            "means now, and try again"
        )
        raise BatchError(message)
    if evolution.comparison.is_refused:
        message = f"application '{evolution.application}': the change is refused; see `headrace plan-change`"
        raise IncompatibleTopologyError(message)
    log, old, new = stopped.log, evolution.known.outline, evolution.new.outline
    _check_unused(evolution, log)
    make_internal(evolution.wanted, evolution.config, log)
    heads = {task: stopped.head(task, _changelogs(evolution.application, old, task)) for task in _tasks(old)}
    details = _details(evolution, stopped, heads, new)
    _check_conversions(evolution, details, log)
    return ChangePlan(CHANGE, command, stopped.next_batch_id, details.to_json())


def _check_unused(evolution: Evolution, log: DurableLog) -> None:
    """Raises if the topic for a store exists and has records of another application."""
    there, known = set(log.topics()), {*evolution.known.internal_topics}
    for topic in evolution.wanted:
        if topic.name in there and topic.name not in known and not is_empty(topic.name, log):
            message = (
                f"application '{evolution.application}': the new topology needs a topic '{topic.name}', which is there "
                "and has records that are not the application's; delete it if nobody needs it: `headrace topics delete "
                f"{topic.name}`"
            )
            raise IncompatibleTopologyError(message)


def _details(
    evolution: Evolution, stopped: StoppedApplication, heads: Mapping[str, TaskCommitState], new: Outline
) -> _Details:
    log, old, comparison = stopped.log, evolution.known.outline, evolution.comparison
    records = {task: head.record for task, head in heads.items()}
    carrier = TaskRecordMigration(evolution.application, old, new, comparison, records)
    tasks: dict[str, CarriedTask] = {}
    copies: dict[str, list[Copy]] = {}
    copiers: dict[int, str] = {}
    for part in new.parts:
        for partition in range(part.tasks):
            task = str(TaskId(part.number, partition))
            tasks[task] = carrier.task(part, partition)
            for store in part.stores:
                copy = copy_of(evolution.application, store, partition, old, new, comparison, log)
                if copy is not None:
                    # One task copies all that is in a partition. Stores may take each other's names, and a broker may
                    # compact rows as soon as others lie behind them; within a transaction it does not.
                    copies.setdefault(copiers.setdefault(partition, task), []).append(copy)
    retired = [task for task in _tasks(old) if task not in tasks]
    tasks |= {task: carrier.retired() for task in retired}
    wanted = {topic.name for topic in evolution.wanted}
    return _Details(
        evolution.digest,
        tasks,
        copies,
        _new_positions(evolution, carrier, stopped),
        [topic for topic in evolution.known.internal_topics if topic not in wanted],
        retired,
        {task: _changelogs(evolution.application, new, task) for task in tasks},
    )


def _commit(evolution: Evolution, stopped: StoppedApplication, details: _Details) -> None:
    for task, carried in details.tasks.items():
        pages = [
            copied_pages(copy, stopped.log, evolution.converters.get(copy.store))
            for copy in details.copies.get(task, ())
        ]
        update = TaskUpdate(
            positions=carried.positions,
            memory=carried.memory,
            lineage=carried.lineage,
            written=chain.from_iterable(pages),
        )
        if stopped.commit_task(task, details.changelogs.get(task, ()), update):
            logger.info("application '%s': task %s was changed", evolution.application, task)
    stopped.commit(details.positions)


def _check_conversions(evolution: Evolution, details: _Details, log: DurableLog) -> None:
    """Rewrites all values once, without keeping them: what fails must fail before the change has begun."""
    for copies in details.copies.values():
        for copy in copies:
            if copy.store in evolution.converters:
                for _ in copied_pages(copy, log, evolution.converters[copy.store]):
                    pass


def _new_positions(evolution: Evolution, carrier: TaskRecordMigration, stopped: StoppedApplication) -> Offsets:
    """Returns where inputs begin that the former topology has not read, or that are read again."""
    log, new, rebuilt = stopped.log, evolution.new.outline, evolution.comparison.rebuilt_parts
    layout = Layout.on(log, evolution.topology, evolution.config)
    continued = {
        now
        for part in new.parts
        if part.number not in rebuilt
        for before, now in carrier.topics(part).items()
        if before == now
    }
    committed = {target: offset for target, offset in stopped.state.positions.items() if target[0] in continued}
    found = start_positions(layout, log, committed, time.time_ns() // 1_000_000)
    again = [target for place in layout.tasks if place.id.subtopology in rebuilt for target in layout.log_inputs(place)]
    begins, ends = log.begin_offsets(again), log.end_offsets(again)
    internal = {new.full_topic_name(topic, evolution.application) for topic in new.internal_topics}
    found |= {target: (ends if target[0] in internal else begins)[target] for target in again}
    return {target: offset for target, offset in found.items() if target not in committed}


def _unread(known: Description, comparison: Comparison, log: DurableLog) -> Iterator[str]:
    """Complains about records in internal topics that the new topology does not read under the same name."""
    old, positions = known.outline, log.positions(known.application)
    for topic in old.back_edges:
        if comparison.topic_names.get(topic) == topic:
            continue
        name = old.full_topic_name(topic, known.application)
        targets = [(name, partition) for partition in range(log.partitions_of(name))]
        begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
        unread = sum(ends[target] - positions.get(target, begins[target]) for target in targets)
        if unread > 0:
            yield (
                f"'{name}' has {unread} records that the former topology has not read, and the new one has no such "
                "topic; run the former one until it has caught up (headrace run --until-end)"
            )


def _can_start(known: Description, new: Description) -> bool:
    try:
        check_compatible(known.application, known.topology, new.topology)
        check_formats(known.application, known.outline, new.outline)
        check_generated_names(known.application, known.outline, new.outline)
    except IncompatibleTopologyError:
        return False
    return True


def _tasks(outline: Outline) -> list[str]:
    return [str(TaskId(part.number, partition)) for part in outline.parts for partition in range(part.tasks)]


def _changelogs(application: str, outline: Outline, task: str) -> list[TopicPartition]:
    number, partition = TaskId.parse(task)
    stores = [store for part in outline.parts if part.number == number for store in part.stores]
    topics = [outline.changelog_of(store, application) for store in stores]
    return [(topic, partition) for topic in topics if topic is not None]


def _copy(
    store: str, topic: str, partition: int, source: str | None, copied: list[int], cleared: list[int], history: Any
) -> Copy:
    return Copy(store, topic, partition, source, (copied[0], copied[1]), (cleared[0], cleared[1]), bool(history))


def _listed(offsets: Offsets) -> list[list[Any]]:
    return [[*target, offset] for target, offset in offsets.items()]


def _offsets(listed: Sequence[Sequence[Any]]) -> Offsets:
    return {(topic, partition): offset for topic, partition, offset in listed}
