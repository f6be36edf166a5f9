"""The clients of a process: made when they are first needed, shared by all handles with the same settings."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from headrace.errors import RetriableError
from headrace.topics.kafka.acknowledged_append import AcknowledgedProducer
from headrace.topics.kafka.client_errors import (
    ABSENT,
    error_of,
    exception_of,
    explain,
    explaining,
    is_refusal,
)
from headrace.topics.kafka.history import KnownHistory
from headrace.topics.kafka.settings import ClientSettings
from headrace.topics.log import TopicPartition

_MOST_READERS = 64
_READER_GROUP = "headrace-reader"
_LOST = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})

client_logger = logging.getLogger("headrace.kafka")
"""Logger of librdkafka, which would print otherwise. It logs every retry, so it is off by default."""
client_logger.addHandler(logging.NullHandler())
client_logger.propagate = False


@dataclass
class Reader:
    """A consumer of one partition, with records that it has fetched in advance."""

    consumer: Consumer
    position: int
    left: Sequence[Message] = ()
    topic_id: str = ""
    ended: int = -1
    """Where the partition was said to end: that is said once, and not again until there was more."""


@dataclass
class Clients:
    """Open clients of a process for one cluster. They do not survive a fork: the child makes its own."""

    settings: ClientSettings
    handles: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _admin: AdminClient | None = None
    _producer: Producer | None = None
    _acknowledged: AcknowledgedProducer | None = None
    _readers: OrderedDict[TopicPartition, Reader] = field(default_factory=OrderedDict)
    _lost: bool = False
    histories: dict[str, KnownHistory] = field(default_factory=dict)
    """Cached histories of applications."""
    committed_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """Up to where this process knows partitions to be committed, although brokers may not show it yet."""
    has_answered: bool = False
    """Whether the cluster was ever there."""
    refusal: KafkaError | None = None
    """Why brokers do not let us in: calls only say that the time was over."""

    @property
    def servers(self) -> str:
        return self.settings.bootstrap_servers

    @property
    def patience_s(self) -> float:
        """How long a cluster may be away that has answered before: its brokers may be restarted."""
        return self.settings.task_timeout_s

    @property
    def admin(self) -> AdminClient:
        with self._lock, explaining("connecting", self.servers):
            if self._admin is not None:
                self._admin.poll(0)
            if self._lost:
                # Otherwise it would look for coordinators in vain: https://github.com/confluentinc/librdkafka/issues/5511
                self._lost, self._admin = False, None
            if self._admin is None:
                settings = {**self.settings.for_admin(), "error_cb": self._note}
                self._admin = AdminClient(settings, logger=client_logger)
            return self._admin

    def renew(self) -> None:
        """Lets the next call make a new client for administration, because this one does not find its brokers."""
        self._lost = True

    def _note(self, error: KafkaError) -> None:
        if is_refusal(error):
            self.refusal = error
        if error.code() in _LOST:
            self._lost = True

    def is_refused(self) -> bool:
        """Whether brokers were there and have not let us in."""
        if self._admin is not None:
            # What it has to say comes only if it is asked.
            self._admin.poll(0)
        return self.refusal is not None

    def translating_errors(self, doing: str) -> _ErrorTranslation:
        """Turns exceptions of the client into ours; a time-out gets the reason that brokers gave for a refusal."""
        return _ErrorTranslation(self, doing)

    @property
    def producer(self) -> Producer:
        """The one for records outside of transactions."""
        with self._lock, explaining("connecting", self.servers):
            if self._producer is None:
                settings = {**self.settings.for_producer(), "error_cb": self._note}
                self._producer = Producer(settings, logger=client_logger)
            return self._producer

    def connect_acknowledged(self) -> AcknowledgedProducer:
        """Returns the producer for the records of drivers; it takes a while to connect, from the first call on."""
        with self._lock:
            if self._acknowledged is None:
                timeout_ms = max(1, int(self.patience_s * 1000))
                producer = self.new_producer(settings={"linger.ms": 0, "message.timeout.ms": timeout_ms})
                self._acknowledged = AcknowledgedProducer(producer)
            return self._acknowledged

    def append_acknowledged(self, topic: str, key: bytes, value: bytes) -> int:
        """Writes a record of a driver; returns its offset once it is acknowledged."""
        with self._lock:
            producer = self.connect_acknowledged()
            producer.users += 1
        try:
            return producer.append(topic, key, value, self.patience_s)
        finally:
            with self._lock:
                producer.users -= 1

    def drop_acknowledged(self) -> None:
        """Has the next record of a driver sent by a new producer, because this one has failed."""
        with self._lock:
            former, self._acknowledged = self._acknowledged, None
        if former is not None:
            former.close()

    def take_reader(self, target: TopicPartition, topic_id: str, start: int) -> Reader:
        """Returns a reader that stands at an offset. It belongs to the caller until it is given back."""
        with self._lock:
            reader = self._readers.pop(target, None)
        if reader is None:
            return self.new_reader(target, topic_id, start)
        try:
            # What it has fetched of a topic that was made anew since is not what is asked for.
            stands = reader.topic_id == topic_id
            if stands and reader.position != start:
                reader.consumer.seek(KafkaTopicPartition(*target, start))
                reader.position, reader.left = start, ()
        except KafkaException as exception:
            client_logger.debug("a reader of '%s' is made anew: %s", target[0], exception)
            stands = False
        if stands:
            return reader
        reader.consumer.close()
        return self.new_reader(target, topic_id, start)

    def new_reader(self, target: TopicPartition, topic_id: str, start: int) -> Reader:
        with self.translating_errors(f"reading topic '{target[0]}'"):
            consumer = Consumer(
                {**self.settings.for_consumer(_READER_GROUP), "error_cb": self._note}, logger=client_logger
            )
            consumer.assign([KafkaTopicPartition(*target, start)])
        return Reader(consumer, start, topic_id=topic_id)

    def give_back(self, target: TopicPartition, reader: Reader) -> None:
        with self._lock:
            former = self._readers.pop(target, None)
            self._readers[target] = reader
            oldest = self._readers.popitem(last=False)[1] if len(self._readers) > _MOST_READERS else None
        for each in (former, oldest):
            if each is not None:
                each.consumer.close()

    def forget_topic(self, name: str) -> None:
        """Closes readers of a topic that is deleted."""
        with self._lock:
            readers = [self._readers.pop(target) for target in list(self._readers) if target[0] == name]
        for reader in readers:
            reader.consumer.close()

    def new_producer(
        self, transactional_id: str | None = None, settings: Mapping[str, object] | None = None
    ) -> Producer:
        """Makes a producer for one owner: a task, by its transactional id, or a driver."""
        own = {**self.settings.for_producer(transactional_id), **(settings or {}), "error_cb": self._note}
        with explaining("connecting", self.servers):
            return Producer(own, logger=client_logger)

    def close(self) -> None:
        with self._lock:
            consumers = [reader.consumer for reader in self._readers.values()]
            self._readers.clear()
            self._admin = self._producer = None
        self.drop_acknowledged()
        for consumer in consumers:
            consumer.close()


class _ErrorTranslation:
    """A context manager; as a generator it would be paid with every request."""

    __slots__ = ("_clients", "_doing")

    def __init__(self, clients: Clients, doing: str) -> None:
        self._clients, self._doing = clients, doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        clients, doing = self._clients, self._doing
        if error is None:
            clients.has_answered, clients.refusal = True, None
            return
        if isinstance(error, TimeoutError):
            # Of a future: the client has not even kept its own time limit.
            clients.renew()
            message = f"Kafka's client exceeded its own time limit while {doing}; it was replaced: try again"
            raise RetriableError(message) from error
        exception = exception_of(error)
        told = error if exception is None else explain(error_of(exception), doing, clients.servers)
        if isinstance(told, RetriableError):
            cause = error.__cause__ if exception is None else exception
            refusal = clients.refusal if clients.is_refused() else None
            if refusal is not None and isinstance(cause, KafkaException) and error_of(cause).code() in ABSENT:
                raise explain(refusal, doing, clients.servers) from cause
        if exception is not None:
            raise told from exception


_lock = threading.Lock()
_open: dict[tuple[int, str], Clients] = {}


def open_clients(settings: ClientSettings) -> Clients:
    """Returns the clients of this process for some settings; give them back with ``close_clients``."""
    with _lock:
        clients = _open.setdefault((os.getpid(), settings.identity), Clients(settings))
        clients.handles += 1
        return clients


def close_clients(clients: Clients) -> None:
    """Gives a handle back; the last one closes the clients."""
    with _lock:
        clients.handles -= 1
        if clients.handles > 0:
            return
        _open.pop((os.getpid(), clients.settings.identity), None)
    clients.close()
