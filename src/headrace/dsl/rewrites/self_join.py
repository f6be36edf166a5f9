"""Optimisation ``single.store.self.join``: a stream joined with itself needs its records only once."""

from __future__ import annotations

from dataclasses import replace

from headrace.dsl.graph import Graph, WindowedJoin


def join_with_one_store(graph: Graph) -> Graph:
    """Takes the second window store, and the node that fills it, out of every join of a stream with itself.

    As in Kafka Streams, a left or outer join of a stream with itself becomes an inner one.
    """
    for join in list(graph.nodes.values()):
        if isinstance(join, WindowedJoin) and len(join.parents) == 1:
            siblings = graph.children(join.parents[0])
            other = next(node for node in siblings if node.name == join.other_windowed)
            graph = graph.without(other.id).with_nodes([replace(join, on_itself=True)])
    return graph
