"""A topology as data, and everything that follows from it: what the task, the planner and ``describe()`` ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, Self

from headrace.arguments.hints import Hinting
from headrace.arguments.values import text
from headrace.state import StoreBuilder
from headrace.topology.describe import TopologyDescription, describe
from headrace.topology.nodes import (
    GlobalStore,
    ImplicitNames,
    InternalTopic,
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
)
from headrace.topology.partitions import Group, PartitionCounts, merge_groups
from headrace.topology.subtopologies import Subtopology, registration_order, split


class Graph(Hinting):
    """Nodes, stores and internal topics by name, in the order in which they were added.

    Values are frozen and a change replaces them, so a copy shares everything and costs a few dictionaries.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, tuple[str, ...]] = {}
        self._stores: dict[str, StoreBuilder] = {}
        self._global_stores: dict[str, GlobalStore] = {}
        self._internal_topics: dict[str, InternalTopic] = {}
        self._source_changelogs: dict[str, str] = {}
        self._copartitions: tuple[Group, ...] = ()
        self._implicit_names: tuple[ImplicitNames, ...] = ()

    def __repr__(self) -> str:
        stores = len(self._stores) + len(self._global_stores)
        return f"<{type(self).__name__}: {len(self._nodes)} nodes, {stores} stores>"

    def _repr_mimebundle_(self, **chosen: Any) -> dict[str, str]:
        """Shows the graph in a notebook."""
        return self.describe()._repr_mimebundle_(**chosen)

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(twin, name, dict(value) if isinstance(value, dict) else value)
        return twin

    def copy(self) -> Self:
        """Returns a topology with the same content that can be changed apart from this one.

        >>> from headrace.topology import Topology
        >>> one = Topology().add_source("source", "in")
        >>> other = one.copy().add_sink("sink", "out", "source")
        >>> list(one.nodes), list(other.nodes)
        (['source'], ['source', 'sink'])
        """
        return copy(self)

    def describe(self) -> TopologyDescription:
        """Describes the topology; the result prints as in Kafka Streams, and as JSON, Mermaid, DOT and SVG.

        Internal topics appear without the application's id.

        >>> from headrace.topology import Topology
        >>> description = Topology().add_source("source", "in").describe()
        >>> [node.name for node in description.subtopologies[0].nodes]
        ['source']
        """
        return describe(self._nodes, self.subtopologies())

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by name, those of global stores included; parents come before their children."""
        return MappingProxyType(self._nodes)

    @property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The children of each node, in the order in which they get its records.

        A child that names a parent twice is there twice, and gets every record twice.
        """
        return MappingProxyType(self._children)

    @property
    def source_nodes(self) -> tuple[SourceNode, ...]:
        """The sources, without those of global stores."""
        return tuple(node for node in self._local_nodes() if isinstance(node, SourceNode))

    @property
    def processor_nodes(self) -> tuple[ProcessorNode, ...]:
        """The processors, without those of global stores."""
        return tuple(node for node in self._local_nodes() if isinstance(node, ProcessorNode))

    @property
    def sink_nodes(self) -> tuple[SinkNode, ...]:
        """The sinks."""
        return tuple(node for node in self._local_nodes() if isinstance(node, SinkNode))

    @property
    def store_builders(self) -> Mapping[str, StoreBuilder]:
        """The builders of all stores but the global ones; a store that no processor uses is never built."""
        return MappingProxyType(self._stores)

    @property
    def global_stores(self) -> Mapping[str, GlobalStore]:
        """The global stores by name."""
        return MappingProxyType(self._global_stores)

    @property
    def state_stores(self) -> tuple[str, ...]:
        """The stores in use, in the order in which a task that runs the whole topology opens and flushes them."""
        return registration_order(self._local_nodes())

    @property
    def implicit_names(self) -> tuple[ImplicitNames, ...]:
        """Names of stores and internal topics that were generated because the user gave none."""
        return self._implicit_names

    def source_for(self, topic: str) -> SourceNode | None:
        """Returns the source that reads a topic by name or by pattern; internal topics go by their short name."""
        sources = self.source_nodes
        for source in sources:
            if topic in source.topics:
                return source
        if self.is_internal(topic) or self.global_store_for(topic) is not None:
            return None
        return next((source for source in sources if source.reads(topic)), None)

    def global_store_for(self, topic: str) -> GlobalStore | None:
        """Returns the global store that is fed by a topic."""
        return next((store for store in self._global_stores.values() if store.topic == topic), None)

    def is_internal(self, topic: str) -> bool:
        """Tells whether the topology itself writes and reads the topic of this short name."""
        return topic in self._internal_topics

    def full_topic_name(self, topic: str, application_id: str) -> str:
        """Returns a topic's name in the log: internal topics get the application's id in front."""
        internal = self._internal_topics.get(topic)
        return topic if internal is None else internal.full_name(application_id)

    def internal_topics(self, application_id: str) -> dict[str, InternalTopic]:
        """Returns the repartition topics, and those of foreign-key joins, by their names in the log."""
        text(application_id, "internal_topics(): application_id")
        return {topic.full_name(application_id): topic for topic in self._internal_topics.values()}

    def changelog_topics(self, application_id: str) -> dict[str, str]:
        """Returns the changelog topic by store, for stores that have one.

        It is the source topic for tables that were optimised to reuse it, for read-only and for global stores.
        """
        text(application_id, "changelog_topics(): application_id")
        topics = {}
        for name in self.state_stores:
            if name in self._source_changelogs:
                topics[name] = self.full_topic_name(self._source_changelogs[name], application_id)
            elif self._stores[name].logging:
                topics[name] = f"{application_id}-{name}-changelog"
        return topics | {name: store.topic for name, store in self._global_stores.items()}

    def subtopologies(self) -> tuple[Subtopology, ...]:
        """Returns the sub-topologies by id; those of global stores share the numbers and have ``is_global`` set."""
        return split(self._nodes, self._internal_topics, self._global_sources())

    def copartition_groups(self, external: Mapping[str, int] | None = None) -> tuple[Group, ...]:
        """Returns groups of topics that must have equally many partitions; ``external`` is what patterns match."""
        counts = self._counts(external) if external is not None else None
        return merge_groups(
            counts.topics_of(sources) if counts is not None else self._named_topics(sources)
            for sources in self._copartitions
        )

    def partition_counts(self, external: Mapping[str, int]) -> dict[str, int]:
        """Returns the number of partitions of every topic that is read; internal topics go by their short names.

        ``external`` has the topics of others: all must be there, and inputs of a join must agree.
        """
        counts = self._counts(external)
        counts.enforce(self._copartitions)
        return counts.counts

    def task_counts(self, external: Mapping[str, int]) -> dict[int, int]:
        """Returns the number of tasks by sub-topology, given the partitions of the topics of others."""
        counts = self._counts(external)
        counts.enforce(self._copartitions)
        return counts.tasks()

    def _counts(self, external: Mapping[str, int]) -> PartitionCounts:
        global_topics = {store.topic for store in self._global_stores.values()}
        return PartitionCounts(self._nodes, self.subtopologies(), self._internal_topics, external, global_topics)

    def _named_topics(self, sources: Iterable[str]) -> Group:
        found = (self._nodes[name] for name in sources)
        return tuple(topic for node in found if isinstance(node, SourceNode) for topic in node.topics)

    def _global_sources(self) -> set[str]:
        return {store.source for store in self._global_stores.values()}

    def _local_nodes(self) -> list[Node]:
        of_global_stores = self._global_sources() | {store.processor for store in self._global_stores.values()}
        return [node for node in self._nodes.values() if node.name not in of_global_stores]
