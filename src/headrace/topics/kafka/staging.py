"""The outputs of a task: in its own transaction, or only acknowledged before the batch is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self
from zlib import crc32

from confluent_kafka import Producer

from headrace.errors import BatchError
from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.explaining import explaining
from headrace.topics.kafka.markers import Bounds
from headrace.topics.kafka.writing import Delivery, FindTopic, flush, produce
from headrace.topics.log import Output, Receipt, TopicPartition
from headrace.topics.spread import Sticky, spread


class Sending(Protocol):
    """How the outputs of a task are sent: ``Transaction``, or ``PlainSending``."""

    reports_every_record: bool

    @property
    def is_begun(self) -> bool:
        """Whether anything was sent, or looked at."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether they were committed before, so that nothing is to be sent."""
        ...

    @property
    def written_before(self) -> Bounds: ...

    @property
    def producer(self) -> Producer: ...
    def commit(self, positions: Mapping[TopicPartition, int], delivery: Delivery) -> None: ...
    def abort(self) -> None: ...


class PlainSending:
    """Sends at least once: a batch that is run again is written again."""

    reports_every_record = True
    is_begun = True
    is_done = False

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    @property
    def written_before(self) -> Bounds:
        return {}

    @property
    def producer(self) -> Producer:
        return self._clients.producer

    def commit(self, positions: Mapping[TopicPartition, int], delivery: Delivery) -> None:
        """Waits for the acknowledgements; positions are committed with the batch."""
        with explaining("writing the outputs of a task", self._clients.servers):
            flush(self.producer, delivery)

    def abort(self) -> None:
        """Does nothing: what was sent cannot be taken back."""


class KafkaStage:
    """The outputs of one attempt of a task. See the ``Stage`` protocol.

    A task that has committed the batch before writes nothing: its records are in the log already.
    """

    def __init__(
        self, clients: Clients, topic: FindTopic, sending: Sending, identity: tuple[str, int, str, int]
    ) -> None:
        self._clients = clients
        self._topic = topic
        self._sending = sending
        self._identity = identity
        # A replay spreads keyless records in the same way.
        self._sticky = Sticky(identity[1] + crc32(identity[2].encode()))
        self._delivery = Delivery()
        self._records = 0
        self._is_open = True

    def write(self, topic: str, outputs: Sequence[Output]) -> None:
        if not self._is_open:
            message = f"the output of task {self._identity[2]} in batch {self._identity[1]} is finished; stage it anew"
            raise BatchError(message)
        if not outputs:
            return
        parts = list(spread(self._topic(topic), outputs, self._sticky))
        self._records += len(outputs)
        if self._sending.is_done:
            return
        every = self._sending.reports_every_record
        with explaining(f"writing to topic '{topic}'", self._clients.servers):
            for partition, part in parts:
                produce(self._sending.producer, topic, partition, part, self._delivery, every=every)

    def finish(self, positions: Mapping[TopicPartition, int]) -> Receipt:
        """Commits the transaction with the positions in it, and returns the receipt for it."""
        self._is_open = False
        # A task that has read and written nothing leaves no trace: run again, it would do nothing again.
        commits = bool(positions) or self._sending.is_begun
        if commits and not self._sending.is_done:
            self._sending.commit(positions, self._delivery)
        written = self._delivery.bounds or (self._sending.written_before if commits else {})
        application, batch_id, task, attempt = self._identity
        return Receipt(
            application=application,
            batch_id=batch_id,
            task=task,
            attempt=attempt,
            records=self._records,
            positions=dict(positions),
            inline=json.dumps([commits, [[*target, *bounds] for target, bounds in written.items()]]).encode(),
        )

    def discard(self) -> None:
        """Aborts the transaction."""
        self._is_open = False
        if self._sending.is_begun and not self._sending.is_done:
            self._sending.abort()

    def flush(self) -> None:
        """Sends what was written so far, without committing it."""
        self._sending.producer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self.discard()
