"""The logical graph: what the DSL's calls add up to, before it is written as a topology.

One logical node may become several nodes of the topology (a join) or none (a store). Nodes are frozen values that name
their parents by number, because two of them may carry the same name until the topology is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

from headrace.dsl.options import Consumed
from headrace.dsl.stores import StoreSpec
from headrace.serdes import Serde
from headrace.state import StoreBuilder
from headrace.topology import operations as ops
from headrace.topology.nodes import ImplicitNames

NodeId = int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """Base of all logical nodes."""

    id: NodeId
    name: str
    """Name of the topology's node from which children take their records."""
    parents: tuple[NodeId, ...]
    """Empty for nodes that start from a topic."""
    priority: int
    """Among the nodes whose parents are written, the smallest is written next."""
    changes_key: bool = False
    changes_value: bool = False
    merges: bool = False
    """Whether it unites two streams, each of which may have changed its key."""
    versioned: bool | None = None
    """Whether the table it makes is versioned; None: as its parents are."""
    keeps_null_keys: bool = False
    """Whether it is a join with results for records without a key: repartition topics before it must let them pass."""
    grace_ms: int | None = None
    """How long after its end a window of this aggregation takes records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource(GraphNode):
    """Reads topics as a stream."""

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    consumed: Consumed[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource(GraphNode):
    """Reads a topic as a table."""

    source: str
    """Name of the source node in front of the table's node."""
    topic: str
    consumed: Consumed[Any, Any]
    operation: ops.TableSource
    store: StoreSpec
    """Its rows, kept only if the operation names the store."""
    is_global: bool = False
    reuses_topic: bool = False
    """Whether the topic itself is the store's changelog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStore(GraphNode):
    """A store for processors that name it."""

    builder: StoreBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalStore(GraphNode):
    """A global store that a processor keeps up to date."""

    builder: StoreBuilder
    source: str
    topic: str
    consumed: Consumed[Any, Any]
    supplier: Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process(GraphNode):
    """One operation."""

    operation: ops.Operation
    stores: tuple[StoreSpec, ...] = ()
    """Stores that come with the operation."""
    uses: tuple[str, ...] = ()
    """Stores of other nodes that it reads."""
    buffer_ms: int | None = None
    """How far back a stream-table join looks into a versioned table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartition(GraphNode):
    """Writes an internal topic and reads it again; its name is the source's."""

    topic: str
    sink: str
    guard: str | None
    """Name of the node that stops records without a key; None: changes of a table, which always have one."""
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: Callable[..., Any] | None = None
    partitions: int | None = None
    serdes_from: str = "Repartitioned({}_serde=…)"
    """Where the user names its serdes, for messages."""
    mergeable: bool = False
    """Whether the optimisation may replace it by one right behind the change of key."""
    drops_null_keys: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(GraphNode):
    """Writes a topic."""

    topic: str | None = None
    extractor: Callable[..., str] | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: Callable[..., Any] | None = None
    internal: bool = False
    """Whether the topic is the join's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedJoin(GraphNode):
    """A join of two streams: both sides and where they meet; the nodes that keep the windows are its siblings."""

    this: str
    other: str
    this_windowed: str
    other_windowed: str
    this_operation: ops.StreamStreamJoin
    other_operation: ops.StreamStreamJoin
    this_store: StoreSpec
    other_store: StoreSpec
    unmatched_store: StoreSpec | None
    on_itself: bool = False
    """Whether both sides are the same stream, so that one store is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoin(GraphNode):
    """A join of two tables on their key: both sides and where they meet."""

    this: str
    other: str
    this_table: NodeId
    other_table: NodeId
    this_operation: ops.TableTableJoin
    other_operation: ops.TableTableJoin
    merge_operation: ops.TableJoinMerge
    store: StoreSpec | None
    this_stores: tuple[str, ...]
    """Stores behind the rows of this table, which the other side reads."""
    other_stores: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A finished logical graph; rewrites return another one."""

    nodes: Mapping[NodeId, GraphNode]
    copartitions: tuple[frozenset[str], ...] = ()
    """Groups of sources whose topics need the same number of partitions, by the sources' names."""
    generated: tuple[ImplicitNames, ...] = ()
    """Names of stores and internal topics that the user did not give."""

    def parents(self, node: GraphNode) -> list[GraphNode]:
        """Returns the parents of a node, in their order."""
        return [self.nodes[parent] for parent in node.parents]

    def children(self, node_id: NodeId) -> list[GraphNode]:
        """Returns the nodes that name a node as parent, in the order in which they were made."""
        return [node for node in self.nodes.values() if node_id in node.parents]

    def in_order(self) -> Iterator[GraphNode]:
        """Yields every node after its parents; of those that are ready, the one with the smallest priority."""
        missing = {node.id: len(node.parents) for node in self.nodes.values()}
        children: dict[NodeId, list[GraphNode]] = {}
        for node in self.nodes.values():
            for parent in node.parents:
                children.setdefault(parent, []).append(node)
        ready = [(node.priority, node.id) for node in self.nodes.values() if not node.parents]
        heapify(ready)
        while ready:
            _, node_id = heappop(ready)
            yield self.nodes[node_id]
            for child in children.get(node_id, ()):
                missing[child.id] -= 1
                if not missing[child.id]:
                    heappush(ready, (child.priority, child.id))

    def parent_names(self, node: GraphNode) -> tuple[str, ...]:
        """Returns the names of the nodes that a node takes its records from."""
        return tuple(parent.name for parent in self.parents(node))

    def with_nodes(self, changed: Iterable[GraphNode]) -> Graph:
        """Returns the graph with these nodes instead of those with their numbers, or in addition to them."""
        return replace(self, nodes={**self.nodes, **{node.id: node for node in changed}})

    def without(self, node_id: NodeId) -> Graph:
        """Returns the graph without a node."""
        return replace(self, nodes={key: node for key, node in self.nodes.items() if key != node_id})

    def with_source_renamed(self, old: str, new: str) -> Graph:
        """Returns the graph with another name for a source in its groups of co-partitioned sources."""
        groups = tuple(frozenset(new if name == old else name for name in group) for group in self.copartitions)
        return replace(self, copartitions=groups)


def with_parent_replaced(node: GraphNode, old: NodeId, new: NodeId) -> GraphNode:
    """Returns a node with one parent taken away and another one put last, if it is not there yet."""
    kept = [parent for parent in node.parents if parent != old]
    return replace(node, parents=tuple(kept if new in kept else [*kept, new]))
