"""Progress of queries in their topics, as the log knows it: the same for every host."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.sql.hosting.host import QueryHost, QueryState
from headrace.topics.log import TopicLog


@dataclass(frozen=True)
class PartitionProgress:
    """Progress of an application in a partition."""

    partition: int
    begin: int
    end: int
    position: int | None
    """The offset of the record that it reads next; None before its first micro-batch."""


def topic_progress(log: TopicLog, application: str, topics: Iterable[str]) -> dict[str, list[PartitionProgress]]:
    """Returns how far an application has come in each partition of the topics."""
    counts = log.partition_counts()
    targets = {topic: [(topic, each) for each in range(counts.get(topic, 0))] for topic in dict.fromkeys(topics)}
    every = [target for several in targets.values() for target in several]
    begins, ends, positions = log.begin_offsets(every), log.end_offsets(every), log.positions(application)
    return {
        topic: [PartitionProgress(target[1], begins[target], ends[target], positions.get(target)) for target in several]
        for topic, several in targets.items()
    }


def unread(log: TopicLog, application: str, topics: Iterable[str]) -> int | None:
    """Returns how many records of the topics an application has still to read; None before its first micro-batch."""
    counts = log.partition_counts()
    targets = [(topic, partition) for topic in dict.fromkeys(topics) for partition in range(counts.get(topic, 0))]
    ends = log.end_offsets(targets)
    positions = log.positions(application)
    if any(target not in positions for target in targets):
        return None
    return sum(max(0, ends[target] - positions[target]) for target in targets)


def wait_until_read(log: TopicLog, applications: Mapping[str, Iterable[str]], timeout: timedelta) -> bool:
    """Waits until every application has read its topics to their ends; False when the time is over.

    What one of them writes may be what another one reads, so all have to be at rest at one moment.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    while any(unread(log, application, topics) != 0 for application, topics in applications.items()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def wait_until_started(host: QueryHost, queries: Iterable[str], timeout: timedelta) -> bool:
    """Waits until no query is starting any more; False when the time is over."""
    deadline = time.monotonic() + timeout.total_seconds()
    waiting = list(queries)
    while waiting := [each for each in waiting if host.status(each).state is QueryState.STARTING]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
