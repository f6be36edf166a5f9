"""A program with the script of its inputs, and what it has answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.app.topics import internal_topics
from headrace.config import StreamsConfig
from headrace.topics.log import Output, Raw, TopicLog, TopicPartition
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class Step:
    """One step of a script before a micro-batch: records arrive, or time passes."""

    records: Sequence[tuple[str, Sequence[Output]]] = ()
    """By topic."""
    advance_ms: int = 0


def nothing(_step: int) -> None:
    """What most do after a step."""


@dataclass
class Hosted:
    """One program among many. A step is over when no topic that the program reads has anything unread."""

    name: str
    """Tells it from the others; the program itself never sees it."""
    topology: Topology
    config: StreamsConfig
    partitions: Mapping[str, int]
    """Of every topic it reads or writes, internal ones left out."""
    watched: Sequence[str]
    """Topics whose records are the answer."""
    steps: Sequence[Step]
    after_step: Callable[[int], None] = nothing
    answers: list[dict[TopicPartition, list[Raw]]] = field(default_factory=list)
    """For each step, what was written to the watched topics."""
    counters: dict[str, float] = field(default_factory=dict)
    now_ms: int = 0
    failure: BaseException | None = None
    """What ended it before its script was through."""

    def make_topics(self, log: TopicLog) -> None:
        """Creates all topics, internal ones included."""
        for topic, count in self.partitions.items():
            log.create_topic(topic, partitions=count)
        for wanted in internal_topics(self.topology, self.config, self.partitions):
            log.create_topic(wanted.name, partitions=wanted.partitions, configs=wanted.configs)

    @property
    def answered(self) -> Sequence[TopicPartition]:
        """The watched partitions."""
        return [(topic, each) for topic in self.watched for each in range(self.partitions[topic])]
