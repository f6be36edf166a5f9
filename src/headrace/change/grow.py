"""Growing of an application: its inputs get more partitions, and every row goes where its key goes then.

The procedure can be interrupted anywhere and is gone on with by another call:

1. What was written by the former number of partitions is read under the former layout.
2. Everything is checked, every row included. Until here nothing has changed.
3. Inputs get their partitions. An application with state does not start on them, and names the command.
4. The plan is recorded, with the ends of all changelogs; these and back edges get their partitions.
5. Tasks that are added commit: rows that are theirs now, and what the task that had them remembers.
6. Then tasks that had them commit deletions; before, compaction might remove what is still to be copied.
7. The batch is committed, and the new description lets the application run.

In 2 partitions are independent of each other, and in 5 and in 6 tasks: that is what may be done by other processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

from headrace.app.description import Description
from headrace.app.engine import local_engine
from headrace.app.fingerprint import Fingerprint
from headrace.app.streams import Streams
from headrace.batches.change_plan import ChangePlan
from headrace.batches.layout import Layout, TaskPlace
from headrace.change.changelog_rows import read_pages
from headrace.change.former_partitions import with_former_partitions
from headrace.change.growth_parts import ChangelogPart, GivingAway, MoveFinder, TakingOver
from headrace.change.growth_plan import Growth, find_growth, refused
from headrace.change.parallel_work import ParallelMap, in_this_process
from headrace.change.row_moves import PartitionMoves
from headrace.change.stopped_application import StoppedApplication, TaskChange, stopped_application
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError
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
    parallel: ParallelMap = in_this_process,
) -> None:
    """Gives inputs of a stopped application more partitions, and splits its tasks and stores.

    ``topics`` are inputs with the numbers of partitions that they are to have; others may have been grown already.
    ``command`` is named in errors for as long as this is not finished. ``parallel`` looks at rows and
    commits tasks, several at once if it can. Raises ChangeRefusedError, before anything is changed, if it cannot be
    done.
    """
    started = time.monotonic()
    named = command or f"headrace grow {config.application_id}"
    growing = _Growing(topology, config, log, topics, named, tell, parallel)
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
        parallel: ParallelMap,
    ) -> None:
        self._topology = topology
        self._config = config
        self._log = log
        self._topics = topics
        self._command = command
        self._tell = tell
        self._parallel = parallel
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
            for store in growth.volatile_stores:
                self._tell(f"store '{store}' has no changelog: it starts empty, as after every start")
            self._find_moves(growth, _ends(self._committed_heads(app, growth)))
            self._grow_inputs(growth)
            if self._has_misplaced(growth, app.state.positions):
                return False
            plan = self._plan(app, growth)
        app.begin(plan)
        if not app.is_committed:
            for topic, number in growth.internal.items():
                self._log.grow_topic(topic, number)
            records = {task: head.record for task, head in self._committed_heads(app, growth).items()}
            if not self._moves:
                self._find_moves(growth, _cuts(plan))
            self._commit_new_tasks(app, growth, records)
            self._commit_old_tasks(app, growth, records)
            app.commit(self._new_positions(growth))
        return self._finish(app, growth)

    def _grow_inputs(self, growth: Growth) -> None:
        for topic, number in growth.grown.items():
            self._log.grow_topic(topic, number)
            self._tell(f"topic '{topic}' has {number} partitions")

    def _finish(self, app: StoppedApplication, growth: Growth) -> bool:
        external = {**growth.external, **growth.grown}
        assert app.description is not None, "it was read before"
        former = app.description
        new = Description.of(self._log, self._topology, self._config, external, former.internal_topics)
        app.finish(replace(new, is_handed_back=former.is_handed_back))
        before, after = len(growth.before.tasks), len(growth.after.tasks)
        self._tell(f"application '{app.id}' had {before} tasks and has {after}")
        return True

    def _committed_heads(self, app: StoppedApplication, growth: Growth) -> dict[str, TaskCommitState]:
        """Fences the former tasks, and returns their states."""
        changed = {part.id for part in growth.parts} | {part.id for part, _ in growth.stores}
        return {
            place.name: app.head(place.name, growth.before.own_changelogs(place))
            for place in growth.before.tasks
            if place.id.subtopology in changed
        }

    def _find_moves(self, growth: Growth, ends: Mapping[TopicPartition, int]) -> None:
        """Looks at every row; complains, by store, about those that cannot be moved by their keys."""
        parts = [
            ChangelogPart(each, partition, ends[each.topic, partition])
            for _, each in growth.stores
            for partition in range(each.before)
        ]
        finder = MoveFinder(self._log, self._topology, self._config)
        found = zip(parts, self._parallel(finder, parts), strict=True)
        problems = []
        for store, each in groupby(found, key=lambda pair: pair[0].growth.store):
            moves = [moves for _, moves in each]
            refusals = [why for why in moves if isinstance(why, str)]
            known = [each for each in moves if not isinstance(each, str)]
            problems += refusals[:1]
            self._moves |= {(each.growth.topic, each.partition): each for each in known}
            if not refusals:
                rows, moved = sum(each.rows for each in known), sum(each.moved for each in known)
                self._tell(f"store '{store}': {rows:,} rows, of which {moved:,} move")
        if problems:
            raise refused(self._config.application_id, problems)

    def _moves_of(self, growth: Growth, place: TaskPlace, partition: int) -> list[PartitionMoves]:
        """Returns the moves of all stores of a task, from the partition of one that was there before."""
        return [self._moves[each.topic, partition] for each in growth.stores_of(place)]

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
        self, app: StoppedApplication, growth: Growth, records: Mapping[str, TaskRecord | None]
    ) -> None:
        changes: dict[str, TaskChange] = {}
        for place, origin in growth.new_tasks():
            record = records[origin.name]
            if record is None:
                # It has never done anything, so there is nothing to be taken over.
                continue
            own = place.id.partition
            update = TakingOver(
                own,
                self._log.begin_offsets(list(growth.after.log_inputs(place))),
                record,
                [moves.only_to(own) for moves in self._moves_of(growth, place, origin.id.partition)],
            )
            line = f"task {place.name} has taken over its part of task {origin.name}"
            changes[line] = TaskChange(place.name, growth.after.own_changelogs(place), update)
        self._commit(app, changes)

    def _commit_old_tasks(
        self, app: StoppedApplication, growth: Growth, records: Mapping[str, TaskRecord | None]
    ) -> None:
        changes: dict[str, TaskChange] = {}
        for place in growth.old_tasks():
            record = records[place.name]
            if record is not None:
                update = GivingAway(record, self._moves_of(growth, place, place.id.partition))
                line = f"task {place.name} has given away what is not its own any more"
                changes[line] = TaskChange(place.name, growth.before.own_changelogs(place), update)
        self._commit(app, changes)

    def _commit(self, app: StoppedApplication, changes: Mapping[str, TaskChange]) -> None:
        """Commits tasks, each with the line that tells of it."""
        for line, is_new in zip(changes, app.commit_tasks([*changes.values()], self._parallel), strict=True):
            if is_new:
                self._tell(line)

    def _new_positions(self, growth: Growth) -> Offsets:
        """Returns where partitions begin that inputs and back edges did not have before."""
        before = {target for place in growth.before.tasks for target in growth.before.log_inputs(place)}
        after = [target for place in growth.after.tasks for target in growth.after.log_inputs(place)]
        return self._log.begin_offsets(target for target in after if target not in before)


def _unread(
    layout: Layout, log: DurableLog, positions: Offsets, topics: Collection[str] | None = None
) -> dict[TopicPartition, tuple[int, int]]:
    """Returns what the tasks of a layout have not read of these topics, or of all: from which offset to which."""
    ranges = (target for place in layout.tasks for target in layout.log_inputs(place))
    targets = dict.fromkeys(target for target in ranges if topics is None or target[0] in topics)
    begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
    starts = {target: max(begins[target], positions.get(target, 0)) for target in targets}
    return {target: (starts[target], ends[target]) for target in targets if starts[target] < ends[target]}


def _ends(heads: Mapping[str, TaskCommitState]) -> Offsets:
    return {target: end for head in heads.values() for target, end in head.ends.items()}


def _cuts(plan: ChangePlan) -> dict[TopicPartition, int]:
    return {(topic, partition): end for topic, partition, end in plan.details["cuts"]}
