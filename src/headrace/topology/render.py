"""Pictures of a topology: JSON for programs, Mermaid and DOT for people.

Topics and stores are drawn too, so that one sees how sub-topologies feed each other and which processors share state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.topology.describe import NodeDescription, TopologyDescription


def to_json(description: TopologyDescription, *, indent: int | None = 2) -> str:
    """Returns the model as JSON."""
    model = {
        "subtopologies": [
            {"id": part.id, "nodes": [_node_model(node) for node in part.nodes]} for part in description.subtopologies
        ],
        "global_stores": [
            {"id": part.id, "source": _node_model(part.source), "processor": _node_model(part.processor)}
            for part in description.global_stores
        ],
    }
    return json.dumps(model, indent=indent, ensure_ascii=False)


def to_mermaid(description: TopologyDescription) -> str:
    """Returns a Mermaid flowchart: rectangles are nodes, round ends are topics, cylinders are stores."""
    picture = _Picture.of(description)
    lines = ["flowchart TD"]
    for number, title, nodes in picture.parts:
        lines.append(f'  subgraph subtopology_{number}["{_mermaid(title)}"]')
        lines += [f'    {picture.node_ids[name]}["{_mermaid(name)}"]' for name in nodes]
        lines.append("  end")
    lines += [f'  {key}(["{_mermaid(name)}"])' for name, key in picture.topic_ids.items()]
    lines += [f'  {key}[("{_mermaid(name)}")]' for name, key in picture.store_ids.items()]
    lines += [f"  {start} --> {end}" for start, end in picture.edges]
    lines += [f"  {node} -.- {store}" for node, store in picture.uses]
    return "\n".join(lines)


def to_dot(description: TopologyDescription) -> str:
    """Returns a Graphviz graph: boxes are nodes, arrows are topics, cylinders are stores."""
    picture = _Picture.of(description)
    lines = ["digraph topology {", "  rankdir=TB;"]
    for number, title, nodes in picture.parts:
        lines += [f"  subgraph cluster_{number} {{", f"    label={_dot(title)};"]
        lines += [f"    {picture.node_ids[name]} [label={_dot(name)}, shape=box];" for name in nodes]
        lines.append("  }")
    lines += [f"  {key} [label={_dot(name)}, shape=cds];" for name, key in picture.topic_ids.items()]
    lines += [f"  {key} [label={_dot(name)}, shape=cylinder];" for name, key in picture.store_ids.items()]
    lines += [f"  {start} -> {end};" for start, end in picture.edges]
    lines += [f"  {node} -> {store} [dir=none, style=dashed];" for node, store in picture.uses]
    return "\n".join([*lines, "}"])


@dataclass
class _Picture:
    """Common part of both drawings, with an identifier for everything: names may have characters that they cannot."""

    parts: list[tuple[int, str, list[str]]] = field(default_factory=list)
    node_ids: dict[str, str] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    store_ids: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)
    uses: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, description: TopologyDescription) -> _Picture:
        picture = cls()
        picture.parts = sorted(
            [
                *(
                    (each.id, f"Sub-topology {each.id}", [n.name for n in each.nodes])
                    for each in description.subtopologies
                ),
                *(
                    (each.id, f"Sub-topology {each.id}: global store", [each.source.name, each.processor.name])
                    for each in description.global_stores
                ),
            ]
        )
        nodes = {node.name: node for node in description.nodes}
        node_id, topic_id = _numbering(picture.node_ids, "node"), _numbering(picture.topic_ids, "topic")
        store_id = _numbering(picture.store_ids, "store")
        for _, _, names in picture.parts:
            for name in names:
                node_id(name)
        for node in nodes.values():
            here = node_id(node.name)
            picture.edges += [(topic_id(topic), here) for topic in _inputs(node)]
            picture.edges += [(here, node_id(name)) for name in node.successors]
            picture.edges += [(here, topic_id(topic)) for topic in _outputs(node)]
            picture.uses += [(here, store_id(store)) for store in getattr(node, "stores", ())]
        return picture


def _numbering(ids: dict[str, str], prefix: str) -> Callable[[str], str]:
    return lambda name: ids.setdefault(name, f"{prefix}_{len(ids)}")


def _inputs(node: NodeDescription) -> Iterator[str]:
    yield from getattr(node, "topics", None) or ()
    if pattern := getattr(node, "pattern", None):
        yield f"/{pattern}/"


def _outputs(node: NodeDescription) -> Iterator[str]:
    if topic := getattr(node, "topic", None):
        yield topic
    if extractor := getattr(node, "extractor", None):
        yield f"{extractor}()"


def _node_model(node: NodeDescription) -> dict[str, Any]:
    model: dict[str, Any] = {"type": type(node).__name__.removesuffix("Description").lower(), "name": node.name}
    for name in ("topics", "pattern", "stores", "topic", "extractor"):
        if (value := getattr(node, name, None)) is not None:
            model[name] = value
    return model | {"predecessors": node.predecessors, "successors": node.successors}


def _mermaid(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")


def _dot(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
