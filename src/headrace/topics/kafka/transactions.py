"""A task's transaction: its records, its marker, and what it has consumed; all of it or nothing.

The marker is read only after the producer was initialized, which ends whatever an older producer of the task has left
open; so what is read is final. A producer that is used again sends its marker before anything else: if another process
has had the task in between, that is refused, and a new producer begins anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from headrace.errors import BatchError, LogError, RetriableError, TopicExistsError, UnknownTopicError
from headrace.topics.kafka.administration import Administration
from headrace.topics.kafka.clients import Clients, Writer
from headrace.topics.kafka.explaining import error_of, explain
from headrace.topics.kafka.markers import Bounds, Marker, marker_place
from headrace.topics.kafka.patience import patiently
from headrace.topics.kafka.writing import Delivery, flush
from headrace.topics.log import TopicPartition

logger = logging.getLogger(__name__)

_CALL_S = 60.0
_AT_ONCE = 8
_CREATED_AT_LEAST = 8
"""Partitions that a marker topic gets at first; one that is not used costs nothing."""


class Transaction:
    """What a task writes in one micro-batch. It begins when it is first asked for anything: many a batch has nothing.

    ``is_done`` says that the batch was committed before.
    """

    reports_every_record = False
    """The transaction fails as a whole if a record does."""

    def __init__(
        self,
        clients: Clients,
        administration: Administration,
        application: str,
        task: str,
        marker: Marker,
        changes: Callable[[], str] | None = None,
    ) -> None:
        self._clients = clients
        self._application = application
        self._task = task
        self._marker = marker
        self._changes = changes
        self._id = _id(application, task)
        self._place = marker_place(application, task)
        self._doing = f"committing task {task} of application '{application}'"
        self._administration = administration
        self._writer: Writer | None = None
        self._has_moved = False

    @property
    def is_begun(self) -> bool:
        return self._writer is not None

    @property
    def is_done(self) -> bool:
        return self._begun().marker.batch_id >= self._marker.batch_id

    @property
    def producer(self) -> Producer:
        return self._begun().producer

    @property
    def written_before(self) -> Bounds:
        """What the first run of the batch has written."""
        return self._begun().marker.written

    def _begun(self) -> Writer:
        if self._writer is None:
            self._writer = self._reused() or self._new()
        return self._writer

    def _reused(self) -> Writer | None:
        writer = self._clients.take_writer(self._id)
        if writer is None or writer.owner is not self._administration or not writer.is_usable:
            return None
        # A marker in memory is no reason to leave anything out: the application may have been reset since.
        if writer.marker.batch_id >= self._marker.batch_id:
            return None
        try:
            writer.producer.begin_transaction()
            self._send_offsets(writer.producer, {self._place: self._marker.offset})
        except KafkaException as exception:
            # Another process has had this task in between.
            logger.debug("producer '%s' is made anew: %s", self._id, exception)
            return None
        return writer

    def _new(self) -> Writer:
        ensure_marker(self._administration, self._place)
        with self._clients.telling(self._doing):
            writer = self._clients.spare_writer(self._id) or self._clients.new_writer(self._id)
            writer.owner = self._administration
            # Asked before it has found a broker, it would look for one again only half a second later.
            writer.producer.list_topics(self._place[0], _CALL_S)
            writer.producer.init_transactions(_CALL_S)
            group = self._clients.group(self._application)
            place = patiently(lambda: group.committed([Place(*self._place)], _CALL_S), _CALL_S)[0]
            writer.marker = Marker.of(place.offset, place.metadata)
            self._has_moved = writer.marker.batch_id >= 0
            if writer.marker.batch_id >= self._marker.batch_id:
                writer.marker.check_replay(self._application, self._task, self._marker)
                self._compare(writer.marker)
                self._clients.keep_writer(self._id, writer)
            else:
                writer.producer.begin_transaction()
        return writer

    def _compare(self, before: Marker) -> None:
        changes = "" if self._changes is None else self._changes()
        if not before.changes or not changes or before.changes == changes:
            return
        found = (
            f"task {self._task} of application '{self._application}': batch {self._marker.batch_id} was run again and "
            "has changed its state in another way than at first, when its results were written; what user code does "
            "must depend on records, state and the time of the context only"
        )
        if self._clients.settings.on_replay_difference == "fail":
            message = (
                f"{found}; nothing of this run was kept: correct the code, and go on with on_replay_difference='warn', "
                "which takes the new state with the old results, or start over with "
                f"`headrace reset {self._application}`"
            )
            raise BatchError(message)
        logger.warning("%s", found)

    def _send_offsets(self, producer: Producer, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        group = self._clients.group(self._application).consumer_group_metadata()
        places = [
            Place(*target, offset, metadata=metadata) if target == self._place else Place(*target, offset)
            for target, offset in offsets.items()
        ]
        _limited(lambda: producer.send_offsets_to_transaction(places, group, _CALL_S), self._doing)

    def commit(self, positions: Mapping[TopicPartition, int], delivery: Delivery) -> None:
        """Ends the transaction with the positions and the marker in it."""
        writer, producer = self._begun(), self.producer
        with self._clients.telling(self._doing):
            try:
                flush(producer, delivery)
                changes = "" if self._changes is None else self._changes()
                marker = replace(self._marker, written=delivery.bounds, changes=changes)
                self._send_offsets(producer, {self._place: marker.offset, **positions}, marker.metadata)
                producer.commit_transaction(_CALL_S)
            except KafkaException as exception:
                # Otherwise its end is not known, and the next producer of the task finds it out.
                if delivery.error is not None or error_of(exception).txn_requires_abort():
                    self.abort()
                if delivery.error is not None:
                    # This is why.
                    doing = f"writing to topic '{delivery.failed_topic}' in task {self._task}"
                    raise explain(delivery.error, doing, self._clients.servers) from exception
                raise
        writer.marker = marker
        self._clients.keep_writer(self._id, writer)
        if self._has_moved:
            self._clients.prepare_writer(self._id)

    def abort(self) -> None:
        """Takes everything back. If that fails, the next producer of the task does it."""
        if self._writer is None:
            return
        try:
            self._writer.producer.abort_transaction(_CALL_S)
        except KafkaException as exception:
            logger.debug("producer '%s' is given up: %s", self._id, exception)
            return
        self._clients.keep_writer(self._id, self._writer)


def end_open_transactions(clients: Clients, application: str, tasks: Sequence[str]) -> None:
    """Makes a producer for each task and lets it go: what another one of that name has open is aborted."""

    def end(task: str) -> None:
        with clients.telling(f"ending what task {task} of application '{application}' has left open"):
            clients.new_writer(_id(application, task)).producer.init_transactions(_CALL_S)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(end, task) for task in tasks]:
            done.result()


def _id(application: str, task: str) -> str:
    return f"{application}-{task}"


def ensure_marker(administration: Administration, marker: TopicPartition) -> None:
    """Makes the partition that stands for a task: the group takes no offsets of partitions that are not there."""
    topic, number = marker
    wanted = max(_CREATED_AT_LEAST, 1 << number.bit_length())
    try:
        known = administration.topic(topic)
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
