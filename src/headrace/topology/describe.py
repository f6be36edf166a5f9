"""The description of a topology: a model of its nodes, and the text that Kafka Streams would print for it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.topology import render, svg
from headrace.topology.java_order import TreeSet, hash_order, hash_order_of_copy
from headrace.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headrace.topology.subtopologies import Subtopology


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A source; either ``topics`` or ``pattern`` is set."""

    name: str
    topics: tuple[str, ...] | None
    pattern: str | None
    successors: tuple[str, ...]
    predecessors: tuple[str, ...] = ()

    def __str__(self) -> str:
        topics = self.pattern if self.topics is None else _list_names(self.topics)
        return f"Source: {self.name} (topics: {topics})\n      --> {_names(self.successors)}"


@dataclass(frozen=True, slots=True)
class ProcessorDescription:
    """A processor and the stores it is connected to."""

    name: str
    stores: tuple[str, ...]
    predecessors: tuple[str, ...]
    successors: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Processor: {self.name} (stores: {_list_names(self.stores)})\n"
            f"      --> {_names(self.successors)}\n      <-- {_names(self.predecessors)}"
        )


@dataclass(frozen=True, slots=True)
class SinkDescription:
    """A sink; either ``topic`` or ``topic_name_extractor`` is set."""

    name: str
    topic: str | None
    topic_name_extractor: Callable[..., str] | None
    predecessors: tuple[str, ...]
    successors: tuple[str, ...] = ()

    def __str__(self) -> str:
        target = f"topic: {self.topic}" if self.topic is not None else f"extractor class: {self.extractor}"
        return f"Sink: {self.name} ({target})\n      <-- {_names(self.predecessors)}"

    @property
    def extractor(self) -> str | None:
        """How the extractor is called: the function's name, or what the object prints, or its class."""
        return None if self.topic_name_extractor is None else _label(self.topic_name_extractor)


NodeDescription: TypeAlias = SourceDescription | ProcessorDescription | SinkDescription


@dataclass(frozen=True, slots=True)
class SubtopologyDescription:
    """One sub-topology; the node with the most descendants comes first."""

    id: int
    nodes: tuple[NodeDescription, ...]

    def __str__(self) -> str:
        nodes = "".join(f"    {node}\n" for node in self.nodes)
        return f"Sub-topology: {self.id}\n{nodes}\n"


@dataclass(frozen=True, slots=True)
class GlobalStoreDescription:
    """A global store: where its records come from and what puts them in; it shares the numbers of sub-topologies."""

    id: int
    source: SourceDescription
    processor: ProcessorDescription

    def __str__(self) -> str:
        title = f"Sub-topology: {self.id} for global store (will not generate tasks)"
        return f"{title}\n    {self.source}\n    {self.processor}\n"


@dataclass(frozen=True, slots=True)
class TopologyDescription:
    """Description of a topology; ``str()`` gives the text that Kafka Streams prints.

    >>> from headrace.topology import Topology
    >>> print(Topology().add_source("source", "in").add_sink("sink", "out", "source").describe())
    Topologies:
       Sub-topology: 0
        Source: source (topics: [in])
          --> sink
        Sink: sink (topic: out)
          <-- source
    <BLANKLINE>
    <BLANKLINE>
    """

    subtopologies: tuple[SubtopologyDescription, ...]
    global_stores: tuple[GlobalStoreDescription, ...]

    def __str__(self) -> str:
        parts = {part.id: str(part) for part in self.subtopologies} | {
            part.id: str(part) for part in self.global_stores
        }
        return "Topologies:\n " + "".join(f"  {parts[number]}" for number in sorted(parts))

    @property
    def nodes(self) -> tuple[NodeDescription, ...]:
        """All nodes, those of global stores last."""
        local = [node for part in self.subtopologies for node in part.nodes]
        return (*local, *(node for part in self.global_stores for node in (part.source, part.processor)))

    def to_json(self, *, indent: int | None = 2) -> str:
        """Returns the model as JSON.

        >>> from headrace.topology import Topology
        >>> Topology().add_source("source", "in").describe().to_json(indent=None)
        '{"subtopologies": [{"id": 0, "nodes": [{"type": "source", "name": "source", "topics": ["in"], \
"predecessors": [], "successors": []}]}], "global_stores": []}'
        """
        return render.to_json(self, indent=indent)

    def to_mermaid(self) -> str:
        """Returns the topology as a Mermaid flowchart, with its topics and stores.

        >>> from headrace.topology import Topology
        >>> print(Topology().add_source("source", "in").describe().to_mermaid())
        flowchart TD
          subgraph subtopology_0["Sub-topology 0"]
            node_0["source"]
          end
          topic_0(["in"])
          topic_0 --> node_0
        """
        return render.to_mermaid(self)

    def to_dot(self) -> str:
        """Returns the topology as a Graphviz graph, with its topics and stores.

        >>> from headrace.topology import Topology
        >>> print(Topology().add_source("source", "in").describe().to_dot())
        digraph topology {
          rankdir=TB;
          subgraph cluster_0 {
            label="Sub-topology 0";
            node_0 [label="source", shape=box];
          }
          topic_0 [label="in", shape=cds];
          topic_0 -> node_0;
        }
        """
        return render.to_dot(self)

    def to_svg(self) -> str:
        """Returns the topology as a picture, in the arrangement of the console.

        >>> from headrace.topology import Topology
        >>> Topology().add_source("source", "in").describe().to_svg().splitlines()[-1]
        '</svg>'
        """
        return svg.to_svg(self)

    def _repr_mimebundle_(self, **_chosen: Any) -> dict[str, str]:
        """Shows the picture in a notebook, and the text where there are no pictures."""
        picture = self.to_svg()
        return {"text/plain": str(self), "text/html": f"<div>{picture}</div>", "image/svg+xml": picture}


def describe(nodes: Mapping[str, Node], subtopologies: Sequence[Subtopology]) -> TopologyDescription:
    """Describes the nodes of a topology, given how they are split."""
    local = [each for each in subtopologies if not each.is_global]
    return TopologyDescription(
        tuple(SubtopologyDescription(each.id, _describe_nodes([nodes[name] for name in each.nodes])) for each in local),
        tuple(_global_store(each.id, [nodes[name] for name in each.nodes]) for each in subtopologies if each.is_global),
    )


class _Draft:
    """A node while sizes and neighbours are being collected."""

    def __init__(self, node: Node, position: int) -> None:
        self.node = node
        self.position = position
        self.size = 1
        self.predecessors = TreeSet[_Draft](_compare)
        self.successors = TreeSet[_Draft](_compare)

    def grow(self, amount: int) -> None:
        """Adds to the size of this node and of everything above it, once per path."""
        pending = {self.position: (self, amount)}
        highest_first = [-self.position]
        while highest_first:
            draft, growth = pending.pop(-heapq.heappop(highest_first))
            draft.size += growth
            for above in draft.predecessors:
                if above.position not in pending:
                    heapq.heappush(highest_first, -above.position)
                pending[above.position] = (above, pending.get(above.position, (above, 0))[1] + growth)


def _compare(one: _Draft, other: _Draft) -> int:
    if one is other:
        return 0
    if one.size != other.size:
        return other.size - one.size
    return -1 if one.node.name < other.node.name else 1


def _describe_nodes(nodes: Sequence[Node]) -> tuple[NodeDescription, ...]:
    # Neighbours are sorted by sizes that are still growing, in the order in which Kafka Streams meets the nodes.
    drafts = {node.name: _Draft(node, position) for position, node in enumerate(nodes)}
    for name in hash_order(drafts):
        draft = drafts[name]
        for parent in draft.node.parents:
            above = drafts[parent]
            draft.predecessors.add(above)
            above.successors.add(draft)
            above.grow(draft.size)
    ordered = sorted(drafts.values(), key=lambda draft: (-draft.size, draft.node.name))
    return tuple(
        _description(
            draft.node,
            tuple(above.node.name for above in draft.predecessors),
            tuple(below.node.name for below in draft.successors),
        )
        for draft in ordered
    )


def _description(node: Node, predecessors: tuple[str, ...], successors: tuple[str, ...]) -> NodeDescription:
    match node:
        case SourceNode(pattern=None):
            return SourceDescription(node.name, hash_order_of_copy(node.topics), None, successors)
        case SourceNode(pattern=pattern):
            return SourceDescription(node.name, None, pattern.pattern if pattern else None, successors)
        case ProcessorNode():
            stores = hash_order_of_copy(hash_order(node.stores))
            return ProcessorDescription(node.name, stores, predecessors, successors)
        case SinkNode():
            return SinkDescription(node.name, node.topic, node.topic_extractor, predecessors)


def _global_store(number: int, nodes: Sequence[Node]) -> GlobalStoreDescription:
    source, processor = nodes
    described_source = _description(source, (), (processor.name,))
    described_processor = _description(processor, (source.name,), ())
    if isinstance(described_source, SourceDescription) and isinstance(described_processor, ProcessorDescription):
        return GlobalStoreDescription(number, described_source, described_processor)
    message = f"sub-topology {number}: a global store has one source and one processor"
    raise TypeError(message)


def _list_names(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _label(function: Any) -> str:
    if hasattr(function, "__name__"):
        return str(function.__name__)
    prints_itself = any("__str__" in vars(base) for base in type(function).__mro__[:-1])
    return str(function) if prints_itself else type(function).__name__
