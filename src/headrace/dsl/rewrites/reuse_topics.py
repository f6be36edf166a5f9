"""Optimisation ``reuse.ktable.source.topics``: a table's topic is its changelog already."""

from __future__ import annotations

from dataclasses import replace

from headrace.dsl.graph import Graph, TableSource


def reuse_source_topics(graph: Graph) -> Graph:
    """Lets every source table restore its rows from the topic it reads, which does not know of those that expired."""
    sources = [node for node in graph.nodes.values() if isinstance(node, TableSource)]
    tables = [table for table in sources if table.store.ttl is None]
    return graph.with_nodes(replace(table, reuses_topic=True) for table in tables)
