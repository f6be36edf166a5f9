"""Consumer groups on Kafka: their members, and their offsets with metadata."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headrace.topics.consumer_group import GroupMember, GroupOffset, cut_metadata
from headrace.topics.kafka.administration import Question, ask
from headrace.topics.kafka.client_errors import error_of
from headrace.topics.kafka.clients import Clients, client_logger
from headrace.topics.kafka.offset_metadata_commit import commit_with_metadata
from headrace.topics.log import TopicPartition

T = TypeVar("T")

_PAUSE_S = 0.05
_NOT_READY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)


def read_offsets(clients: Clients, group: str) -> dict[TopicPartition, GroupOffset]:
    """Returns what a group has committed, once no transaction is about to replace any of it.

    A consumer is asked, for all topics: the client for administration dies if a broker that has just come up answers.
    """
    with clients.translating_errors(f"reading the offsets of consumer group '{group}'"):
        consumer = Consumer(clients.settings.for_consumer(group), logger=client_logger)
        try:
            topics = consumer.list_topics(timeout=clients.patience_s).topics
            places = [
                KafkaTopicPartition(topic, partition)
                for topic, found in topics.items()
                if not topic.startswith("__")
                for partition in found.partitions
            ]
            committed = (
                _patiently(clients, lambda: _read_offsets(consumer, places, clients.patience_s)) if places else []
            )
        finally:
            consumer.close()
    return {
        (each.topic, each.partition): GroupOffset(each.offset, _metadata(each))
        for each in committed
        if each.offset >= 0
    }


def _read_offsets(consumer: Consumer, places: list[KafkaTopicPartition], timeout_s: float) -> list[KafkaTopicPartition]:
    found: list[KafkaTopicPartition] = consumer.committed(places, timeout=timeout_s)
    for each in found:
        if each.error is not None:
            raise KafkaException(each.error)
    return found


def _metadata(place: KafkaTopicPartition) -> str:
    """Returns the metadata of an offset. The client forgets to end it, so that it may be followed by anything."""
    try:
        return cut_metadata(place.metadata or "")
    except UnicodeDecodeError as error:
        return cut_metadata(error.object.decode("latin-1"))


def commit_offsets(clients: Clients, group: str, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
    """Commits offsets of a group that has no members."""
    if not offsets:
        return
    with clients.translating_errors(f"committing offsets of consumer group '{group}'"):
        if any(each.metadata for each in offsets.values()):
            commit_with_metadata(clients, group, offsets)
            return
        wanted = [
            ConsumerGroupTopicPartitions(
                group, [KafkaTopicPartition(*target, each.offset) for target, each in offsets.items()]
            )
        ]
        ask_patiently(
            clients,
            lambda admin, seconds: admin.alter_consumer_group_offsets(wanted, request_timeout=seconds)[group],
        )


def read_members(clients: Clients, group: str) -> list[GroupMember]:
    """Returns the members of a group, including those that left within the session timeout."""
    with clients.translating_errors(f"describing consumer group '{group}'"):
        try:
            found = ask_patiently(
                clients, lambda admin, seconds: admin.describe_consumer_groups([group], request_timeout=seconds)[group]
            )
        except KafkaException as exception:
            if error_of(exception).code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise
    return [GroupMember(each.client_id, each.host) for each in found.members]


# Any: the client's futures do not say what they bring.
def ask_patiently(clients: Clients, question: Question) -> Any:
    """Asks again and again for so long as the group's coordinator is not ready, as after the start of a broker."""
    return _patiently(clients, lambda: ask(clients, question))


def _patiently(clients: Clients, ask_once: Callable[[], T]) -> T:
    deadline = time.monotonic() + clients.patience_s
    while True:
        try:
            return ask_once()
        except KafkaException as exception:
            if error_of(exception).code() not in _NOT_READY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
