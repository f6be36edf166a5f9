"""Levels: sub-topologies in the order in which one micro-batch can run them.

A sub-topology stands one level below those that write what it reads through internal topics. The graph of internal
topics may have cycles (a foreign-key join answers back to where it was asked): an edge that closes one is a *back
edge*, and what is written to it waits for the next micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.topology.graph import Graph


@dataclass(frozen=True, slots=True)
class Level:
    """Sub-topologies that do not wait for each other."""

    subtopologies: tuple[int, ...]


def levels(topology: Graph) -> tuple[Level, ...]:
    """Returns the levels from the top down.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").group_by(lambda key, value: value).count().to_stream().to("out")
    >>> levels(builder.build())
    (Level(subtopologies=(0,)), Level(subtopologies=(1,)))
    """
    edges = _forward_edges(topology)
    depth: dict[int, int] = {}

    def depth_of(part: int) -> int:
        if part not in depth:
            depth[part] = 1 + max((depth_of(above) for above, below in edges if below == part), default=-1)
        return depth[part]

    parts = [part.id for part in topology.subtopologies() if not part.is_global]
    deepest = max(map(depth_of, parts), default=-1)
    return tuple(Level(tuple(part for part in parts if depth[part] == step)) for step in range(deepest + 1))


def back_edges(topology: Graph) -> frozenset[str]:
    """Returns the internal topics that close a cycle, by their short names."""
    forward = _forward_edges(topology)
    return frozenset(topic for topic, writer, reader in internal_edges(topology) if (writer, reader) not in forward)


def forward_edges(topology: Graph) -> frozenset[str]:
    """Returns the internal topics that lead to a later level from all who write to them, by their short names."""
    internal = {topic for part in topology.subtopologies() for topic in part.repartition_topics}
    return frozenset(internal - back_edges(topology))


def internal_edges(topology: Graph) -> Iterator[tuple[str, int, int]]:
    """Returns the internal topics by their short names, each with a sub-topology that writes and the one that reads."""
    reader = {topic: part.id for part in topology.subtopologies() for topic in part.repartition_topics}
    for part in topology.subtopologies():
        for topic in part.sink_topics:
            if topic in reader:
                yield topic, part.id, reader[topic]


def _forward_edges(topology: Graph) -> set[tuple[int, int]]:
    """Walks depth first from the lowest ids; an edge to a sub-topology that is still being walked closes a cycle."""
    parts = {part.id: part for part in topology.subtopologies() if not part.is_global}
    reader = {topic: part.id for part in parts.values() for topic in part.repartition_topics}
    forward: set[tuple[int, int]] = set()
    walking: set[int] = set()
    walked: set[int] = set()

    def walk(part: int) -> None:
        walking.add(part)
        for topic in parts[part].sink_topics:
            target = reader.get(topic)
            if target is None or target in walking:
                continue
            forward.add((part, target))
            if target not in walked:
                walk(target)
        walking.discard(part)
        walked.add(part)

    for part in parts:
        if part not in walked:
            walk(part)
    return forward
