"""The clients of a process: made when they are first needed, shared by all handles with the same settings."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from headrace.topics.kafka.explaining import explaining
from headrace.topics.kafka.settings import ClientSettings
from headrace.topics.log import TopicPartition

_MOST_READERS = 64
_READER_GROUP = "headrace-reader"

client_logger = logging.getLogger("headrace.kafka")
"""Where librdkafka writes what it would otherwise print. It tells of every retry, so nobody has to listen."""
client_logger.addHandler(logging.NullHandler())


@dataclass
class Reader:
    """A consumer of one partition, with what it has fetched and nobody has asked for yet."""

    consumer: Consumer
    position: int
    left: Sequence[Message] = ()
    ended: int = -1
    """Where the partition was said to end: that is said once, and not again until there was more."""


@dataclass
class Writer:
    """A transactional producer of one task."""

    producer: Producer
    marker: int = -1
    """The batch that the task has committed last."""
    plan: str = ""
    lost: bool = False
    """Whether its broker has gone away since: librdkafka may hang in the next transaction, so it is thrown away."""

    @property
    def is_usable(self) -> bool:
        self.producer.poll(0)
        return not self.lost


@dataclass
class Clients:
    """What a process has open for one cluster. Clients do not survive a fork: the child makes its own."""

    settings: ClientSettings
    handles: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _admin: AdminClient | None = None
    _producer: Producer | None = None
    _groups: dict[str, Consumer] = field(default_factory=dict)
    _readers: OrderedDict[TopicPartition, Reader] = field(default_factory=OrderedDict)
    _writers: dict[str, Writer] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        return self.settings.bootstrap_servers

    @property
    def admin(self) -> AdminClient:
        with self._lock, explaining("connecting", self.servers):
            if self._admin is None:
                self._admin = AdminClient(self.settings.for_admin(), logger=client_logger)
            return self._admin

    @property
    def producer(self) -> Producer:
        """The one for records outside of transactions."""
        with self._lock, explaining("connecting", self.servers):
            if self._producer is None:
                self._producer = Producer(self.settings.for_producer(), logger=client_logger)
            return self._producer

    def group(self, name: str) -> Consumer:
        """Returns a consumer that stands for a group: it only asks for the group's offsets."""
        with self._lock, explaining("connecting", self.servers):
            if name not in self._groups:
                settings = self.settings.for_consumer(name) | {"isolation.level": "read_committed"}
                self._groups[name] = Consumer(settings, logger=client_logger)
            return self._groups[name]

    def take_reader(self, target: TopicPartition, start: int) -> Reader:
        """Returns a reader that stands at an offset. It belongs to the caller until it is given back."""
        with self._lock:
            reader = self._readers.pop(target, None)
        if reader is None:
            return self.new_reader(target, start)
        if reader.position != start:
            with explaining(f"reading topic '{target[0]}'", self.servers):
                reader.consumer.seek(Place(*target, start))
            reader.position, reader.left = start, ()
        return reader

    def new_reader(self, target: TopicPartition, start: int) -> Reader:
        with explaining(f"reading topic '{target[0]}'", self.servers):
            consumer = Consumer(self.settings.for_consumer(_READER_GROUP), logger=client_logger)
            consumer.assign([Place(*target, start)])
        return Reader(consumer, start)

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

    def new_writer(self, transactional_id: str) -> Writer:
        """Makes a transactional producer, which is not initialized yet."""

        def note(error: KafkaError) -> None:
            if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                writer.lost = True

        settings = self.settings.for_producer(transactional_id)
        with explaining("connecting", self.servers):
            writer = Writer(Producer({**settings, "error_cb": note}, logger=client_logger))
        return writer

    def take_writer(self, transactional_id: str) -> Writer | None:
        with self._lock:
            return self._writers.pop(transactional_id, None)

    def forget_writers(self, prefix: str) -> None:
        with self._lock:
            for name in [name for name in self._writers if name.startswith(prefix)]:
                del self._writers[name]

    def keep_writer(self, transactional_id: str, writer: Writer) -> None:
        with self._lock:
            self._writers[transactional_id] = writer

    def close(self) -> None:
        with self._lock:
            consumers = [reader.consumer for reader in self._readers.values()] + list(self._groups.values())
            self._readers.clear()
            self._groups.clear()
            self._writers.clear()
            self._admin = self._producer = None
        for consumer in consumers:
            consumer.close()


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
