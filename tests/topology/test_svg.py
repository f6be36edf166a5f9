"""The picture of a topology: complete, well-formed, and nothing in the way of something else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from headrace import JoinWindows, Materialized, StreamsBuilder, StreamsConfig, Topology
from headrace.cli.targets import load_topology

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.py"))
WITHIN = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=5))


class Box(NamedTuple):
    title: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def _picture(topology: Topology) -> ElementTree.Element:
    return ElementTree.fromstring(topology.describe().to_svg())


def _boxes(picture: ElementTree.Element) -> Iterator[Box]:
    """Yields the boxes of nodes and stores; each is a group with a title."""
    for group in picture.iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert box is not None
        x, y, width, height = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        yield Box(title.text or "", x, y, x + width, y + height)


def _shop() -> Topology:
    builder = StreamsBuilder()
    users, orders = builder.table("users"), builder.stream("orders")
    joined = orders.join(users, lambda order, user: [order, user])
    joined.to("joined")
    counts = joined.group_by(lambda key, value: value[1]).count(materialized=Materialized("by-country"))
    counts.to_stream().to("counts")
    joined.outer_join(builder.stream("payments"), lambda a, b: [a, b], windows=WITHIN).to("paid")
    builder.global_table("rates", materialized=Materialized("rates"))
    return builder.build()


def test_all_nodes_topics_and_stores_are_in_the_picture() -> None:
    topology = _shop()
    titles = [line for box in _boxes(_picture(topology)) for line in box.title.splitlines()]
    assert set(titles) >= {*topology.nodes, *topology.state_stores, "rates"}
    assert set(titles) >= {"orders", "users", "payments", "joined", "counts", "paid"}


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_no_box_lies_on_another(path: Path) -> None:
    boxes = list(_boxes(_picture(load_topology(str(path), StreamsConfig()))))
    assert len(boxes) > 1
    assert [(a.title, b.title) for a, b in combinations(boxes, 2) if a.overlaps(b)] == []


def test_everything_is_inside_the_picture() -> None:
    picture = _picture(_shop())
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    assert all(0 < box.left < box.right < width and 0 < box.top < box.bottom < height for box in _boxes(picture))


def test_records_flow_downwards() -> None:
    topology = _shop()
    top = {box.title.splitlines()[0]: box.top for box in _boxes(_picture(topology))}
    for name, children in topology.children.items():
        assert all(top[name] < top[child] for child in children)


def test_a_line_leads_from_the_sink_of_a_repartition_topic_to_its_source() -> None:
    dashed = [path for path in _picture(_shop()).iter(f"{SVG}path") if "stroke-dasharray" in path.attrib]
    assert len(dashed) == 1


def test_names_are_escaped() -> None:
    topology = Topology().add_source('<script>alert("&")</script>', "in")
    assert "<script>" not in topology.describe().to_svg()
    assert [box.title for box in _boxes(_picture(topology))] == ['<script>alert("&")</script>\nin']


def test_a_long_name_is_cut_in_its_box_and_whole_in_its_title() -> None:
    name = "a-very-long-name-" * 10
    picture = _picture(Topology().add_source("source", "in").add_sink(name, "out", "source"))
    assert name in [box.title.splitlines()[0] for box in _boxes(picture)]
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert name not in texts
    assert any(text.endswith("…") and name.startswith(text[:-1]) for text in texts)


def test_long_chains_are_drawn() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    for _ in range(1500):
        stream = stream.filter(lambda key, value: True)
    assert len(list(_boxes(_picture(builder.build())))) == 1501


def test_nothing_is_a_picture_too() -> None:
    assert list(_boxes(_picture(Topology()))) == []


@pytest.mark.parametrize("kind", ["topology", "builder", "description"])
def test_notebooks_show_the_picture(kind: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    topology = builder.build()
    shows: dict[str, Any] = {"topology": topology, "builder": builder, "description": topology.describe()}
    shown = shows[kind]._repr_mimebundle_(include=None, exclude=None)
    assert shown["image/svg+xml"] == topology.describe().to_svg()
    assert shown["text/html"] == f"<div>{topology.describe().to_svg()}</div>"
    assert shown["text/plain"] == str(topology.describe())
