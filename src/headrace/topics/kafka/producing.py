"""Records in the hands of the client that sends them, and what brokers say of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.topics.kafka.client_errors import error_of
from headrace.topics.log import Output, TopicPartition

_POLL_EVERY = 10_000
_FULL_S = 0.1
_REFRESH_S = 10.0
_OUTDATED_S = 15.0
_LEARN_S = 0.05
# What the client says of a topic or partition that was not there when it last looked.
_OUTDATED = (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)

Report = Callable[[KafkaError | None, Message], None]


class Delivery:
    """Offsets that records got, as the brokers reported them."""

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


def flush(producer: Producer, delivery: Delivery, patience_s: float) -> None:
    """Waits until everything is acknowledged."""
    try:
        left = producer.flush(patience_s)
    except SystemError:
        # A defect of the client, rarely seen: for a producer that was fenced just then it breaks off without a result.
        # Asked again it reports what became of the records.
        left = producer.flush(patience_s)
    if delivery.error is not None:
        raise KafkaException(delivery.error)
    if left:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def produce(
    producer: Producer, topic: str, partition: int, outputs: Sequence[Output], delivery: Delivery, *, every: bool
) -> None:
    """Gives records to the client. Unless ``every`` one is reported, the first and the last of them are."""
    if every or len(outputs) <= 2:
        produce_all(producer, topic, partition, outputs, delivery)
        return
    produce_all(producer, topic, partition, outputs[:1], delivery)
    for start in range(1, len(outputs) - 1, _POLL_EVERY):
        produce_all(producer, topic, partition, outputs[start : min(start + _POLL_EVERY, len(outputs) - 1)], None)
        producer.poll(0)
    produce_all(producer, topic, partition, outputs[-1:], delivery)


def produce_all(
    producer: Producer, topic: str, partition: int, outputs: Sequence[Output], report: Report | None
) -> None:
    """Gives records to the client; each of them is reported, or none."""
    # Arguments by their places: names cost a third more, and this is all that is done for a record.
    send, deadline = producer.produce, 0.0
    for output in outputs:
        _, timestamp_ms, key, value, headers = output
        while True:
            try:
                # The client takes time 0 for "now": the nearest time that it can write is a millisecond later.
                send(topic, value, key, partition, report, None, timestamp_ms or 1, list(headers) if headers else None)
                break
            except BufferError:
                producer.poll(_FULL_S)
            except KafkaException as exception:
                # It has an old view of a topic that was made anew or has got more partitions.
                deadline = deadline or time.monotonic() + _OUTDATED_S
                if error_of(exception).code() not in _OUTDATED or time.monotonic() > deadline:
                    raise
                producer.list_topics(topic, _REFRESH_S)
                # What was learnt takes effect in another thread.
                producer.poll(_LEARN_S)
