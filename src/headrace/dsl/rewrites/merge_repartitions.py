"""Optimisation ``merge.repartition.topics``: one repartition topic per change of key instead of one per operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.dsl.graph import Graph, GraphNode, NodeId, Repartition, with_parent_replaced

# Node that changed the key -> repartition nodes that became necessary by it, in the order in which they were made.
Changers = Mapping[NodeId, tuple[NodeId, ...]]


def key_changers(graph: Graph) -> Changers:
    """Returns which change of key made which repartition nodes necessary.

    A node between them that changes the value keeps a repartition node where it is: what is written there is not yet
    known at the change of key.
    """
    changers = _nearest(graph, lambda node: node.changes_key)
    changers_of_any = _nearest(graph, lambda node: node.changes_key or node.changes_value)
    caused: dict[NodeId, tuple[NodeId, ...]] = {}
    for node in graph.nodes.values():
        if node.changes_key:
            caused[node.id] = ()
        elif isinstance(node, Repartition) and node.mergeable:
            changer = changers[node.id]
            if changer is not None and changers_of_any[node.id] is changer:
                caused[changer.id] += (node.id,)
    return caused


def _nearest(graph: Graph, wanted: Callable[[GraphNode], bool]) -> dict[NodeId, GraphNode | None]:
    """Returns for every node the nearest wanted one at or before it.

    Of several parents the last decides, unless one of them is wanted itself: Kafka Streams' search, kept as it is
    because it decides which topics there are.
    """
    found: dict[NodeId, GraphNode | None] = {}
    for node in graph.in_order():
        if wanted(node):
            found[node.id] = node
            continue
        parents = graph.parents(node)
        last = found[parents[-1].id] if parents else None
        found[node.id] = next((parent for parent in parents if wanted(parent)), last)
    return found


def merge_repartition_topics(graph: Graph, changers: Changers) -> Graph:
    """Puts one repartition node right behind each change of key, in place of all those that it caused."""
    for changer, repartitions in _with_merges(graph, changers).items():
        if repartitions:
            graph = _merge(graph, changer, repartitions)
    return graph


def _with_merges(graph: Graph, changers: Changers) -> Changers:
    """Moves repartition nodes behind a merge from the changes of key before it to the merge."""
    caused = dict(changers)
    below_changer = {changer: _below(graph, changer) for changer in caused}
    united: dict[NodeId, list[NodeId]] = {}
    for merge in graph.nodes.values():
        if merge.merges:
            below_merge = _below(graph, merge.id)
            united[merge.id] = [
                changer
                for changer, repartitions in caused.items()
                if below_merge.issuperset(repartitions) and merge.id in below_changer[changer]
            ]
    absorbed: set[NodeId] = set()
    for merge_id, merged in united.items():
        caused[merge_id] = tuple(dict.fromkeys(node for changer in merged for node in caused[changer]))
        absorbed |= set(merged)
    return {changer: nodes for changer, nodes in caused.items() if changer not in absorbed}


def _below(graph: Graph, ancestor: NodeId) -> set[NodeId]:
    children = _nearest(graph, lambda node: ancestor in node.parents)
    return {node for node, child in children.items() if child is not None}


def _merge(graph: Graph, changer_id: NodeId, repartitions: tuple[NodeId, ...]) -> Graph:
    changer = graph.nodes[changer_id]
    found = [graph.nodes.get(node) for node in repartitions]
    nodes = [node for node in found if isinstance(node, Repartition)]
    if not nodes:
        return graph
    topic = nodes[0].topic
    single = replace(
        nodes[0],
        id=max(graph.nodes) + 1,
        name=f"{topic}-source",
        parents=(),
        # Written right after the change of key, before everything else that waits for it.
        priority=changer.priority,
        sink=f"{topic}-sink",
        guard=f"{topic}-filter",
        key_serde=next((node.key_serde for node in nodes if node.key_serde is not None), None),
        value_serde=next((node.value_serde for node in nodes if node.value_serde is not None), None),
    )
    graph = graph.with_nodes([single])
    for node in nodes:
        child = _nearest(graph, lambda node: changer_id in node.parents)[node.id]
        # Two repartition nodes may have this child in common: then it has moved already.
        if child is not None:
            graph = graph.with_nodes([with_parent_replaced(child, changer_id, single.id)])
        graph = _take_out(graph, node.id).with_source_renamed(node.name, single.name)
    # Only now, so that the search above does not find it.
    return graph.with_nodes([replace(single, parents=(changer_id,))])


def _take_out(graph: Graph, node_id: NodeId) -> Graph:
    node = graph.nodes[node_id]
    changed = []
    for child in graph.children(node_id):
        kept = [parent for parent in child.parents if parent != node_id]
        changed.append(replace(child, parents=tuple(dict.fromkeys([*kept, *node.parents]))))
    return graph.with_nodes(changed).without(node_id)
