"""Writing records: giving them to the client, and appending them until they are acknowledged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.explaining import error_of
from headrace.topics.log import Output, Topic, TopicPartition, Written
from headrace.topics.spread import Sticky, spread

_POLL_EVERY = 1000
_FLUSH_S = 60.0
_REFRESH_S = 10.0
_REFRESHES = 20
_LEARN_S = 0.05
# What the client says of a topic or partition that was not there when it last looked.
_OUTDATED = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)

FindTopic = Callable[[str], Topic]


class Delivery:
    """Which offsets records got, told by the brokers."""

    def __init__(self) -> None:
        self.bounds: dict[TopicPartition, tuple[int, int]] = {}
        self.error: KafkaError | None = None
        self.failed_topic = ""

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            if self.error is None:
                self.error, self.failed_topic = error, message.topic() or ""
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None, "it was delivered"
        assert partition is not None, "it was delivered"
        assert offset is not None, "it was delivered"
        first, end = self.bounds.get((topic, partition), (offset, offset + 1))
        self.bounds[topic, partition] = (min(first, offset), max(end, offset + 1))


class Appender:
    """Writes records outside of transactions. Records without a key go on where the last ones were put."""

    def __init__(self, clients: Clients, topic: FindTopic) -> None:
        self._clients = clients
        self._topic = topic
        self._sticky: dict[str, Sticky] = {}

    def append(self, topic: str, records: Iterable[Output]) -> Written:
        outputs = records if isinstance(records, Sequence) else list(records)
        sticky = self._sticky.setdefault(topic, Sticky(random.randrange(1 << 16)))
        # All of them are looked at before the first one is sent.
        parts = list(spread(self._topic(topic), outputs, sticky))
        delivery, producer = Delivery(), self._clients.producer
        with self._clients.telling(f"writing to topic '{topic}'"):
            for partition, part in parts:
                produce(producer, topic, partition, part, delivery, every=True)
            flush(producer, delivery)
        return {partition: bounds for (_, partition), bounds in sorted(delivery.bounds.items())}


def flush(producer: Producer, delivery: Delivery) -> None:
    """Waits until everything is acknowledged."""
    left = producer.flush(_FLUSH_S)
    if delivery.error is not None:
        raise KafkaException(delivery.error)
    if left:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def produce(
    producer: Producer, topic: str, partition: int, outputs: Sequence[Output], delivery: Delivery, *, every: bool
) -> None:
    """Gives records to the client. Unless ``every`` one is reported, the first and the last of them are."""
    last, refreshed = len(outputs) - 1, 0
    for place, (_, timestamp_ms, key, value, headers) in enumerate(outputs):
        reported = every or place in (0, last)
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=delivery if reported else None,
                    # The client takes 0 for "now": the nearest time that it can write is a millisecond later.
                    timestamp=timestamp_ms or 1,
                    headers=list(headers) if headers else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
            except KafkaException as exception:
                # It has an old view of a topic that was made anew or has got more partitions.
                if error_of(exception).code() not in _OUTDATED or refreshed > _REFRESHES:
                    raise
                refreshed += 1
                producer.list_topics(topic, _REFRESH_S)
                # What was learnt takes effect in another thread.
                producer.poll(_LEARN_S)
        if place % _POLL_EVERY == 0:
            producer.poll(0)
