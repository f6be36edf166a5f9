"""Commit of a task on Kafka: one transaction per batch with outputs, changelog rows, edges and the task's record.

Each task has a partition of its own for its edges and its record. In a shared one its record could lie behind another
task's open transaction, unseen, and the task would run twice. The record is the last one of its transaction there, so
the last record that is committed says what the task has done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec.structs import replace as replace_in_record

from headrace.errors import FencedError, LogError, RetriableError, StreamsError
from headrace.topics.journal import EdgeBlob, Receipt, TaskCommitState, TaskRecord, Written
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.client_errors import FENCED, PURGED, error_of, explain, unwrapping
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.history_reader import read_history
from headrace.topics.kafka.producing import Delivery, Report, flush, produce, produce_all
from headrace.topics.kafka.progress_topics import ensure_place, task_place
from headrace.topics.kafka.reading import read_all
from headrace.topics.kafka.transactional_producers import init_producer
from headrace.topics.log import Headers, Offsets, Raw, Topic, TopicPartition
from headrace.topics.record_partitioning import Sticky, spread

logger = logging.getLogger(__name__)

_EDGE = b"edge"
_PART = b"part"
_RECORD = b"record"
_PARTS = "parts"
_PART_SHARE = 0.9
"""How much of the largest record that brokers take a part of a blob may be: it has a frame, too."""
_ABORT_S = 10.0
_STEP_S = 0.002
_TOPIC_KNOWN_FOR_S = 60.0
"""How long the partition count of an output is cached; Kafka's own clients take five minutes."""


class KafkaTaskJournal:
    """A task's side; see ``headrace.topics.journal.TaskJournal``.

    Being fenced is a FencedError if a newer driver has come, and a RetriableError if another process has the task for
    the same driver. Without ``exactly_once`` it writes outside of transactions, the record last, and fences nobody.
    """

    def __init__(
        self,
        clients: Clients,
        administration: Administration,
        application: str,
        incarnation: int,
        task: str,
        changelogs: Sequence[TopicPartition],
    ) -> None:
        self._clients = clients
        self._administration = administration
        self._application = application
        self._incarnation = incarnation
        self._task = task
        self._changelogs = list(changelogs)
        self._place = task_place(application, task)
        self._in_transactions = clients.settings.exactly_once
        self._part_bytes = int(_PART_SHARE * clients.settings.max_message_bytes)
        self._producer: Producer | None = None
        self._sticky = Sticky(crc32(task.encode()))
        self._begun_at = 0.0

    def open(self) -> TaskCommitState:
        """Fences other owners of the task, and returns its state.

        In this order: other producers of the task are fenced and their transactions over; no newer driver has come, so
        that none relies on what was there before; and then it is looked at.
        """
        self.close()
        ensure_place(self._administration, self._place)
        doing = f"opening task {self._task} of application '{self._application}'"
        with self._translated(doing):
            producer = (
                init_producer(self._clients, self._application, self._task)
                if self._in_transactions
                else self._clients.producer
            )
        self._check_newest()
        # Both are final now, but for the time until brokers show them.
        ends = self._final_ends([self._place, *self._changelogs])
        record = self._last_record(ends.pop(self._place))
        self._producer = producer
        return TaskCommitState(record, ends)

    def read_record(self, stamp: str | None = None) -> TaskRecord | None:
        """Returns the last record, or the one with a stamp; None if it was cut off, or is not visible yet."""
        return self._last_record(self._administration.end_offsets([self._place], stable=True)[self._place], stamp)

    def commit(self, record: TaskRecord, written: Written, edges: Sequence[EdgeBlob]) -> Receipt:
        producer = self._producer
        if producer is None:
            message = f"task {self._task} of application '{self._application}' is not open; open its journal first"
            raise LogError(message)
        # Whatever happens now, what brokers have of the task is not known until it has succeeded.
        self._producer = None
        delivery = Delivery()
        with self._translated(f"committing task {self._task} of application '{self._application}'", producer, delivery):
            self._begin(producer)
            self._write(producer, written, delivery)
            offsets = self._write_edges(producer, edges, delivery)
            parts = self._write_record(producer, replace_in_record(record, edges=offsets), delivery)
            self._end(producer, delivery)
        self._producer = producer
        # The record is the last thing in the task's own partition. The driver deletes what lies before it.
        end = delivery.bounds[self._place][1]
        bounds = {**delivery.bounds, self._place: (end - parts, end)}
        return replace(Receipt.of(self._task, self._incarnation, record), written=bounds)

    def read_edges(self, record: TaskRecord) -> list[EdgeBlob]:
        """Returns the blobs that a record names, once exactly these can be read."""
        offsets = {offset for *_, offset in record.edges}
        if not offsets:
            return []
        deadline = time.monotonic() + self._clients.patience_s
        while True:
            found = self._read(min(offsets), max(offsets) + 1)
            parts = {offset: value or b"" for offset, _, _, value, _ in found if offset in offsets}
            if len(parts) == len(offsets):
                break
            if time.monotonic() > deadline:
                message = (
                    f"edges of task {self._task} of application '{self._application}' are gone from topic "
                    f"'{self._place[0]}': {len(parts)} of {len(offsets)} were found; start over with `headrace reset "
                    f"{self._application}`"
                )
                raise LogError(message)
            time.sleep(_STEP_S)
        return [
            EdgeBlob(receiver, topic, self._task, sequence, b"".join(parts[offset] for *_, offset in rows))
            for (receiver, topic, sequence), rows in groupby(record.edges, key=itemgetter(0, 1, 2))
        ]

    def close(self) -> None:
        self._producer, self._begun_at = None, 0.0

    def _begin(self, producer: Producer) -> None:
        self._begun_at = time.monotonic()
        if self._in_transactions:
            producer.begin_transaction()

    def _write(self, producer: Producer, written: Written, delivery: Delivery) -> None:
        # In a transaction one record that fails fails all of them, so not each of them need be reported.
        every = not self._in_transactions
        for topic, outputs in written:
            for partition, part in spread(self._topic(topic), outputs, self._sticky):
                produce(producer, topic, partition, part, delivery, every=every)

    def _topic(self, name: str) -> Topic:
        return self._administration.topic(name, _TOPIC_KNOWN_FOR_S)

    def _write_edges(
        self, producer: Producer, edges: Sequence[EdgeBlob], delivery: Delivery
    ) -> list[tuple[str, str, int, int]]:
        if not edges:
            if not self._in_transactions:
                # The record is to be the last one, if not everything is written.
                flush(producer, delivery, self._clients.patience_s)
            return []
        rows: list[tuple[str, str, int]] = []
        offsets: list[int] = []

        def tell(error: KafkaError | None, message: Message) -> None:
            delivery(error, message)
            if error is None:
                offsets.append(message.offset() or 0)

        for edge in edges:
            for part in _parts(edge.blob, self._part_bytes):
                rows.append((edge.receiver, edge.topic, edge.sequence))
                self._produce(producer, _EDGE, part, tell)
        flush(producer, delivery, self._clients.patience_s)
        # A producer's records of one partition are reported in their order.
        return [(*row, offset) for row, offset in zip(rows, offsets, strict=True)]

    def _write_record(self, producer: Producer, record: TaskRecord, delivery: Delivery) -> int:
        """Writes the record of the task; returns in how many parts."""
        *first, last = _parts(record.pack(), self._part_bytes)
        for part in first:
            self._produce(producer, _PART, part, delivery)
        self._produce(producer, _RECORD, last, delivery, ((_PARTS, str(len(first)).encode()),) if first else ())
        return len(first) + 1

    def _produce(self, producer: Producer, key: bytes, value: bytes, delivery: Report, headers: Headers = ()) -> None:
        produce_all(producer, *self._place, [(None, time.time_ns() // 1_000_000, key, value, headers)], delivery)

    def _end(self, producer: Producer, delivery: Delivery) -> None:
        if self._in_transactions:
            producer.commit_transaction(self._clients.patience_s)
            if delivery.error is not None:
                raise KafkaException(delivery.error)
        else:
            flush(producer, delivery, self._clients.patience_s)

    def _final_ends(self, targets: Sequence[TopicPartition]) -> Offsets:
        """Returns the ends of partitions that only this task writes, once all records before them are readable."""
        ends = self._administration.end_offsets(targets, stable=False)
        deadline = time.monotonic() + self._clients.patience_s
        while True:
            stable = self._administration.end_offsets(targets, stable=True)
            hidden = sorted(target for target in targets if stable[target] < ends[target])
            if not hidden:
                return ends
            if time.monotonic() > deadline:
                message = (
                    f"task {self._task} of application '{self._application}' waits for a transaction in {hidden} that "
                    "somebody else has open; only this task may write there: stop who does"
                )
                raise RetriableError(message)
            time.sleep(_STEP_S)

    def _last_record(self, end: int, stamp: str | None = None) -> TaskRecord | None:
        """Returns the last record of the partition that is committed, or the one with a stamp.

        Usually it lies directly before the end of its transaction; else what was aborted lies behind it.
        """
        begin = self._administration.begin_offsets([self._place])[self._place]
        stop, steps = end, 2 if self._in_transactions else 1
        while stop > begin:
            start = max(begin, stop - steps)
            for raw in reversed(self._read(start, stop)):
                if raw[2] == _RECORD:
                    record = self._unpack(raw)
                    if stamp is None or record.stamp == stamp:
                        return record
            stop, steps = start, steps * 8
        return None

    def _unpack(self, raw: Raw) -> TaskRecord:
        offset, _, _, value, headers = raw
        parts = int(dict(headers).get(_PARTS) or 0)
        before = self._read(offset - parts, offset) if parts else []
        return TaskRecord.unpack(b"".join([*(part or b"" for _, _, _, part, _ in before), value or b""]))

    def _read(self, start: int, stop: int) -> list[Raw]:
        return read_all(self._clients, self._administration, self._place, start, stop)

    def _check_newest(self) -> None:
        history = read_history(self._clients, self._administration, self._application)
        history.check_newest(self._application, self._incarnation)

    @contextmanager
    def _translated(
        self, doing: str, producer: Producer | None = None, delivery: Delivery | None = None
    ) -> Iterator[None]:
        """Turns exceptions of the client into ours; a ``producer`` that has begun a transaction aborts it."""
        try:
            with self._clients.translating_errors(doing):
                try:
                    with unwrapping():
                        yield
                except KafkaException as exception:
                    error = error_of(exception)
                    if error.code() in FENCED | PURGED:
                        raise self._explain_fenced(error, doing) from exception
                    if delivery is not None and delivery.error is not None:
                        # This is why.
                        wrote = f"writing to topic '{delivery.failed_topic}' in task {self._task}"
                        raise explain(delivery.error, wrote, self._clients.servers) from exception
                    raise
        except BaseException as error:
            if producer is not None and self._in_transactions and not isinstance(error, FencedError):
                _abort(producer)
            raise

    def _explain_fenced(self, error: KafkaError, doing: str) -> StreamsError:
        timeout_ms = self._clients.settings.transaction_timeout_ms
        if self._begun_at and (time.monotonic() - self._begun_at) * 1000 >= timeout_ms:
            message = (
                f"the transaction took longer than 'producer.transaction.timeout.ms', {timeout_ms} ms, while {doing}, "
                "so brokers have aborted it; it is tried again: raise the setting if that is not enough"
            )
            return RetriableError(message)
        try:
            self._check_newest()
        except FencedError as fenced:
            return fenced
        except StreamsError as unknown:
            logger.debug("who has taken over task %s is not known: %s", self._task, unknown)
        # Of the same driver: the next attempt here opens the task again, and finds what the other one has done.
        message = (
            f"another attempt at the task has taken over while {doing} ({error.str()}); what this one was about to "
            "commit was not committed; the task is opened again"
        )
        return RetriableError(message)


def _abort(producer: Producer) -> None:
    """Takes everything back, so that readers need not wait. If that fails, the next producer of the task does it."""
    with suppress(KafkaException):
        producer.abort_transaction(_ABORT_S)


def _parts(data: bytes, size: int) -> list[bytes]:
    """Cuts data that may be too large for a record.

    >>> _parts(b"abcde", 2), _parts(b"", 2)
    ([b'ab', b'cd', b'e'], [b''])
    """
    if len(data) <= size:
        return [data]
    return [data[start : start + size] for start in range(0, len(data), size)]
