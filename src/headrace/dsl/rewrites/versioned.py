"""Rewrite after versioned tables: their operations ignore out-of-order changes."""

from __future__ import annotations

from dataclasses import replace

from headrace.dsl.graph import Graph, GraphNode, Process, TableJoin
from headrace.dsl.suppress import versioned_suppress
from headrace.topology import operations as ops

_AWARE = (ops.TableFilter, ops.TableGroupBy, ops.SubscriptionSend, ops.ForeignTableJoin)


def use_versioned_semantics(graph: Graph) -> Graph:
    """Tells every operation that cares whether the table before it is versioned."""
    changed: list[GraphNode] = []
    for node in graph.nodes.values():
        if isinstance(node, TableJoin):
            changed.append(_both_sides(graph, node))
        elif isinstance(node, Process) and isinstance(node.operation, ops.Suppress):
            if _takes_versions(graph, node):
                raise versioned_suppress(node.name)
        elif isinstance(node, Process) and isinstance(node.operation, _AWARE):
            versioned = any(_gives_versions(graph, parent) for parent in graph.parents(node))
            changed.append(replace(node, operation=replace(node.operation, versioned=versioned)))
    return graph.with_nodes(changed)


def _both_sides(graph: Graph, node: TableJoin) -> TableJoin:
    this, other = graph.nodes[node.this_table], graph.nodes[node.other_table]
    return replace(
        node,
        this_operation=replace(node.this_operation, versioned=_gives_versions(graph, this)),
        other_operation=replace(node.other_operation, versioned=_gives_versions(graph, other)),
    )


def _gives_versions(graph: Graph, node: GraphNode) -> bool:
    return _takes_versions(graph, node) if node.versioned is None else node.versioned


def _takes_versions(graph: Graph, node: GraphNode) -> bool:
    parents = graph.parents(node)
    return bool(parents) and all(_gives_versions(graph, parent) for parent in parents)
