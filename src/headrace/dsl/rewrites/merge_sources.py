"""Rewrite of sources: streams of the same topics share one."""

from __future__ import annotations

from headrace.dsl.graph import Graph, StreamSource, with_parent_replaced
from headrace.errors import TopologyError
from headrace.topology.offset_reset import AutoOffsetReset


def merge_duplicate_sources(graph: Graph) -> Graph:
    """Gives the children of a source that reads the same topics as an earlier one to that one."""
    by_topic: dict[str, StreamSource] = {}
    by_pattern: dict[tuple[str, int], StreamSource] = {}
    for node in list(graph.nodes.values()):
        if not isinstance(node, StreamSource) or node.parents:
            continue
        if node.pattern is not None:
            first = by_pattern.setdefault((node.pattern.pattern, node.pattern.flags), node)
        else:
            first = next((by_topic[topic] for topic in sorted(node.topics) if topic in by_topic), node)
            _check_equal_topics(first, node)
            by_topic.update(dict.fromkeys(node.topics, first))
        if first is not node:
            graph = _merge(graph, first, node)
    return graph


def _merge(graph: Graph, first: StreamSource, second: StreamSource) -> Graph:
    if _reset(first) != _reset(second):
        message = (
            f"sources '{first.name}' and '{second.name}': one source can start at one place only; found different "
            "offset reset policies for the same topics; give both the same offset_reset"
        )
        raise TopologyError(message)
    moved = [with_parent_replaced(child, second.id, first.id) for child in graph.children(second.id)]
    return graph.with_nodes(moved).without(second.id).with_source_renamed(second.name, first.name)


def _reset(source: StreamSource) -> AutoOffsetReset | None:
    reset = source.consumed.offset_reset
    return None if reset is None else AutoOffsetReset.of(reset)


def _check_equal_topics(first: StreamSource, second: StreamSource) -> None:
    if first.topics != second.topics:
        shared = ", ".join(sorted(first.topics & second.topics))
        message = (
            f"sources '{first.name}' and '{second.name}': two streams read the same topics or none in common; "
            f"found overlapping but not equal ones ({shared}); read each topic once and merge() the streams"
        )
        raise TopologyError(message)
