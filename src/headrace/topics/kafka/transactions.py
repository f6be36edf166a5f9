"""A task's transaction: its marker first, then its records, then what it has consumed; all of it or nothing.

The marker is an offset of the application's consumer group: partition ``p`` of the marker topic of sub-topology ``s``
stands for task ``s_p``, its offset is the number of batches that the task has committed. It is read only after the
producer was initialized, which ends whatever an older producer of the task has left open; so what is read is final.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from headrace.errors import (
    BatchError,
    LogError,
    RetriableError,
    TopicError,
    TopicExistsError,
    UnknownTopicError,
    describe_value,
)
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients, Writer
from headrace.topics.kafka.explaining import error_of, explaining
from headrace.topics.kafka.writing import Delivery
from headrace.topics.log import TopicPartition

logger = logging.getLogger(__name__)

_CALL_S = 60.0
_CREATED_AT_LEAST = 8
"""Partitions that a marker topic gets at first; one that is not used costs nothing."""


def own_prefix(application: str) -> str:
    """Returns how topics begin that hold an application's progress."""
    return f"{application}-headrace-"


def marker_place(application: str, task: str) -> TopicPartition:
    """Returns the partition that stands for a task.

    >>> marker_place("orders", "1_3")
    ('orders-headrace-1-tasks', 3)
    """
    group, _, number = task.rpartition("_")
    if not group or not number.isdecimal():
        message = f"a task's name is <sub-topology>_<partition>, such as '0_3'; found {describe_value(task)}"
        raise TopicError(message)
    return f"{own_prefix(application)}{group}-tasks", int(number)


class Transaction:
    """What a task does in one micro-batch. ``is_done`` says that it was committed before."""

    def __init__(
        self,
        clients: Clients,
        administration: Administration,
        application: str,
        batch_id: int,
        task: str,
        plan: str,
    ) -> None:
        self._clients = clients
        self._application = application
        self._batch_id = batch_id
        self._task = task
        self._plan = plan
        self._id = f"{application}-{task}"
        self._marker = marker_place(application, task)
        self._doing = f"committing task {task} of application '{application}'"
        self._administration = administration
        self._writer = self._begun()
        self.is_done = self._writer.marker >= batch_id
        if self.is_done:
            clients.keep_writer(self._id, self._writer)

    @property
    def producer(self) -> Producer:
        return self._writer.producer

    def _begun(self) -> Writer:
        writer = self._clients.take_writer(self._id)
        # A marker in memory is no reason to leave anything out: the application may have been reset since.
        if writer is not None and writer.is_usable and writer.marker < self._batch_id:
            try:
                self._begin(writer.producer)
                return writer
            except KafkaException as exception:
                # Another process has had this task in between.
                logger.debug("producer '%s' is made anew: %s", self._id, exception)
        ensure_marker(self._administration, self._marker)
        with explaining(self._doing, self._clients.servers):
            writer = self._clients.new_writer(self._id)
            writer.producer.init_transactions(_CALL_S)
            writer.marker, writer.plan = self._committed()
            if not self._is_replay(writer):
                self._begin(writer.producer)
        return writer

    def _committed(self) -> tuple[int, str]:
        place = self._clients.group(self._application).committed([Place(*self._marker)], _CALL_S)[0]
        return max(place.offset, 0) - 1, place.metadata or ""

    def _is_replay(self, writer: Writer) -> bool:
        if writer.marker < self._batch_id:
            return False
        where = f"batch {self._batch_id} of application '{self._application}'"
        remedy = (
            "the checkpoint was deleted or exchanged while the log was kept: bring it back, or reset the application"
        )
        if writer.marker > self._batch_id:
            message = f"{where} is older than the last one in the log, {writer.marker} (task {self._task}); {remedy}"
            raise BatchError(message)
        if writer.plan != self._plan and writer.plan and self._plan:
            message = f"{where} is in the log with another plan ({writer.plan!r}, now {self._plan!r}); {remedy}"
            raise BatchError(message)
        return True

    def _begin(self, producer: Producer) -> None:
        producer.begin_transaction()
        self._send_offsets(producer, [Place(*self._marker, self._batch_id + 1, metadata=self._plan)])

    def _send_offsets(self, producer: Producer, places: list[Place]) -> None:
        metadata = self._clients.group(self._application).consumer_group_metadata()
        _limited(lambda: producer.send_offsets_to_transaction(places, metadata, _CALL_S), self._doing)

    def commit(self, positions: Mapping[TopicPartition, int], delivery: Delivery) -> None:
        """Ends the transaction with the positions in it."""
        with explaining(self._doing, self._clients.servers):
            try:
                if positions:
                    self._send_offsets(self.producer, [Place(*target, offset) for target, offset in positions.items()])
                self.producer.commit_transaction(_CALL_S)
            except KafkaException as exception:
                # Otherwise its end is not known, and the next producer of the task finds it out.
                if error_of(exception).txn_requires_abort():
                    self.abort()
                if delivery.error is not None:
                    # This is why.
                    raise KafkaException(delivery.error) from exception
                raise
        self._writer.marker, self._writer.plan = self._batch_id, self._plan
        self._clients.keep_writer(self._id, self._writer)

    def abort(self) -> None:
        """Takes everything back. If that fails, the next producer of the task does it."""
        try:
            self.producer.abort_transaction(_CALL_S)
        except KafkaException as exception:
            logger.debug("producer '%s' is given up: %s", self._id, exception)
            return
        self._clients.keep_writer(self._id, self._writer)


def ensure_marker(administration: Administration, marker: TopicPartition) -> None:
    """Makes the partition that stands for a task: the group takes no offsets of partitions that are not there."""
    topic, number = marker
    wanted = max(_CREATED_AT_LEAST, 1 << number.bit_length())
    try:
        known = administration.describe(topic)
    except UnknownTopicError:
        try:
            known = administration.create(topic, wanted, None)
        except TopicExistsError:
            # Another task of the same sub-topology was faster.
            known = administration.describe(topic)
    if known.partitions <= number:
        try:
            administration.grow(topic, wanted)
        except LogError:
            if administration.describe(topic).partitions <= number:
                raise


def _limited(call: Callable[[], None], doing: str) -> None:
    """Runs a call that may hang past its own time limit when brokers were restarted, and gives up on it then."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_CALL_S + 5)
    if thread.is_alive():
        message = f"Kafka's client does not come back from {doing}; it is left alone, and the task is tried again"
        raise RetriableError(message)
    for error in raised:
        raise error
