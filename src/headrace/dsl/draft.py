"""The graph while it is being drawn: the one thing that all handles of a builder share and that calls change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from headrace.dsl.graph import Graph, GraphNode, NodeId, Repartition
from headrace.dsl.materialized import Materialized
from headrace.dsl.naming import REPARTITION_SUFFIX, NameCounter, has_counted_name
from headrace.dsl.stores import StoreSpec, key_value_store
from headrace.serdes import Serde
from headrace.topology.nodes import ImplicitNames


class Draft:
    """Collects what the calls on one builder add: nodes, and facts about nodes that later calls bring about."""

    def __init__(self) -> None:
        self.names = NameCounter()
        self.nodes: dict[NodeId, GraphNode] = {}
        self.sends_old: set[NodeId] = set()
        """Tables whose changes carry the old value."""
        self.row_stores: dict[NodeId, tuple[str, ...]] = {}
        """Stores behind the rows of the tables that are looked up."""
        self.shared_repartitions: dict[object, NodeId] = {}
        """Repartition topics that further operations on the same stream or group use again."""
        self._copartitions: list[frozenset[str]] = []
        self._generated: list[ImplicitNames] = []
        self._priority = 0
        self._groups = 0

    def add(self, kind: type[GraphNode], name: str, parents: Sequence[NodeId], **content: Any) -> NodeId:
        """Adds a node and returns its number."""
        node_id = len(self.nodes)
        self._priority += 1
        self.nodes[node_id] = kind(
            id=node_id, name=name, parents=tuple(dict.fromkeys(parents)), priority=self._priority, **content
        )
        return node_id

    def add_again(self, node_id: NodeId) -> None:
        """Moves a node that a further operation uses to the end of the order in which nodes are written."""
        self._priority += 1
        self.change(node_id, priority=self._priority)

    def change(self, node_id: NodeId, **content: Any) -> None:
        """Replaces a node by one with other content."""
        self.nodes[node_id] = replace(self.nodes[node_id], **content)

    def next_group(self) -> int:
        """Returns a number for a grouped stream or table, which has no node of its own."""
        self._groups += 1
        return self._groups

    def copartition(self, sources: Iterable[str]) -> frozenset[str]:
        """Records that the topics of these sources need the same number of partitions."""
        group = frozenset(sources)
        self._copartitions.append(group)
        return group

    def generated(self, *, store: str | None = None, changelog: str | None = None, topic: str | None = None) -> None:
        """Records names that were generated because the user gave none."""
        self._generated.append(ImplicitNames(changelog, store, topic))

    def generated_store(self, store: StoreSpec) -> None:
        """Records a store whose name was generated, and its changelog."""
        self.generated(store=store.name, changelog=f"{store.name}-changelog" if store.logging else None)

    def store(
        self,
        materialized: Materialized[Any, Any],
        prefix: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> StoreSpec:
        """Returns the store of a table's rows; without a name it gets one, whether or not it is kept in the end."""
        name = self.store_name(materialized, prefix)
        return key_value_store(name, materialized, key_serde=key_serde, value_serde=value_serde)

    def store_name(self, materialized: Materialized[Any, Any], prefix: str) -> str:
        """Returns the name of a store: the user's, or a generated one."""
        if materialized.name is not None:
            return materialized.name
        name = self.names.store(prefix)
        self.generated(store=name, changelog=f"{name}-changelog" if materialized.logging else None)
        return name

    def repartition_content(
        self,
        base: str,
        *,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        named_by_user: bool,
        serdes_from: str,
    ) -> dict[str, Any]:
        """Returns what a repartition node with that base name is made of; takes the indices of its three nodes."""
        topic = base if base.endswith(REPARTITION_SUFFIX) else base + REPARTITION_SUFFIX
        if not named_by_user:
            self.generated(topic=topic)
        sink = self.names.node("KSTREAM-SINK-")
        guard = self.names.node("KSTREAM-FILTER-")
        source = self.names.node("KSTREAM-SOURCE-")
        if not has_counted_name(base):
            sink, guard, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
        return {
            "name": source,
            "topic": topic,
            "sink": sink,
            "guard": guard,
            "key_serde": key_serde,
            "value_serde": value_serde,
            "serdes_from": serdes_from,
        }

    def repartition(self, parent: NodeId, content: dict[str, Any], *, mergeable: bool = True) -> NodeId:
        """Adds a repartition node."""
        return self.add(Repartition, parents=(parent,), mergeable=mergeable, **content)

    def graph(self) -> Graph:
        """Returns the graph as it is now."""
        return Graph(dict(self.nodes), tuple(self._copartitions), tuple(self._generated))
