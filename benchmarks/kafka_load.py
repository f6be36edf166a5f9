"""The input of the benchmark on Kafka: the records of the engine's benchmark, in topics of a broker."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.engine_load import CUSTOMERS, PAYMENTS, PURCHASES, Load, customers, payments, purchases
from headrace.topics.log import Output
from headrace.topics.partitioner import known_partitions

_WAIT = 30.0
_FULL = 50_000


def recreate(servers: str, topics: Sequence[str], partitions: int) -> None:
    """Makes topics anew, empty."""
    admin = AdminClient({"bootstrap.servers": servers})
    there = [topic for topic in topics if topic in admin.list_topics(timeout=_WAIT).topics]
    for done in admin.delete_topics(there, operation_timeout=_WAIT).values() if there else ():
        done.result()
    while any(topic in admin.list_topics(timeout=_WAIT).topics for topic in topics):
        time.sleep(0.05)
    for done in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
        done.result()


def send(producer: Producer, topic: str, records: Iterator[Output], partitions: int) -> int:
    """Sends records to the partitions that Kafka's own clients choose; returns how many."""
    partition_of = known_partitions(partitions)
    number = 0
    for _, time_ms, key, value, _ in records:
        producer.produce(topic, value, key, partition_of[key or b""], timestamp=time_ms)
        number += 1
        if number % 1_000 == 0:
            while len(producer) > _FULL:
                producer.poll(0.01)
    producer.flush()
    return number


def load_topics(servers: str, load: Load) -> dict[str, int]:
    """Fills the input topics; returns how many records each has."""
    recreate(servers, (CUSTOMERS, PURCHASES, PAYMENTS), load.partitions)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"})
    return {
        topic: send(producer, topic, records, load.partitions)
        for topic, records in (
            (CUSTOMERS, customers(load)),
            (PURCHASES, purchases(load)),
            (PAYMENTS, payments(load)),
        )
    }
