"""What an application has committed: a record for each micro-batch, and the offsets of its consumer group.

Tasks commit their own transactions. The record says that all of them have, and which plan they followed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import astuple, dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from headrace.errors import BatchError, TopicExistsError, UnknownTopicError
from headrace.topics.batch_rules import check_receipts, check_replay
from headrace.topics.kafka.administration import ANSWER_S, Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.explaining import error_of, explain
from headrace.topics.kafka.markers import bounds_of, check_markers, marker_place, own_prefix
from headrace.topics.kafka.patience import patiently
from headrace.topics.kafka.reading import read_range
from headrace.topics.kafka.writing import Appender
from headrace.topics.log import Committed, Offsets, Receipt, TopicPartition

logger = logging.getLogger(__name__)

_KEY = b"batch"
_VISIBLE_S = 5.0
_STEP_S = 0.002
_OUTWORN_MS = 24 * 3600 * 1000


@dataclass(frozen=True)
class _Entry:
    """A batch as it is recorded."""

    batch_id: int
    plan: str
    written: Sequence[tuple[str, int, int, int]]
    positions: Sequence[tuple[str, int, int]]
    """All positions so far: those of the group are forgotten when nobody has committed for a week."""
    tasks: Sequence[tuple[str, int, int]] = ()
    """The batch that each task has committed last, and when: its marker must say the same."""

    def committed(self) -> Committed:
        return Committed(self.batch_id, {(topic, part): (first, end) for topic, part, first, end in self.written})


class Batches:
    """The batches of applications, by their ids."""

    def __init__(self, clients: Clients, administration: Administration, appender: Appender) -> None:
        self._clients = clients
        self._administration = administration
        self._appender = appender
        self._seen: dict[str, tuple[int, _Entry]] = {}
        self._hidden: set[TopicPartition] = set()

    def last(self, application: str) -> Committed | None:
        entry = self._fresh(application)
        return None if entry is None else entry.committed()

    def commit(
        self,
        application: str,
        batch_id: int,
        receipts: Sequence[Receipt],
        plan: str,
        positions: Mapping[TopicPartition, int],
    ) -> Committed:
        last = self._last(application)
        if last is not None and batch_id <= last.batch_id:
            check_replay(application, batch_id, plan, last_id=last.batch_id, last_plan=last.plan)
            return last.committed()
        check_receipts(application, batch_id, receipts)
        written = _written(receipts)
        self._wait_until_visible(written)
        of_tasks = {target: at for receipt in receipts for target, at in receipt.positions.items()}
        tasks = self._tasks(last, batch_id, receipts)
        # In transactions, tasks have committed theirs themselves.
        is_theirs = self._clients.settings.exactly_once
        own = _outworn(application, tasks, batch_id) if is_theirs else of_tasks
        self._commit_positions(application, own | dict(positions))
        former = {} if last is None else _by_target(last.positions)
        entry = _Entry(
            batch_id,
            plan,
            [(*target, *bounds) for target, bounds in written.items()],
            [(*target, at) for target, at in (former | of_tasks | dict(positions)).items()],
            list(tasks.values()),
        )
        self._put(application, entry)
        return entry.committed()

    def _tasks(
        self, last: _Entry | None, batch_id: int, receipts: Sequence[Receipt]
    ) -> dict[str, tuple[str, int, int]]:
        if not self._clients.settings.exactly_once:
            return {}
        now_ms = time.time_ns() // 1_000_000
        tasks = {} if last is None else {each[0]: each for each in last.tasks}
        return tasks | {each.task: (each.task, batch_id, now_ms) for each in receipts if _report(each)[0]}

    def tasks(self, application: str) -> list[str]:
        """Returns the tasks that have ever committed anything."""
        entry = self._fresh(application)
        return [] if entry is None else [task for task, _, _ in entry.tasks]

    def before_replay(self, application: str, batch_id: int) -> None:
        last = self._last(application)
        if last is not None and last.batch_id < batch_id:
            recorded = {task: batch for task, batch, _ in last.tasks}
            offsets = self._group_offsets(application)
            found = {task: offsets.get(marker_place(application, task), 0) - 1 for task in recorded}
            check_markers(application, batch_id, recorded, found)

    def positions(self, application: str) -> Offsets:
        """Returns the positions of the last batch; before there is one, what the group has.

        After a crash the group may be ahead, but then the batch is run again that has brought it there.
        """
        entry = self._fresh(application)
        if entry is not None:
            return _by_target(entry.positions)
        own = own_prefix(application)
        return {target: at for target, at in self._group_offsets(application).items() if not target[0].startswith(own)}

    def batch_positions(self, application: str) -> Offsets:
        entry = self._last(application)
        return {} if entry is None else _by_target(entry.positions)

    def _group_offsets(self, application: str) -> Offsets:
        with self._clients.telling(f"asking for the positions of '{application}'"):
            try:
                found = _patiently(
                    lambda: self._clients.admin.list_consumer_group_offsets(
                        [ConsumerGroupTopicPartitions(application)], request_timeout=ANSWER_S
                    )[application]
                ).topic_partitions
            except KafkaException as exception:
                if error_of(exception).code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return {}
                raise
        return {(place.topic, place.partition): place.offset for place in found or () if place.offset >= 0}

    def groups(self) -> list[str]:
        with self._clients.telling("listing consumer groups"):
            found = _patiently(lambda: self._clients.admin.list_consumer_groups(request_timeout=ANSWER_S))
        return sorted(group.group_id for group in found.valid)

    def reset(self, application: str) -> None:
        """Forgets everything. It can be done again if it was interrupted."""
        try:
            _patiently(
                lambda: self._clients.admin.delete_consumer_groups([application], request_timeout=ANSWER_S)[application]
            )
        except KafkaException as exception:
            error = error_of(exception)
            if error.code() == KafkaError.NON_EMPTY_GROUP:
                message = (
                    f"consumer group '{application}' has members: stop whoever reads under that name, and try again"
                )
                raise BatchError(message) from exception
            if error.code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise explain(error, f"resetting '{application}'", self._clients.servers) from exception
        self._clients.forget_writers(f"{application}-")
        self._seen.pop(application, None)
        own = own_prefix(application)
        for topic in self._administration.names():
            if topic.startswith(own):
                self._administration.delete(topic)

    def _fresh(self, application: str) -> _Entry | None:
        # Another process may have reset the application, and begun anew.
        self._seen.pop(application, None)
        return self._last(application)

    def _last(self, application: str) -> _Entry | None:
        topic = _topic(application)
        if application not in self._seen and topic not in self._administration.names():
            return None
        target = (topic, 0)
        try:
            end = self._administration.end_offsets([target], stable=True)[target]
        except UnknownTopicError:
            # Another process has reset the application.
            self._seen.pop(application, None)
            return None
        seen = self._seen.get(application)
        if seen is not None and seen[0] == end:
            return seen[1]
        found = read_range(self._clients, self._administration, target, max(0, end - 1), end, 1, 1 << 30, keep=False)
        if not found or found[-1][3] is None:
            return None
        batch_id, plan, *rows = json.loads(found[-1][3])
        entry = _Entry(batch_id, plan, *([tuple(each) for each in several] for several in rows))
        self._seen[application] = (end, entry)
        return entry

    def _put(self, application: str, entry: _Entry) -> None:
        topic = _topic(application)
        if application not in self._seen:
            try:
                self._administration.create(topic, 1, {"cleanup.policy": "compact"})
            except TopicExistsError:
                logger.debug("topic '%s' is there already", topic)
        value = json.dumps(astuple(entry)).encode()
        written = self._appender.append(topic, [(0, time.time_ns() // 1_000_000, _KEY, value, ())])
        self._seen[application] = (written[0][1], entry)

    def _wait_until_visible(self, written: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Waits until what tasks have committed can be read: brokers end a transaction some time after they say so."""
        deadline = time.monotonic() + _VISIBLE_S
        while written:
            ends = self._administration.end_offsets(written, stable=True)
            hidden = {target for target, (_, end) in written.items() if ends[target] < end}
            self._hidden -= written.keys() - hidden
            # Who has waited in vain once, for a transaction of somebody else, does not wait again.
            if hidden <= self._hidden:
                return
            if time.monotonic() > deadline:
                logger.warning("committed records of %s wait behind a transaction that is still open", sorted(hidden))
                self._hidden |= hidden
                return
            time.sleep(_STEP_S)

    def _commit_positions(self, application: str, positions: Mapping[TopicPartition, int]) -> None:
        if positions:
            with self._clients.telling(f"committing positions of '{application}'"):
                self._clients.group(application).commit(
                    offsets=[Place(*target, offset) for target, offset in positions.items()], asynchronous=False
                )


# Any: the client's futures do not say what they bring.
def _patiently(ask: Callable[[], Future[Any]]) -> Any:
    return patiently(lambda: ask().result(ANSWER_S), ANSWER_S)


def _topic(application: str) -> str:
    return f"{own_prefix(application)}batches"


def _by_target(positions: Sequence[tuple[str, int, int]]) -> Offsets:
    return {(topic, partition): at for topic, partition, at in positions}


def _written(receipts: Sequence[Receipt]) -> dict[TopicPartition, tuple[int, int]]:
    written: dict[TopicPartition, tuple[int, int]] = {}
    for receipt in receipts:
        for target, (first, end) in bounds_of(_report(receipt)[1]).items():
            before, behind = written.get(target, (first, end))
            written[target] = (min(before, first), max(behind, end))
    return written


# Any: rows out of JSON.
def _report(receipt: Receipt) -> tuple[bool, Any]:
    """Returns whether a task has committed anything, and which offsets it has written."""
    commits, written = json.loads(receipt.inline or b"[false, []]")
    return commits, written


def _outworn(application: str, tasks: dict[str, tuple[str, int, int]], batch_id: int) -> Offsets:
    """Returns markers to be committed again, before brokers forget them, of tasks that have nothing to do."""
    now_ms = time.time_ns() // 1_000_000
    found: Offsets = {}
    for task, batch, committed_ms in list(tasks.values()):
        if batch < batch_id and now_ms - committed_ms > _OUTWORN_MS:
            found[marker_place(application, task)] = batch + 1
            tasks[task] = (task, batch, now_ms)
    return found
