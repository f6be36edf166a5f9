"""Append in one transaction: readers of committed records see all of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from zlib import crc32

from confluent_kafka import KafkaException

from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.producing import Delivery, flush, produce
from headrace.topics.kafka.transactional_producers import fencing_producer
from headrace.topics.log import Output, Topic, Written
from headrace.topics.record_partitioning import Sticky, spread

_TIMEOUT_MS = 900_000
"""The brokers' default maximum: rows are still being made while the transaction is open."""


def append_in_transaction(
    clients: Clients,
    find_topic: Callable[[str], Topic],
    topic: str,
    records: Iterable[Sequence[Output]],
    transactional_id: str,
) -> Written:
    """Writes records in one transaction; another producer of the same id is fenced, and what it has open is over."""
    delivery, sticky = Delivery(), Sticky(crc32(transactional_id.encode()))
    with clients.translating_errors(f"writing to topic '{topic}'"):
        producer = fencing_producer(clients, transactional_id, topic, {"transaction.timeout.ms": _TIMEOUT_MS})
        producer.begin_transaction()
        try:
            for outputs in records:
                for partition, part in spread(find_topic(topic), outputs, sticky):
                    produce(producer, topic, partition, part, delivery, every=False)
            flush(producer, delivery, clients.patience_s)
            producer.commit_transaction(clients.patience_s)
        except BaseException:
            # If it does not succeed either, the brokers end the transaction when its time is over.
            with suppress(KafkaException):
                producer.abort_transaction(clients.patience_s)
            raise
    return {partition: bounds for (_, partition), bounds in sorted(delivery.bounds.items())}
