"""Short forms for tests of journals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from headrace.topics.journal import DurableLog, EdgeBlob, Journal, Receipt, TaskRecord
from headrace.topics.log import Committed, Offsets, Output, TopicPartition
from tests.topics.kit import everything, keyed, record

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from headrace.topics.kafka import KafkaLog


def task_record(
    batch_id: int,
    *,
    positions: Mapping[TopicPartition, int] | None = None,
    next_clock_ms: int | None = None,
    memory: bytes = b"",
) -> TaskRecord:
    rows = [(*target, at) for target, at in (positions or {}).items()]
    return TaskRecord(batch_id, uuid4().hex, rows, next_clock_ms, memory)


def outputs(*values: str) -> list[Output]:
    return [record("k", value) for value in values]


def values(log: DurableLog, topic: str, partition: int = 0) -> list[str | None]:
    return [value for _, _, value in keyed(everything(log, topic, partition))]


def run_task(
    log: DurableLog,
    journal: Journal,
    task: str,
    record: TaskRecord,
    written: Mapping[str, Sequence[Output]] | None = None,
    edges: Sequence[EdgeBlob] = (),
    *,
    application: str = "app",
) -> Receipt:
    """Opens a task's part, as a new process does, and commits what the task has done."""
    part = log.task_journal(application, journal.incarnation, task, [])
    part.open()
    receipt = part.commit(record, list((written or {}).items()), edges)
    part.close()
    return receipt


def run_batch(
    log: DurableLog,
    journal: Journal,
    batch_id: int,
    written: Mapping[str, Sequence[Output]] | None = None,
    *,
    tasks: Sequence[str] = ("0_0",),
    positions: Mapping[TopicPartition, int] | None = None,
    application: str = "app",
) -> Committed:
    """Runs a batch in which each task writes the same, and has consumed the same."""
    journal.begin(batch_id, b"plan")
    receipts = [
        run_task(log, journal, task, task_record(batch_id, positions=positions), written, application=application)
        for task in tasks
    ]
    return journal.commit(batch_id, receipts)


def open_transaction(log: KafkaLog, task: str, topic: str, records: Sequence[Output]) -> Producer:
    """Writes records in a transaction of a task, and leaves it open, as a process does that is killed."""
    # Imported here: only those who ask for it have its client.
    from headrace.topics.kafka.producing import Delivery, flush, produce
    from headrace.topics.kafka.transactional_producers import init_producer

    producer, delivery = init_producer(log._clients, "app", task), Delivery()
    producer.begin_transaction()
    produce(producer, topic, records[0][0] or 0, records, delivery, every=True)
    flush(producer, delivery, 10)
    return producer


def group_offsets(log: KafkaLog, group: str, targets: Iterable[TopicPartition]) -> Offsets:
    """Returns what a consumer group has committed."""
    # Imported here: only those who ask for it have its client.
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as KafkaTopicPartition

    consumer = Consumer({"bootstrap.servers": log.bootstrap_servers, "group.id": group})
    found = consumer.committed([KafkaTopicPartition(*target) for target in targets], 10)
    consumer.close()
    return {(place.topic, place.partition): place.offset for place in found}
