"""Rewrite of repartition topics before joins that have results for records without a key: they keep such records."""

from __future__ import annotations

from dataclasses import replace

from headrace.dsl.graph import Graph, NodeId, Repartition


def keep_null_keys(graph: Graph) -> Graph:
    """Opens the repartition topics before joins that have a result for a record without a key."""
    waiting = [node.id for node in graph.nodes.values() if node.keeps_null_keys]
    before: set[NodeId] = set()
    while waiting:
        for parent in graph.nodes[waiting.pop()].parents:
            if parent not in before:
                before.add(parent)
                waiting.append(parent)
    opened = [graph.nodes[node_id] for node_id in sorted(before) if isinstance(graph.nodes[node_id], Repartition)]
    return graph.with_nodes(replace(node, drops_null_keys=False) for node in opened if isinstance(node, Repartition))
