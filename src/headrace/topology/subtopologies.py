"""Sub-topologies: the parts of a topology that do not share a record or a store, and so run as tasks of their own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headrace.topology.java_order import hash_order
from headrace.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode


@dataclass(frozen=True, slots=True)
class Subtopology:
    """Nodes that are connected by edges or by a shared store. Topics are named without the application's id."""

    id: int
    nodes: tuple[str, ...]
    """All its nodes; parents come before their children."""
    source_topics: tuple[str, ...]
    source_patterns: tuple[re.Pattern[str], ...]
    sink_topics: tuple[str, ...]
    """Topics it writes; those that an extractor names are not known."""
    repartition_topics: tuple[str, ...]
    """Those of its source topics that are internal."""
    state_stores: tuple[str, ...]
    """Its stores, in the order in which a task opens and flushes them."""
    is_global: bool = False
    """Whether it keeps a global store: then it runs once per host and has no tasks."""


def registration_order(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Returns the stores of processors in the order in which a task opens and flushes them.

    That is the order of the processors, and for each of them the order of a Java set: Kafka Streams flushes its record
    caches in this order, so it shows in the order of results.
    """
    stores: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ProcessorNode):
            stores.update(dict.fromkeys(hash_order(node.stores)))
    return tuple(stores)


def split(
    nodes: Mapping[str, Node], internal_topics: Collection[str], global_sources: Collection[str]
) -> tuple[Subtopology, ...]:
    """Returns the sub-topologies, numbered by their first nodes."""
    roots: dict[str, str] = {}

    def root(name: str) -> str:
        while (above := roots.setdefault(name, name)) != name:
            roots[name] = roots[above]
            name = above
        return name

    users: dict[str, str] = {}
    for node in nodes.values():
        neighbours = list(node.parents)
        if isinstance(node, ProcessorNode):
            neighbours += [users.setdefault(store, node.name) for store in node.stores]
        for neighbour in neighbours:
            roots[root(node.name)] = root(neighbour)

    groups: dict[str, list[Node]] = {}
    for node in nodes.values():
        groups.setdefault(root(node.name), []).append(node)
    return tuple(
        _subtopology(number, group, internal_topics, global_sources) for number, group in enumerate(groups.values())
    )


def _subtopology(
    number: int, nodes: list[Node], internal_topics: Collection[str], global_sources: Collection[str]
) -> Subtopology:
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    source_topics = tuple(topic for source in sources for topic in source.topics)
    sink_topics = [node.topic for node in nodes if isinstance(node, SinkNode) and node.topic is not None]
    return Subtopology(
        id=number,
        nodes=tuple(node.name for node in nodes),
        source_topics=source_topics,
        source_patterns=tuple(source.pattern for source in sources if source.pattern is not None),
        sink_topics=tuple(dict.fromkeys(sink_topics)),
        repartition_topics=tuple(topic for topic in source_topics if topic in internal_topics),
        state_stores=registration_order(nodes),
        is_global=any(source.name in global_sources for source in sources),
    )
