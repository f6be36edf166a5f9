"""What runs where: the programs of an application, their tasks, and the levels in which Spark runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from headrace.config import StreamsConfig
from headrace.runtime.task import TaskId
from headrace.spark.task_keys import spread_keys
from headrace.topics.log import TopicLog, TopicPartition
from headrace.topology.levels import forward_edges, levels
from headrace.topology.nodes import SourceNode
from headrace.topology.queryable import topics_of_others
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class Program:
    """A topology with its configuration and the partitions of the topics around it.

    An application usually is one program. Several can share a Spark query; then each has a ``prefix``, which is put
    before its tasks and its topics in the log, and which its own code never sees.
    """

    topology: Topology
    config: StreamsConfig
    partitions: Mapping[str, int]
    """By name of topic at run time, without the prefix: every topic that is read, and those that are written."""
    prefix: str = ""

    @classmethod
    def on(cls, log: TopicLog, topology: Topology, config: StreamsConfig, *, prefix: str = "") -> Program:
        """Returns the program with the partition counts that the topics have in a log."""
        counts = {name.removeprefix(prefix): n for name, n in log.partition_counts().items() if name.startswith(prefix)}
        # A pattern that matches everything does not mean the application's own topics.
        found = {name: counts[name] for name in topics_of_others(topology, config.application_id, counts)}
        counted = topology.partition_counts(found)
        internal = {topology.full_topic_name(topic, config.application_id): n for topic, n in counted.items()}
        return cls(topology, config, {**found, **internal}, prefix)

    def topic_name(self, topic: str) -> str:
        """Returns the name of a topic at run time: internal ones carry the application id."""
        return self.topology.full_topic_name(topic, self.config.application_id)

    def in_log(self, topic: str) -> str:
        """Returns the name in the log of a topic that has its name of run time."""
        return self.prefix + topic

    @cached_property
    def parts(self) -> tuple[Subtopology, ...]:
        """The sub-topologies that have tasks."""
        return tuple(part for part in self.topology.subtopologies() if not part.is_global)

    @cached_property
    def edges(self) -> Mapping[str, int]:
        """Topics whose records go from task to task within a batch, and the sub-topologies that read them."""
        forward = forward_edges(self.topology)
        return {
            self.topic_name(topic): part.id
            for part in self.parts
            for topic in part.repartition_topics
            if topic in forward
        }

    def sources(self, part: Subtopology) -> Iterator[tuple[SourceNode, str]]:
        """Returns the sources of a sub-topology with each topic they read, those that a pattern matches included."""
        for name in part.nodes:
            node = self.topology.nodes[name]
            if isinstance(node, SourceNode):
                matched = [topic for topic in self.partitions if self.topology.source_for(topic) == node]
                for topic in map(self.topic_name, node.topics) if node.topics else matched:
                    yield node, topic

    def task_count(self, part: Subtopology) -> int:
        """Returns how many tasks a sub-topology has: as many as its widest input has partitions."""
        return max((self.partitions[topic] for _, topic in self.sources(part)), default=0)


@dataclass(frozen=True)
class TaskPlace:
    """One task and where it is found."""

    program: str
    """Prefix of its program."""
    id: TaskId
    level: int
    key: str
    """The name by which Spark groups its rows."""
    inputs: tuple[tuple[str, str, int], ...]
    """Source node, topic and partition of everything it reads."""

    @property
    def name(self) -> str:
        """The task's name among all programs; also the name of its folder."""
        return f"{self.program}{self.id}"


@dataclass(frozen=True)
class Layout:
    """All tasks of an application in levels, and how Spark finds them."""

    programs: Mapping[str, Program]
    """By prefix."""
    spark_partitions: int
    tasks: tuple[TaskPlace, ...] = field(init=False)
    """By level, then in the order of programs, sub-topologies and partitions: outputs are published in this order."""

    def __post_init__(self) -> None:
        found = [
            (level, prefix, program, part, TaskId(part.id, partition))
            for prefix, program in self.programs.items()
            for level, step in enumerate(levels(program.topology))
            for part in program.parts
            if part.id in step.subtopologies
            for partition in range(program.task_count(part))
        ]
        found.sort(key=itemgetter(0))
        by_level: dict[int, list[str]] = {}
        for level, prefix, _, _, task in found:
            by_level.setdefault(level, []).append(f"{prefix}{task}")
        keys: dict[str, str] = {}
        for tasks in by_level.values():
            keys |= spread_keys(tasks, self.spark_partitions)
        places = tuple(
            TaskPlace(prefix, task, level, keys[f"{prefix}{task}"], _inputs(program, part, task))
            for level, prefix, program, part, task in found
        )
        object.__setattr__(self, "tasks", places)

    @cached_property
    def by_key(self) -> Mapping[str, TaskPlace]:
        return {place.key: place for place in self.tasks}

    @cached_property
    def _keys(self) -> Mapping[tuple[str, TaskId], str]:
        return {(place.program, place.id): place.key for place in self.tasks}

    def key_of(self, program: str, subtopology: int, partition: int) -> str:
        """Returns the key of a task."""
        return self._keys[program, TaskId(subtopology, partition)]

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return max((place.level for place in self.tasks), default=0) + 1

    def ranges(self, place: TaskPlace) -> Iterator[TopicPartition]:
        """Returns what a task reads from the log, by the names in the log; edges are not among it."""
        program = self.programs[place.program]
        for _, topic, partition in place.inputs:
            if topic not in program.edges:
                yield program.in_log(topic), partition


def _inputs(program: Program, part: Subtopology, task: TaskId) -> tuple[tuple[str, str, int], ...]:
    return tuple(
        (node.name, topic, task.partition)
        for node, topic in program.sources(part)
        if task.partition < program.partitions[topic]
    )
