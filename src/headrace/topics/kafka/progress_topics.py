"""Topics that hold the progress of applications: their names, their settings, and how they come to be.

``<application>-headrace-batches`` has one partition, which the driver writes, as has ``<application>-headrace-
application``, with the description of the application. ``<application>-headrace-<n>-tasks`` has a partition for each
task of sub-topology ``n``, which that task alone writes. Nothing in them is ever forgotten by a
broker's clock; what nobody needs any more is cut off at the front with DeleteRecords. Brokers refuse that for topics
that are only compacted (POLICY_VIOLATION), and take it for ``delete`` and for ``compact,delete``: tried with 4.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from headrace.errors import LogError, TopicError, TopicExistsError, UnknownTopicError, describe_value
from headrace.topics.kafka.administration import Administration
from headrace.topics.log import TopicPartition

_OWN = re.compile(r"(.+)-headrace-(application|batches|\d+-tasks)")
_FIRST_PARTITIONS = 8
"""Partitions that a topic of tasks gets at first; one that is not used costs nothing."""
# Disk space is given back by whole segments, so they are small, as those of Kafka Streams' repartition topics.
_CONFIGS: Mapping[str, object] = {
    "cleanup.policy": "delete",
    "retention.ms": -1,
    "retention.bytes": -1,
    "segment.bytes": 50 << 20,
}


def is_progress(topic: str) -> bool:
    """Tells whether a topic holds the progress of an application, of whichever.

    >>> is_progress("orders-headrace-batches"), is_progress("orders-headrace-1-tasks"), is_progress("headrace-tasks")
    (True, True, False)
    """
    return _OWN.fullmatch(topic) is not None


def batches_topic(application: str) -> str:
    """Returns where the driver records its batches.

    >>> batches_topic("orders")
    'orders-headrace-batches'
    """
    return f"{application}-headrace-batches"


def description_topic(application: str) -> str:
    """Returns where the description of an application is.

    >>> description_topic("orders")
    'orders-headrace-application'
    """
    return f"{application}-headrace-application"


def application_of(topic: str) -> str | None:
    """Returns the application whose batches a topic holds.

    >>> application_of("orders-headrace-batches"), application_of("orders")
    ('orders', None)
    """
    return topic.removesuffix("-headrace-batches") if topic.endswith("-headrace-batches") else None


def task_place(application: str, task: str) -> TopicPartition:
    """Returns the partition that belongs to a task.

    >>> task_place("orders", "1_3")
    ('orders-headrace-1-tasks', 3)
    """
    group, _, number = task.rpartition("_")
    if not (group.isdecimal() and number.isdecimal()):
        message = f"a task's name is <sub-topology>_<partition>, such as '0_3'; found {describe_value(task)}"
        raise TopicError(message)
    return f"{application}-headrace-{group}-tasks", int(number)


def progress_topics(application: str, topics: Iterable[str]) -> list[str]:
    """Returns those of some topics that hold the progress of an application.

    >>> progress_topics("a", ["a-headrace-batches", "a-headrace-0-tasks", "a-headrace-b-headrace-batches", "a-x"])
    ['a-headrace-batches', 'a-headrace-0-tasks']
    """
    return [topic for topic in topics if (found := _OWN.fullmatch(topic)) is not None and found[1] == application]


def ensure_topics(administration: Administration, application: str, places: Iterable[TopicPartition]) -> None:
    """Makes the topic of an application's batches, and those of its tasks, unless they are there."""
    wanted = {batches_topic(application): 1}
    for topic, partition in places:
        wanted[topic] = max(wanted.get(topic, 0), partition + 1)
    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(lambda each: _ensure(administration, *each), wanted.items()))


def ensure_place(administration: Administration, place: TopicPartition) -> None:
    """Makes the partition of a task unless it is there."""
    _ensure(administration, place[0], place[1] + 1)


def _ensure(administration: Administration, topic: str, least: int) -> None:
    is_of_tasks = topic.endswith("-tasks")
    wanted = max(_FIRST_PARTITIONS, 1 << (least - 1).bit_length()) if is_of_tasks else 1
    try:
        known = administration.topic(topic)
    except UnknownTopicError:
        try:
            known = administration.create(topic, wanted, _CONFIGS)
        except TopicExistsError:
            # Another process was faster.
            known = administration.describe(topic)
    if known.partitions < least:
        try:
            administration.grow(topic, wanted)
        except LogError:
            if administration.describe(topic).partitions < least:
                raise
