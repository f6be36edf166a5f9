"""View of a log with the former partitions of inputs that have grown, for an application with its former layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from headrace.topics.journal import DurableLog
from headrace.topics.log import Topic


class _FormerPartitions:
    def __init__(self, log: DurableLog, counts: Mapping[str, int]) -> None:
        self._log = log
        self._former = counts

    # Any: everything else is the log's own.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def partition_counts(self) -> dict[str, int]:
        return {topic: self._former.get(topic, count) for topic, count in self._log.partition_counts().items()}

    def partitions_of(self, topic: str) -> int:
        return self._former.get(topic) or self._log.partitions_of(topic)

    def describe_topic(self, name: str) -> Topic:
        found = self._log.describe_topic(name)
        return replace(found, partitions=self._former.get(name, found.partitions))


def with_former_partitions(log: DurableLog, counts: Mapping[str, int]) -> DurableLog:
    """Returns the log with only so many partitions of these topics; it works in this process alone."""
    return cast("DurableLog", _FormerPartitions(log, counts))
