"""The ceiling of the client: reads topics and writes each record to another one, in transactions, nothing between.

python -m benchmarks.kafka_loop SERVERS GROUP OUT TOPIC…
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

_INTERVAL = 0.1
_MESSAGES = 10_000


def _wait_for_end_of_input(stopping: threading.Event) -> None:
    sys.stdin.read()
    stopping.set()


def main() -> None:
    servers, group, out, *topics = sys.argv[1:]
    stopping = threading.Event()
    threading.Thread(target=_wait_for_end_of_input, args=(stopping,), daemon=True).start()
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 2,
            "queued.min.messages": 100_000,
        }
    )
    consumer.subscribe(topics)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": group,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions()
    produce = producer.produce
    while not stopping.is_set():
        until = time.monotonic() + _INTERVAL
        ends: dict[tuple[str, int], int] = {}
        while time.monotonic() < until:
            for message in consumer.consume(_MESSAGES, 0.02):
                if message.error():
                    raise SystemExit(str(message.error()))
                if not ends:
                    producer.begin_transaction()
                ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
                produce(out, message.value(), message.key(), timestamp=message.timestamp()[1])
            producer.poll(0)
        if ends:
            offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    main()
