"""Topic directory: the part of a log that statements need, and one in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class NewTopic:
    """Request of a statement for a topic that is to be created."""

    partitions: int
    replicas: int | None = None
    """None leaves it to the log."""
    configs: Mapping[str, str] = field(default_factory=dict)


class TopicDirectory(Protocol):
    """The topics of a log, as far as statements ask for them."""

    def partitions(self, topic: str) -> int | None:
        """Returns how many partitions the topic has; None if it does not exist."""
        ...

    def create(self, topic: str, wanted: NewTopic) -> None:
        """Makes the topic, which does not exist."""
        ...

    def delete(self, topic: str) -> None:
        """Deletes the topic, if it exists."""
        ...


@dataclass
class KnownTopics:
    """Topics in memory, for tests and for trying statements out.

    ``default_partitions`` makes every topic exist that is asked for, with so many partitions.
    """

    topics: dict[str, int] = field(default_factory=dict)
    default_partitions: int | None = None

    def partitions(self, topic: str) -> int | None:
        if topic not in self.topics and self.default_partitions is not None:
            self.topics[topic] = self.default_partitions
        return self.topics.get(topic)

    def create(self, topic: str, wanted: NewTopic) -> None:
        self.topics[topic] = wanted.partitions

    def delete(self, topic: str) -> None:
        self.topics.pop(topic, None)
