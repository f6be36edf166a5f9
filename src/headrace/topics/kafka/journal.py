"""Commit of a batch by the driver on Kafka: takeover, plan and batch as records of one partition.

A plain idempotent producer appends, and nobody else does: so each record lies directly behind the one before. If it
does not, and a takeover record lies between, another driver has come, and readers ignore what lies behind that. This is
one round trip, about 0.7 ms to a broker on the same machine, where a transaction takes six. A commit waits for its
acknowledgement, so it is either there or refused when it returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from headrace.errors import BatchError, FencedError, LogError, StreamsError
from headrace.topics.journal import Receipt, TaskStatus, check_receipts
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.history import BATCH, PLAN, TAKEOVER, Batch, History, Opener, Plan, entry_key
from headrace.topics.kafka.history_reader import read_history
from headrace.topics.kafka.journal_maintenance import Upkeep
from headrace.topics.kafka.progress_topics import (
    batches_topic,
    ensure_topics,
    is_progress,
    task_place,
)
from headrace.topics.kafka.transactional_producers import end_open_transactions
from headrace.topics.log import Committed, TopicPartition

_encode = msgspec.msgpack.Encoder().encode


class KafkaJournal:
    """The driver's side; see ``headrace.topics.journal.Journal``.

    It is opened in the order that exactly once needs: the takeover record first, which deposes other drivers; then what
    lies before is read, which cannot change any more; then their tasks are fenced, and what these have open is aborted.
    A journal that has failed stays so, because what it has written last is not known: open another one.
    """

    def __init__(
        self, clients: Clients, administration: Administration, application: str, tasks: Sequence[str] = ()
    ) -> None:
        self._clients = clients
        self._administration = administration
        self._application = application
        self._topic = batches_topic(application)
        self._failure: StreamsError | None = None
        # Meanwhile the topics are made, and read.
        clients.connect_acknowledged()
        places = [task_place(application, task) for task in tasks]
        ensure_topics(administration, application, places)
        read_history(clients, administration, application).check_not_resetting(application)
        history = self._take_over(tasks)
        self.incarnation = history.newest
        self._end = self.incarnation + 1
        known = {*tasks, *history.known_tasks}
        # Before the first driver there was nobody.
        if clients.settings.exactly_once and self.incarnation > 0:
            end_open_transactions(clients, application, sorted(known))
        self.state = history.state
        self._begun = self.state.begun
        self._batch_id = self.state.batch_id
        self._positions = dict(self.state.positions)
        self._tasks = {task: (TaskStatus(stamp, clock), at) for task, stamp, clock, at in history.batch.tasks}
        self._known = known
        self._upkeep = Upkeep(clients, administration, application)

    def _take_over(self, tasks: Sequence[str]) -> History:
        """Announces this driver, and returns what lies before."""
        while True:
            incarnation = self._send(TAKEOVER, _encode(Opener.this(tasks)))
            history = read_history(self._clients, self._administration, self._application)
            history.check_not_resetting(self._application)
            history.check_newest(self._application, incarnation)
            if history.newest == incarnation:
                return history
            # A reset has ended since, and takeovers before its end do not count.

    def begin(self, batch_id: int, plan: bytes) -> None:
        self._check_next(batch_id, "begun")
        if self._begun is not None:
            if plan == self._begun:
                return
            message = (
                f"batch {batch_id} of application '{self._application}' was begun with another plan, and tasks may "
                "have committed it: go on with the plan that the journal has"
            )
            raise BatchError(message)
        self._append(PLAN, _encode(Plan(batch_id, plan)))
        self._begun = plan

    def commit(
        self, batch_id: int, receipts: Sequence[Receipt], positions: Mapping[TopicPartition, int] | None = None
    ) -> Committed:
        self._check_next(batch_id, "committed")
        check_receipts(self._application, self.incarnation, batch_id, receipts)
        written, own = _written(receipts)
        for receipt in receipts:
            self._positions.update(receipt.positions)
            place = task_place(self._application, receipt.task)
            self._tasks[receipt.task] = (receipt.status, own[place][0] if place in own else -1)
        self._positions.update(positions or {})
        batch = Batch(
            batch_id,
            [(*target, offset) for target, offset in self._positions.items()],
            [(task, *status, at) for task, (status, at) in self._tasks.items()],
            [(*target, *bounds) for target, bounds in written.items()],
            sorted(self._known - self._tasks.keys()),
        )
        offset = self._append(BATCH, _encode(batch))
        self._batch_id, self._begun = batch_id, None
        self._administration.expect(written)
        self._upkeep.note(batch, offset)
        return batch.committed()

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        history = read_history(self._clients, self._administration, self._application)
        history.check_newest(self._application, self.incarnation)
        self._administration.delete_records(before)

    def begin_at(self, positions: Mapping[TopicPartition, int]) -> None:
        """Lets the first batch begin at these positions."""
        done = f"has committed batch {self._batch_id}, so it goes on behind that" if self._batch_id >= 0 else ""
        if not done and self._begun is not None:
            done = "has begun batch 0, and tasks may have committed it"
        if done:
            message = f"application '{self._application}' {done}; reset it before it can begin elsewhere"
            raise BatchError(message)
        self._append(BATCH, _encode(Batch(positions=[(*target, at) for target, at in positions.items()])))

    def close(self) -> None:
        self._upkeep.close()
        self._failure = self._failure or LogError(
            f"the journal of application '{self._application}' is closed; open it again: log.open_journal(…)"
        )

    def _check_next(self, batch_id: int, done: str) -> None:
        if self._failure is not None:
            raise self._failure
        if batch_id != self._batch_id + 1:
            message = (
                f"batch {batch_id} of application '{self._application}' cannot be {done}: the last one in the log is "
                f"{self._batch_id}; open the journal again, and go on from there"
            )
            raise BatchError(message)

    def _append(self, kind: bytes, value: bytes) -> int:
        try:
            offset = self._send(entry_key(kind, self.incarnation), value)
            if offset != self._end:
                self._check_between(offset)
        except StreamsError as error:
            # Whether it is in the topic is not known, or somebody else goes on.
            self._failure = error
            if not isinstance(error, FencedError):
                self._clients.drop_acknowledged()
            raise
        self._end = offset + 1
        return offset

    def _send(self, key: bytes, value: bytes) -> int:
        with self._clients.translating_errors(f"recording a batch of '{self._application}' in topic '{self._topic}'"):
            return self._clients.append_acknowledged(self._topic, key, value)

    def _check_between(self, offset: int) -> None:
        history = read_history(self._clients, self._administration, self._application)
        history.check_newest(self._application, self.incarnation)
        if offset < self._end:
            message = (
                f"topic '{self._topic}' was deleted while application '{self._application}' ran, and its progress with "
                f"it; start over with `headrace reset {self._application}`"
            )
            raise LogError(message)
        # Otherwise a driver that has been deposed has written once more, before it knew.


def _written(
    receipts: Sequence[Receipt],
) -> tuple[dict[TopicPartition, tuple[int, int]], dict[TopicPartition, tuple[int, int]]]:
    """Returns what tasks have written to topics, and where their records are in their own partitions."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for receipt in receipts:
        for target, (first, end) in receipt.written.items():
            before, behind = found.get(target, (first, end))
            found[target] = (min(before, first), max(behind, end))
    own = {target: bounds for target, bounds in found.items() if is_progress(target[0])}
    return {target: bounds for target, bounds in found.items() if target not in own}, own
