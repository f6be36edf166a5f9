"""Appends outside of transactions, until they are acknowledged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from headrace.topics.kafka.clients import Clients
from headrace.topics.kafka.producing import Delivery, flush, produce
from headrace.topics.log import Output, Topic, Written
from headrace.topics.record_partitioning import Sticky, spread

FindTopic = Callable[[str], Topic]


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
        with self._clients.translating_errors(f"writing to topic '{topic}'"):
            for partition, part in parts:
                produce(producer, topic, partition, part, delivery, every=True)
            flush(producer, delivery, self._clients.patience_s)
        return {partition: bounds for (_, partition), bounds in sorted(delivery.bounds.items())}
