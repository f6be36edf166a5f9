"""The clients of a process: made when they are first needed, shared by all handles with the same settings."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from headrace.errors import RetriableError, StreamsError
from headrace.topics.kafka.explaining import ABSENT, error_of, explain, explaining, is_refusal
from headrace.topics.kafka.markers import Marker
from headrace.topics.kafka.settings import ClientSettings
from headrace.topics.log import TopicPartition

_MOST_READERS = 64
_MOST_SPARES = 8
_READER_GROUP = "headrace-reader"
_LOST = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})

client_logger = logging.getLogger("headrace.kafka")
"""Where librdkafka writes what it would otherwise print. It tells of every retry, so nobody has to listen."""
client_logger.addHandler(logging.NullHandler())
client_logger.propagate = False


@dataclass
class Reader:
    """A consumer of one partition, with what it has fetched and nobody has asked for yet."""

    consumer: Consumer
    position: int
    left: Sequence[Message] = ()
    topic_id: str = ""
    ended: int = -1
    """Where the partition was said to end: that is said once, and not again until there was more."""


@dataclass
class Writer:
    """A transactional producer of one task."""

    producer: Producer
    marker: Marker = field(default_factory=Marker)
    """What the task has committed last."""
    owner: object = None
    """The handle that it was made for. Another one may be of an application that was reset: its markers are gone."""
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
    _spares: dict[str, Writer] = field(default_factory=dict)
    _lost: bool = False
    has_answered: bool = False
    """Whether the cluster was ever there."""
    refusal: KafkaError | None = None
    """Why brokers do not let us in: calls only say that the time was over."""

    @property
    def servers(self) -> str:
        return self.settings.bootstrap_servers

    @property
    def admin(self) -> AdminClient:
        with self._lock, explaining("connecting", self.servers):
            if self._admin is not None:
                self._admin.poll(0)
            if self._lost:
                # Otherwise it would look for coordinators in vain: https://github.com/confluentinc/librdkafka/issues/5511
                self._lost, self._admin = False, None
                self._groups.clear()
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

    @contextmanager
    def telling(self, doing: str) -> Iterator[None]:
        """Turns exceptions of the client into ours; one that only says that nobody answered is told with its reason."""
        try:
            with explaining(doing, self.servers):
                yield
            self.has_answered, self.refusal = True, None
        except TimeoutError as error:
            # Of a future: the client has not even kept its own time limit.
            self.renew()
            message = f"Kafka's client did not come back while {doing}; it is made anew: try again"
            raise RetriableError(message) from error
        except RetriableError as error:
            cause = error.__cause__
            refusal = self.refusal if self.is_refused() else None
            if refusal is None or not isinstance(cause, KafkaException) or error_of(cause).code() not in ABSENT:
                raise
            raise explain(refusal, doing, self.servers) from cause

    @property
    def producer(self) -> Producer:
        """The one for records outside of transactions."""
        with self._lock, explaining("connecting", self.servers):
            if self._producer is None:
                settings = {**self.settings.for_producer(), "error_cb": self._note}
                self._producer = Producer(settings, logger=client_logger)
            return self._producer

    def group(self, name: str) -> Consumer:
        """Returns a consumer that stands for a group: it only asks for the group's offsets."""
        with self._lock, explaining("connecting", self.servers):
            if name not in self._groups:
                settings = self.settings.for_consumer(name) | {"isolation.level": "read_committed"}
                self._groups[name] = Consumer(settings, logger=client_logger)
            return self._groups[name]

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
                reader.consumer.seek(Place(*target, start))
                reader.position, reader.left = start, ()
        except KafkaException as exception:
            client_logger.debug("a reader of '%s' is made anew: %s", target[0], exception)
            stands = False
        if stands:
            return reader
        reader.consumer.close()
        return self.new_reader(target, topic_id, start)

    def new_reader(self, target: TopicPartition, topic_id: str, start: int) -> Reader:
        with self.telling(f"reading topic '{target[0]}'"):
            consumer = Consumer(
                {**self.settings.for_consumer(_READER_GROUP), "error_cb": self._note}, logger=client_logger
            )
            consumer.assign([Place(*target, start)])
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

    def new_writer(self, transactional_id: str) -> Writer:
        """Makes a transactional producer, which is not initialized yet."""

        def note(error: KafkaError) -> None:
            writer.lost = writer.lost or error.code() in _LOST
            self._note(error)

        settings = self.settings.for_producer(transactional_id)
        with explaining("connecting", self.servers):
            writer = Writer(Producer({**settings, "error_cb": note}, logger=client_logger))
        return writer

    def prepare_writer(self, transactional_id: str) -> None:
        """Makes a writer ahead of its use, for a task that has moved here and may come again: connecting takes long."""
        with self._lock:
            if transactional_id in self._spares or len(self._spares) >= _MOST_SPARES:
                return
        try:
            writer = self.new_writer(transactional_id)
        except StreamsError as error:
            # Who needs it makes it then, and is told why it cannot be made.
            client_logger.debug("no writer '%s' is made ahead: %s", transactional_id, error)
            return
        with self._lock:
            self._spares[transactional_id] = writer

    def spare_writer(self, transactional_id: str) -> Writer | None:
        """Returns a writer that was made ahead; it is not initialized yet."""
        with self._lock:
            writer = self._spares.pop(transactional_id, None)
        return writer if writer is not None and writer.is_usable else None

    def take_writer(self, transactional_id: str) -> Writer | None:
        with self._lock:
            return self._writers.pop(transactional_id, None)

    def forget_writers(self, prefix: str) -> None:
        with self._lock:
            for writers in (self._writers, self._spares):
                for name in [name for name in writers if name.startswith(prefix)]:
                    del writers[name]

    def keep_writer(self, transactional_id: str, writer: Writer) -> None:
        with self._lock:
            self._writers[transactional_id] = writer

    def close(self) -> None:
        with self._lock:
            consumers = [reader.consumer for reader in self._readers.values()] + list(self._groups.values())
            self._readers.clear()
            self._groups.clear()
            self._writers.clear()
            self._spares.clear()
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
