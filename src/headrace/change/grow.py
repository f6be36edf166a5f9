"""Growing of an application: its inputs get more partitions, and every row goes where its key goes then.

The procedure can be interrupted anywhere and is gone on with by another call:

1. What was written by the former number of partitions is read under the former layout.
2. Everything is checked, every row included. Until here nothing has changed.
3. Inputs get their partitions. An application with state does not start on them, and names the command.
4. The plan is recorded, with the ends of all changelogs; these and back edges get their partitions.
5. Tasks that are added commit: rows that are theirs now, and what the task that had them remembers.
6. Then tasks that had them commit deletions; before, compaction might remove what is still to be copied.
7. The batch is committed, and the new description lets the application run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from headrace.app.description import Description
from headrace.app.engine import local_engine
from headrace.app.fingerprint import Fingerprint
from headrace.app.streams import Streams
from headrace.batches.change_plan import ChangePlan
from headrace.batches.inputs import input_ids
from headrace.batches.layout import Layout, TaskPlace
from headrace.change.changelog_rows import read_pages
from headrace.change.former_partitions import with_former_partitions
from headrace.change.growth_plan import Growth, StoreGrowth, find_growth, refused
from headrace.change.partition_keys import partition_key_of, primary_key_of
from headrace.change.row_moves import MisplacedRowError, PartitionMoves
from headrace.change.stopped_application import StoppedApplication, TaskUpdate, stopped_application
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError
from headrace.runtime.task_memory import pack_memory, unpack_memory
from headrace.topics.journal import DurableLog, TaskCommitState, TaskRecord
from headrace.topics.log import Offsets, TopicPartition
from headrace.topics.partitioner import murmur2
from headrace.topology.topology import Topology

Tell: TypeAlias = Callable[[str], object]
"""Gets a line for every step."""

_CHANGE = "grow"
_ROUNDS = 3
"""How often what producers write by the former number is read, before they are taken for ones that go on with it."""


def grow_application(
    topology: Topology,
    config: StreamsConfig,
    log: DurableLog,
    topics: Mapping[str, int],
    *,
    command: str = "",
    tell: Tell = lambda _line: None,
) -> None:
    """Gives inputs of a stopped application more partitions, and splits its tasks and stores.

    ``topics`` are inputs with the numbers of partitions that they are to have; others may have been grown already.
    ``command`` is named to those who find the application while this is not finished. Raises ChangeRefusedError, before
    anything is changed, if it cannot be done.
    """
    started = time.monotonic()
    growing = _Growing(topology, config, log, topics, command or f"headrace grow {config.application_id}", tell)
    for _ in range(_ROUNDS):
        if growing.run():
            tell(f"done in {time.monotonic() - started:.1f} s")
            return
    message = (
        f"application '{config.application_id}' cannot be grown yet: its inputs have their partitions, but producers "
        "still write by the former number; restart them, and give the command again"
    )
    raise ChangeRefusedError(message)


class _Growing:
    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: DurableLog,
        topics: Mapping[str, int],
        command: str,
        tell: Tell,
    ) -> None:
        self._topology = topology
        self._config = config
        self._log = log
        self._topics = topics
        self._command = command
        self._tell = tell
        self._moves: dict[TopicPartition, PartitionMoves] = {}

    def run(self) -> bool:
        """Makes the change; False if something has to be read before, under the former layout, in another round."""
        application = self._config.application_id
        known = Description.read(self._log, application)
        if known is None:
            problem = "it has never run here: create its topics with as many partitions as it shall have"
            raise refused(application, [problem])
        if known.change is None:
            growth = find_growth(
                self._topology, self._config, self._log, known, self._log.positions(application), self._topics
            )
            if not growth.grown and self._topics:
                self._tell("all inputs have as many partitions as that, and tasks, too")
                return True
            if not growth.grown:
                raise refused(application, ["no input gets more partitions; name some: --topic TOPIC=PARTITIONS"])
            self._check_fingerprint(known, growth)
            self._drain(growth)
        else:
            growth = self._begun_growth(known.change)
        with stopped_application(self._config, self._log, [place.name for place in growth.after.tasks]) as app:
            return self._change(app, growth)

    def _begun_growth(self, plan: ChangePlan) -> Growth:
        if plan.change != _CHANGE:
            plan.refuse_start(self._config.application_id)
        grown: dict[str, int] = plan.details["grown"]
        others = {topic: number for topic, number in self._topics.items() if grown.get(topic) != number}
        if others:
            wanted = ", ".join(f"{topic}={number}" for topic, number in grown.items())
            problem = f"it is being grown to {wanted}, which has to be finished first: `{plan.command}`"
            raise refused(self._config.application_id, [problem])
        self._tell(f"going on with what was begun as batch {plan.batch_id}")
        return Growth(self._topology, self._config, plan.details["external"], grown)

    def _check_fingerprint(self, known: Description, growth: Growth) -> None:
        """Complains about a topology that is not the one whose state there is."""
        if Fingerprint.of(self._topology, growth.external) != known.topology:
            problem = "the topology is another one than it has run with; grow it first, and change the topology then"
            raise refused(self._config.application_id, [problem])

    def _drain(self, growth: Growth) -> None:
        """Lets the application read, under its former layout, the records written to the former partitions."""
        application = self._config.application_id
        unread = _unread(growth.before, self._log, self._log.positions(application))
        if not unread or self._log.last_batch(application) is None:
            return
        records = sum(end - start for start, end in unread.values())
        self._tell(f"reading {records:,} records that were written for the former partitions")
        former = with_former_partitions(self._log, {topic: growth.external[topic] for topic in growth.grown})
        Streams(self._topology, self._config, log=former, engine=local_engine).run(until_end=True)

    def _change(self, app: StoppedApplication, growth: Growth) -> bool:
        plan = app.check_resumes(_CHANGE)
        if plan is None and app.state.batch_id < 0:
            # There is nothing to be moved, and internal topics are made anew by the next start.
            self._grow_inputs(growth)
            return self._finish(app, growth)
        if plan is None:
            self._find_moves(app, growth, self._committed_heads(app, growth))
            self._grow_inputs(growth)
            if self._has_misplaced(growth, app.state.positions):
                return False
            plan = self._plan(app, growth)
        app.begin(plan)
        if not app.is_committed:
            for topic, number in growth.internal.items():
                self._log.grow_topic(topic, number)
            heads = self._committed_heads(app, growth)
            self._commit_new_tasks(app, growth, plan, heads)
            self._commit_old_tasks(app, growth, plan, heads)
            app.commit(self._new_positions(growth))
        return self._finish(app, growth)

    def _grow_inputs(self, growth: Growth) -> None:
        for topic, number in growth.grown.items():
            self._log.grow_topic(topic, number)
            self._tell(f"topic '{topic}' has {number} partitions")

    def _finish(self, app: StoppedApplication, growth: Growth) -> bool:
        external = {**growth.external, **growth.grown}
        assert app.description is not None, "it was read before"
        inputs, former = input_ids(self._topology, app.id, self._log), app.description
        new = Description.of(self._topology, self._config, external, former.internal_topics, inputs)
        app.finish(replace(new, is_handed_back=former.is_handed_back))
        before, after = len(growth.before.tasks), len(growth.after.tasks)
        self._tell(f"application '{app.id}' had {before} tasks and has {after}")
        return True

    def _committed_heads(self, app: StoppedApplication, growth: Growth) -> dict[str, TaskCommitState]:
        """Fences the former tasks, and returns their states."""
        changed = {part.id for part in growth.parts} | {part.id for part, _ in growth.stores}
        return {
            place.name: app.head(place.name, _changelogs(growth.before, place))
            for place in growth.before.tasks
            if place.id.subtopology in changed
        }

    def _find_moves(self, app: StoppedApplication, growth: Growth, heads: Mapping[str, TaskCommitState]) -> None:
        """Looks at every row; complains, by store, about those that cannot be moved by their keys."""
        for store in growth.volatile_stores:
            self._tell(f"store '{store}' has no changelog: it starts empty, as after every start")
        problems = []
        self._moves = {}
        for part, each in growth.stores:
            try:
                found = []
                for partition in range(each.before):
                    end = heads[f"{part.id}_{partition}"].ends[each.topic, partition]
                    found.append(self._moves_of(each, partition, end))
            except MisplacedRowError as error:
                problems.append(str(error))
                continue
            rows, moved = sum(moves.rows for moves in found), sum(moves.moved for moves in found)
            self._tell(f"store '{each.store}': {rows:,} rows, of which {moved:,} move")
        if problems:
            raise refused(app.id, problems)

    def _moves_of(self, growth: StoreGrowth, partition: int, end: int) -> PartitionMoves:
        target = (growth.topic, partition)
        if target not in self._moves:
            keys = partition_key_of(self._topology, growth.store, self._config)
            primary = primary_key_of(self._topology, growth.store, self._config)
            self._moves[target] = PartitionMoves.find(self._log, growth, partition, end, keys, primary)
        return self._moves[target]

    def _moves_to(
        self, growth: Growth, place: TaskPlace, partition: int, cuts: Mapping[TopicPartition, int]
    ) -> list[PartitionMoves]:
        """Returns the moves of all stores of a task; after an interruption they are looked for again."""
        stores = growth.stores_of(place)
        return [self._moves_of(each, partition, cuts[each.topic, partition]) for each in stores]

    def _has_misplaced(self, growth: Growth, positions: Offsets) -> bool:
        """Returns whether inputs have unread records in partitions that are not those of their keys any more."""
        unread = _unread(growth.after, self._log, positions, growth.grown)
        for (topic, partition), (start, end) in unread.items():
            for page in read_pages(self._log, (topic, partition), start, end):
                for _, _, key, _, _ in page:
                    if key is not None and (murmur2(key) & 0x7FFFFFFF) % growth.grown[topic] != partition:
                        if partition >= growth.external[topic]:
                            problem = (
                                f"'{topic}' has records in partition {partition} that were placed by another number of "
                                f"partitions than {growth.grown[topic]}, and no task can read them there"
                            )
                            raise refused(self._config.application_id, [problem])
                        return True
        return False

    def _plan(self, app: StoppedApplication, growth: Growth) -> ChangePlan:
        cuts = [[*target, moves.end] for target, moves in self._moves.items()]
        details = {"external": dict(growth.external), "grown": dict(growth.grown), "cuts": cuts}
        return ChangePlan(_CHANGE, self._command, app.next_batch_id, details)

    def _commit_new_tasks(
        self, app: StoppedApplication, growth: Growth, plan: ChangePlan, heads: Mapping[str, TaskCommitState]
    ) -> None:
        cuts = _cuts(plan)
        for place, origin in growth.new_tasks():
            record = heads[origin.name].record
            if record is None:
                # It has never done anything, so there is nothing to be taken over.
                continue

            def update(
                _head: TaskCommitState,
                place: TaskPlace = place,
                origin: TaskPlace = origin,
                record: TaskRecord = record,
            ) -> TaskUpdate:
                moves = self._moves_to(growth, place, origin.id.partition, cuts)
                written = (each.copied(self._log, place.id.partition) for each in moves)
                return TaskUpdate(
                    positions=self._log.begin_offsets(list(growth.after.ranges(place))),
                    memory=_inherited(record.memory, place.id.partition),
                    next_clock_ms=record.next_clock_ms,
                    written=chain.from_iterable(written),
                )

            if app.commit_task(place.name, _changelogs(growth.after, place), update):
                self._tell(f"task {place.name} has taken over its part of task {origin.name}")

    def _commit_old_tasks(
        self, app: StoppedApplication, growth: Growth, plan: ChangePlan, heads: Mapping[str, TaskCommitState]
    ) -> None:
        cuts = _cuts(plan)
        for place in growth.old_tasks():
            record = heads[place.name].record
            if record is None:
                continue

            def update(_head: TaskCommitState, place: TaskPlace = place, record: TaskRecord = record) -> TaskUpdate:
                moves = self._moves_to(growth, place, place.id.partition, cuts)
                written = (each.given_away(self._log) for each in moves)
                return TaskUpdate(
                    positions={(topic, number): at for topic, number, at in record.positions},
                    memory=record.memory,
                    next_clock_ms=record.next_clock_ms,
                    # Its changelogs go on where they were, so working copies do, too.
                    lineage=record.lineage,
                    written=chain.from_iterable(written),
                )

            if app.commit_task(place.name, _changelogs(growth.before, place), update):
                self._tell(f"task {place.name} has given away what is not its own any more")

    def _new_positions(self, growth: Growth) -> Offsets:
        """Returns where partitions begin that inputs and back edges did not have before."""
        before = {target for place in growth.before.tasks for target in growth.before.ranges(place)}
        after = [target for place in growth.after.tasks for target in growth.after.ranges(place)]
        return self._log.begin_offsets(target for target in after if target not in before)


def _unread(
    layout: Layout, log: DurableLog, positions: Offsets, topics: Collection[str] | None = None
) -> dict[TopicPartition, tuple[int, int]]:
    """Returns what the tasks of a layout have not read of these topics, or of all: from which offset to which."""
    ranges = (target for place in layout.tasks for target in layout.ranges(place))
    targets = dict.fromkeys(target for target in ranges if topics is None or target[0] in topics)
    begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
    starts = {target: max(begins[target], positions.get(target, 0)) for target in targets}
    return {target: (starts[target], ends[target]) for target in targets if starts[target] < ends[target]}


def _changelogs(layout: Layout, place: TaskPlace) -> list[TopicPartition]:
    return [(topic, place.id.partition) for store, topic in place.changelogs.items() if store in layout.changelogs]


def _cuts(plan: ChangePlan) -> dict[TopicPartition, int]:
    return {(topic, partition): end for topic, partition, end in plan.details["cuts"]}


def _inherited(memory: bytes, partition: int) -> bytes:
    """Returns what a task remembers, for one that takes over some of its keys in another partition.

    Offsets of its changelogs mean nothing there.
    """
    # Any: what the parts of a memory are is known to those who use them.
    remembered: dict[str, Any] = unpack_memory(memory)
    clocks = remembered.pop("clocks")
    remembered.pop("samples")
    times = {(topic, partition): time_ms for (topic, _), time_ms in remembered["partition_times"].items()}
    return pack_memory({**remembered, "partition_times": times}, clocks)
