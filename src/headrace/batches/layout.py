"""The tasks of an application: in which level each runs, and what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from headrace.batches.working_copy import WorkingCopy
from headrace.config import StreamsConfig
from headrace.runtime.task import TaskId
from headrace.state.engines.environment import Kind, store_kind
from headrace.topics.log import ReadableLog, TopicPartition
from headrace.topology.levels import forward_edges, levels
from headrace.topology.nodes import SourceNode
from headrace.topology.queryable_stores import logged_stores, topics_of_others
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class TaskPlace:
    """One task: its level, its inputs, and the changelogs that only it writes."""

    id: TaskId
    level: int
    inputs: tuple[tuple[str, str, int], ...]
    """Source node, topic and partition of everything it reads."""
    changelogs: Mapping[str, str]
    """Stores that are restored from a topic, and the topic: of its own, or the one that a table is read from."""

    @cached_property
    def name(self) -> str:
        """The task's name; also the name of its folder."""
        return str(self.id)


@dataclass(frozen=True)
class Layout:
    """A topology with its configuration and the partitions of the topics around it: all tasks of an application."""

    topology: Topology
    config: StreamsConfig
    partitions: Mapping[str, int]
    """By name of topic at run time: every topic that is read, and those that are written."""

    @classmethod
    def on(cls, log: ReadableLog, topology: Topology, config: StreamsConfig) -> Self:
        """Returns the layout with the partition counts that the topics have in a log."""
        counts = log.partition_counts()
        # A pattern that matches everything does not mean the application's own topics.
        found = {name: counts[name] for name in topics_of_others(topology, config.application_id, counts)}
        counted = topology.partition_counts(found)
        internal = {topology.full_topic_name(topic, config.application_id): n for topic, n in counted.items()}
        return cls(topology, config, {**found, **internal})

    def topic_name(self, topic: str) -> str:
        """Returns the name of a topic at run time: internal ones carry the application id."""
        return self.topology.full_topic_name(topic, self.config.application_id)

    @cached_property
    def parts(self) -> Mapping[int, Subtopology]:
        """The sub-topologies that have tasks, by id."""
        return {part.id: part for part in self.topology.subtopologies() if not part.is_global}

    @cached_property
    def edges(self) -> Mapping[str, int]:
        """Topics whose records go from task to task within a batch, and the sub-topologies that read them."""
        forward = forward_edges(self.topology)
        return {
            self.topic_name(topic): part.id
            for part in self.parts.values()
            for topic in part.repartition_topics
            if topic in forward
        }

    @cached_property
    def changelogs(self) -> Mapping[str, str]:
        """Stores with a changelog topic of their own, and the topic."""
        return logged_stores(self.topology, self.config.application_id)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """In which engine each store is kept."""
        builders = self.topology.store_builders
        return {store: store_kind(builders[store], self.config) for store in self.topology.state_stores}

    def copy_of(self, place: TaskPlace, directory: Path) -> WorkingCopy:
        """Opens the working copy of a task below a directory."""
        kinds = {store: self.kinds[store] for store in place.changelogs}
        suppliers = {store: self.topology.store_builders[store].supplier for store in kinds}
        joins = [store for store, each in suppliers.items() if getattr(each, "retain_duplicates", False)]
        return WorkingCopy(directory / place.name, kinds, self.config, joins=joins)

    @cached_property
    def tasks(self) -> tuple[TaskPlace, ...]:
        """By level, then by sub-topology and partition: outputs are published in this order."""
        topics = self.topology.changelog_topics(self.config.application_id)
        return tuple(
            TaskPlace(
                TaskId(part.id, partition),
                level,
                self._inputs(part, partition),
                {store: topics[store] for store in part.state_stores if store in topics},
            )
            for level, step in enumerate(levels(self.topology))
            for part in self.parts.values()
            if part.id in step.subtopologies
            for partition in range(self.task_count(part))
        )

    @cached_property
    def by_name(self) -> Mapping[str, TaskPlace]:
        return {place.name: place for place in self.tasks}

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return max((place.level for place in self.tasks), default=0) + 1

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

    def log_inputs(self, place: TaskPlace) -> Iterator[TopicPartition]:
        """Returns the partitions of the log that a task reads; edges are not among them."""
        for _, topic, partition in place.inputs:
            if topic not in self.edges:
                yield topic, partition

    def own_changelogs(self, place: TaskPlace) -> list[TopicPartition]:
        """Returns the partitions of changelogs that only this task writes."""
        return [(topic, place.id.partition) for store, topic in place.changelogs.items() if store in self.changelogs]

    def global_partitions(self) -> list[TopicPartition]:
        """Returns what global tables are read from."""
        return [
            (store.topic, partition)
            for store in self.topology.global_stores.values()
            for partition in range(self.partitions[store.topic])
        ]

    def _inputs(self, part: Subtopology, partition: int) -> tuple[tuple[str, str, int], ...]:
        return tuple(
            (node.name, topic, partition) for node, topic in self.sources(part) if partition < self.partitions[topic]
        )
