"""Switches for the rules of the commit protocol: each patches the engine's own code so that a rule is not kept.

With any of them the simulation has to find a violation; otherwise it would not find one in the engine, either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from headrace.batches import restore, working_copy
from headrace.batches.layout import Layout, TaskPlace
from headrace.batches.live_task import LiveTask
from headrace.batches.plan import Plan
from headrace.batches.reports import TaskResult
from headrace.batches.task_runner import TaskRunner
from headrace.batches.working_copy import Applied, WorkingCopy
from headrace.topics.embedded import committing
from headrace.topics.embedded import journal as embedded_journal
from headrace.topics.embedded.staging import StagingArea
from headrace.topics.journal import EdgeBlob, Receipt, TaskCommitState, TaskJournal, TaskRecord, Written
from headrace.topics.kafka import journal, journal_maintenance, resetting, task_transaction, transactional_producers
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.history import BATCH, PLAN, RESET, History
from headrace.topics.kafka.history_reader import read_history
from headrace.topics.kafka.journal import KafkaJournal
from headrace.topics.kafka.kafka_log import KafkaLog
from headrace.topics.kafka.producing import Delivery, flush
from headrace.topics.kafka.progress_topics import ensure_place
from headrace.topics.kafka.task_transaction import KafkaTaskJournal
from headrace.topics.kafka.transactional_producers import init_producer
from headrace.topics.log import Offsets, TopicLog, TopicPartition
from tests.simulation.disk import DiskEnvironment
from tests.simulation.threads import World

Patches = Sequence[tuple[Any, Mapping[str, Any]]]


@dataclass(frozen=True)
class Switch:
    """A rule that is not kept, and what makes that show sooner."""

    name: str
    rule: str
    patches: Patches = ()
    setup: Mapping[str, Any] = field(default_factory=dict)
    """Of the histories that are run with it."""
    rates: Mapping[str, float] = field(default_factory=dict)
    first: int = 0
    """A seed before which it did not show when this was written."""

    @contextmanager
    def on(self) -> Iterator[None]:
        """Patches the engine for so long."""
        with ExitStack() as stack:
            for target, names in self.patches:
                for name, value in names.items():
                    before = target.__dict__[name]
                    setattr(target, name, value)
                    stack.callback(setattr, target, name, before)
            yield


# 1: single writer.

_own_final_ends = KafkaTaskJournal._final_ends


def _shared_place(application: str, task: str) -> TopicPartition:
    return f"{application}-headrace-0-tasks", 0


def _named_record(self: KafkaTaskJournal, producer: Any, record: TaskRecord, delivery: Delivery) -> int:
    self._produce(producer, b"record " + self._task.encode(), record.pack(), delivery)
    return 1


def _named_last_record(self: KafkaTaskJournal, end: int, stamp: str | None = None) -> TaskRecord | None:
    begin = self._administration.begin_offsets([self._place])[self._place]
    for raw in reversed(self._read(begin, end)):
        if raw[2] == b"record " + self._task.encode():
            record = self._unpack(raw)
            if stamp is None or record.stamp == stamp:
                return record
    return None


def _visible_ends(self: KafkaTaskJournal, targets: Sequence[TopicPartition]) -> Offsets:
    return self._administration.end_offsets(targets, stable=True)


def _shared_ends(self: KafkaTaskJournal, targets: Sequence[TopicPartition]) -> Offsets:
    """Waits for changelogs only: who shares a partition cannot wait until nobody writes there."""
    own = _own_final_ends(self, [target for target in targets if target != self._place])
    return {**_visible_ends(self, [self._place]), **own}


_SHARED = (
    (journal, {"task_place": _shared_place}),
    (task_transaction, {"task_place": _shared_place}),
    (transactional_producers, {"task_place": _shared_place}),
    (journal_maintenance, {"task_place": _shared_place, "CUT_EVERY_S": 1e9}),
    (
        KafkaTaskJournal,
        {"_write_record": _named_record, "_last_record": _named_last_record, "_final_ends": _shared_ends},
    ),
)


# 2: order on opening.


def _open_record_first(self: KafkaTaskJournal) -> TaskCommitState:
    self.close()
    ensure_place(self._administration, self._place)
    ends = self._final_ends([self._place, *self._changelogs])
    record = self._last_record(ends.pop(self._place))
    with self._translated("opening"):
        self._producer = init_producer(self._clients, self._application, self._task)
    self._check_newest()
    return TaskCommitState(record, ends)


# 3: commit, then emit.


def _end_in_background(self: KafkaTaskJournal, producer: Any, delivery: Delivery) -> None:
    flush(producer, delivery, self._clients.patience_s)
    current = World.scheduler.current
    assert current is not None, "an actor commits"

    def commit() -> None:
        with suppress(KafkaException):
            producer.commit_transaction(self._clients.patience_s)

    current.process.spawn(commit, "commit")


def _begin_after_background(self: KafkaTaskJournal, producer: Any) -> None:
    for _ in range(1000):
        if producer._state in ("ready", "fatal"):
            break
        World.scheduler.sleep(0.01)
    producer.begin_transaction()


_own_end = KafkaTaskJournal._end


def _end_without_answer(self: KafkaTaskJournal, producer: Any, delivery: Delivery) -> None:
    try:
        _own_end(self, producer, delivery)
    except KafkaException as exception:
        if exception.args[0].code() != KafkaError._TIMED_OUT:
            raise


# 4: hand on, never run again; the attempt decides.

_own_handed_on = TaskRunner._committed_result


def _run_again(
    self: TaskRunner, place: TaskPlace, plan: Plan, head: TaskCommitState, journal: TaskJournal
) -> TaskResult | None:
    if head.record is not None and head.record.batch_id == plan.batch_id:
        return None
    return _own_handed_on(self, place, plan, head, journal)


def _handed_on_if_the_driver_said_so(
    self: TaskRunner, place: TaskPlace, plan: Plan, head: TaskCommitState, journal: TaskJournal
) -> TaskResult | None:
    if place.name not in World.decided:
        return None
    return _own_handed_on(self, place, plan, head, journal)


# 5: edges that are visible.


def _read_visible_edges(self: KafkaTaskJournal, record: TaskRecord) -> list[EdgeBlob]:
    offsets = {offset for *_, offset in record.edges}
    found = {raw[0]: raw[3] or b"" for raw in (self._read(min(offsets), max(offsets) + 1) if offsets else [])}
    return [
        EdgeBlob(receiver, topic, self._task, sequence, found[offset])
        for receiver, topic, sequence, offset in record.edges
        if offset in found
    ]


# 6: work means a record.

_own_commit = KafkaTaskJournal.commit


def _commit_if_written(
    self: KafkaTaskJournal, record: TaskRecord, written: Written, edges: Sequence[EdgeBlob]
) -> Receipt:
    if edges or any(outputs for _, outputs in written):
        return _own_commit(self, record, written, edges)
    return Receipt.of(self._task, self._incarnation, record)


# 7: records of drivers are fenced.

_own_with_record = History.with_record


def _with_record_unfenced(self: History, offset: int, key: bytes, value: bytes) -> History:
    kind, _, number = key.partition(b" ")
    if kind in (BATCH, PLAN) and int(number) < self.newest and not self.is_reset:
        if kind == PLAN:
            return replace(self, plan_data=value)
        return replace(self, batch_data=value, batch_offset=offset, plan_data=b"")
    return _own_with_record(self, offset, key, value)


# 9: working copies.

_own_live_commit = LiveTask.commit


def _commit_after_the_copy(self: LiveTask, *arguments: Any) -> Receipt:
    copy = self._copy
    if copy is not None:
        changes = {store: each for store, engine in self.task.engines().items() if (each := engine.changes())}
        applied = {}
        for store in self._place.changelogs:
            known = copy.applied(store)
            if known is not None:
                target = (self._place.changelogs[store], self._place.id.partition)
                rows = len(changes[store].rows) if store in changes else 0
                applied[store] = Applied(known.topic_id, self._ends.get(target, known.offset) + rows)
        copy.settle({store: each for store, each in changes.items() if store in applied}, applied)
        copy.write()
    return _own_live_commit(self, *arguments)


def _apply_by_anybody(self: DiskEnvironment, key: bytes, value: bytes, *steps: Any) -> bool:
    self.apply(*steps)
    return True


def _is_usable_with_any_offset(copy: WorkingCopy, part: Any, log: Any) -> bool:
    applied = copy.applied(part.store)
    return applied is None or applied.topic_id == part.topic_id


_own_is_usable = restore._is_usable


def _is_usable_at_the_beginning(copy: WorkingCopy, part: Any, log: Any) -> bool:
    applied = copy.applied(part.store)
    if applied is not None and applied.offset == part.begin:
        return True
    return _own_is_usable(copy, part, log)


# 10: resets announce themselves.

_own_append = resetting._append


def _append_unannounced(appender: Any, topic: str, key: bytes, tasks: Sequence[str] = ()) -> int:
    if key != RESET:
        return _own_append(appender, topic, key, tasks)
    application = topic.removesuffix("-headrace-batches")
    return read_history(appender._clients, Administration(appender._clients), application).newest


def _nothing(*_arguments: Any, **_names: Any) -> None:
    pass


# 12: restore to the recorded position.

_own_parts = restore._parts


def _parts_to_the_end(layout: Layout, place: TaskPlace, head: TaskCommitState | None, log: TopicLog) -> list[Any]:
    parts = _own_parts(layout, place, head, log)
    read = [part.target for part in parts if part.store not in layout.changelogs]
    if head is None or head.record is None or not read:
        return parts
    ends = log.end_offsets(read)
    return [replace(part, end=ends.get(part.target, part.end)) for part in parts]


_COPIES: Mapping[str, Any] = {"in_memory": False, "restore_lag": 10_000}
_RESETS: Mapping[str, Any] = {"reset": 0.5, "second_driver": 0.3}

SWITCHES: Sequence[Switch] = (
    Switch("shared-partition", "1", _SHARED, {"show_delay_s": 1.0, "marker_delay_s": 2.0, "speculation": 0.2}),
    Switch("record-before-init", "2", ((KafkaTaskJournal, {"open": _open_record_first}),), {"unheard_s": 0.5}),
    Switch("newest-not-checked", "2", ((KafkaTaskJournal, {"_check_newest": _nothing}),), _RESETS),
    Switch(
        "emit-before-commit",
        "3",
        ((KafkaTaskJournal, {"_end": _end_in_background, "_begin": _begin_after_background}),),
        {"unheard_s": 3.0},
        {"crash": 0.005},
    ),
    Switch("lost-answer-is-success", "3", ((KafkaTaskJournal, {"_end": _end_without_answer}),), {}, {"lost": 0.02}),
    Switch("run-again", "4", ((TaskRunner, {"_committed_result": _run_again}),), {"lost_results": 0.3}),
    Switch(
        "driver-decides",
        "4",
        ((TaskRunner, {"_committed_result": _handed_on_if_the_driver_said_so}),),
        {"driver_decides": True, "unheard_s": 0.5, "speculation": 0.2},
    ),
    Switch(
        "invisible-edges",
        "5",
        ((KafkaTaskJournal, {"_final_ends": _visible_ends, "read_edges": _read_visible_edges}),),
        {"show_delay_s": 1.0, "lost_results": 0.3},
    ),
    Switch(
        "no-record-without-output",
        "6",
        ((KafkaTaskJournal, {"commit": _commit_if_written}),),
        {"speculation": 0.3, "unheard_s": 0.5, "dropped": 0.9, "records": 16, "max_batch_records": 2},
        {"pause": 0.02, "longest_pause_s": 8.0},
    ),
    Switch(
        "unfenced-drivers",
        "7",
        ((KafkaJournal, {"_check_between": _nothing}), (History, {"with_record": _with_record_unfenced})),
        {"second_driver": 0.5},
        first=70,
    ),
    Switch(
        "no-init-at-start",
        "8",
        ((journal, {"end_open_transactions": _nothing}),),
        {"transaction_timeout_s": 900.0},
        {"crash": 0.01},
    ),
    Switch("unacknowledged-rows", "9", ((LiveTask, {"commit": _commit_after_the_copy}),), _COPIES, {"lost": 0.01}),
    Switch(
        "any-opener-writes",
        "9",
        (
            (DiskEnvironment, {"apply_if": _apply_by_anybody}),
            (working_copy._EnginePart, {"is_untouched": lambda self: True}),
            (working_copy, {"_is_sealed": lambda directory: True}),
        ),
        {**_COPIES, "shared_disk": True, "unheard_s": 0.5},
        {"pause": 0.005},
        first=460,
    ),
    Switch(
        "other-topics",
        "9",
        ((KafkaLog, {"topic_id": lambda self, name: "same"}), (WorkingCopy, {"belong_to": _nothing})),
        {**_COPIES, **_RESETS, "recreates": True},
    ),
    Switch(
        "missed-tombstones",
        "9",
        ((WorkingCopy, {"current_ms": lambda self, store: working_copy._now_ms()}),),
        {**_COPIES, "tombstones_ms": 1_000, "compaction": 0.6, "shared_disk": False, "affinity": 0.3},
    ),
    Switch(
        "any-offset",
        "9",
        ((restore, {"_is_usable": _is_usable_with_any_offset}), (WorkingCopy, {"belong_to": _nothing})),
        {**_COPIES, **_RESETS},
    ),
    Switch(
        "cut-off-rows",
        "9",
        ((restore, {"_is_usable": _is_usable_at_the_beginning}),),
        {**_RESETS, "in_memory": False, "restore_lag": 0},
        first=200,
    ),
    Switch("unannounced-reset", "10", ((resetting, {"_append": _append_unannounced}),), _RESETS),
    Switch("only-compacted", "11", ((Administration, {"_allow_deletion": _nothing}),), _RESETS),
    Switch("table-to-the-end", "12", ((restore, {"_parts": _parts_to_the_end}),), {"table": True}, {"crash": 0.005}),
    Switch("behind-a-failure", "13", (), {"run_behind_failures": True, "failing": 0.05}),
)


# The embedded log.


def _discard_all(self: StagingArea, application: str, incarnation: int, up_to: int = -1) -> int:
    files = list(self.folder(application).glob("*.staged"))
    for path in files:
        path.unlink(missing_ok=True)
    return len(files)


_own_embedded_commit = committing.commit


def _commit_once_more(tables: Any, frames: Any, application: str, incarnation: int, batch_id: int, *rest: Any) -> Any:
    """What is there already passes for a success."""
    last = tables.application(application)
    if last is not None and last.batch_id == batch_id:
        return committing.committed(last)
    return _own_embedded_commit(tables, frames, application, incarnation, batch_id, *rest)


_own_take = TaskRunner._take


def _take_whatever_is_live(self: TaskRunner, place: TaskPlace, plan: Plan, attempt: int) -> Any:
    live = self._live.get(place.name)
    if live is not None:
        stamps = {**plan.stamps, place.name: live.stamp}
        plan = Plan(plan.batch_id, plan.now_ms, plan.ranges, plan.due, stamps, plan.global_ends, plan.restores)
    return _own_take(self, place, plan, attempt)


EMBEDDED_SWITCHES: Sequence[Switch] = (
    Switch(
        "any-owner",
        "owner",
        ((committing, {"check_owner": _nothing}), (embedded_journal, {"check_owner": _nothing})),
        {"second_driver": 0.4, "reset": 0.3},
        {"pause": 0.01},
    ),
    Switch(
        "there-already",
        "next batch",
        (
            (committing, {"check_owner": _nothing}),
            (embedded_journal, {"check_owner": _nothing, "commit": _commit_once_more}),
        ),
        {"second_driver": 0.5},
        {"pause": 0.005},
    ),
    Switch("any-stamp", "stamps", ((TaskRunner, {"_take": _take_whatever_is_live}),), {"failing": 0.05}),
    Switch(
        "all-staged-files",
        "staged files",
        ((StagingArea, {"discard": _discard_all}),),
        {"second_driver": 0.5},
        first=80,
    ),
)

BY_NAME: Mapping[str, Switch] = {switch.name: switch for switch in (*SWITCHES, *EMBEDDED_SWITCHES)}
