"""The picture of a topology as SVG: sub-topologies are boxes, records flow downwards, state lies beside its processor.

The arrangement is that of the console (``graph.js``), for places where no script runs: notebooks, files, mails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.topology.describe import NodeDescription, TopologyDescription

_NARROW, _WIDE, _HIGH, _STORE_WIDE, _STORE_HIGH = 150, 340, 46, 220, 22
_GAP_X, _GAP_Y, _MARGIN, _TITLE, _INSIDE, _STORE_GAP = 36, 34, 22, 24, 14, 16
_SMALL_LETTER, _OTHER_LETTER = 6.6, 8.2
"""About the widths of letters at 12 pixels; there is nobody to measure them."""
_STYLES = {
    "source": 'fill="#e6f2ff" stroke="#3d7ab8"',
    "processor": 'fill="#ffffff" stroke="#7a8794"',
    "sink": 'fill="#e8f6ec" stroke="#3c8c57"',
    "store": 'fill="#fff4dd" stroke="#b98a2f"',
}


def to_svg(description: TopologyDescription) -> str:
    """Returns the picture, complete in itself."""
    parts = [(f"Sub-topology {part.id}", part.nodes) for part in description.subtopologies]
    parts += [
        (f"Sub-topology {part.id}: global store", (part.source, part.processor)) for part in description.global_stores
    ]
    boxes = [_Box.of(title, [_Label.of(node) for node in nodes]) for title, nodes in parts]
    width = max([box.width for box in boxes] + [320.0]) + 2 * _MARGIN
    top, placed = float(_MARGIN), []
    for box in boxes:
        placed.append((box, (width - box.width) / 2, top))
        top += box.height + _GAP_Y
    where = {
        name: (x + left, y + above, box.labels[name])
        for box, left, above in placed
        for name, (x, y) in box.places.items()
    }
    shapes = [shape for box, left, above in placed for shape in _frame(box, left, above)]
    shapes += _lines([node for _, nodes in parts for node in nodes], where)
    shapes += [shape for x, y, label in where.values() for shape in _node(label, x, y)]
    size = f'width="{width:.0f}" height="{top:.0f}" viewBox="0 0 {width:.0f} {top:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Topology" '
            'style="max-width: 100%; height: auto" font-family="system-ui, sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *shapes,
            "</svg>",
        ]
    )


@dataclass(frozen=True)
class _Label:
    """A node with what stands in its box."""

    name: str
    kind: str
    title: str
    quiet: str
    stores: tuple[str, ...]
    predecessors: tuple[str, ...]
    width: float

    @classmethod
    def of(cls, node: NodeDescription) -> _Label:
        kind = type(node).__name__.removesuffix("Description").lower()
        topics = getattr(node, "topics", None) or (getattr(node, "topic", None),)
        topic = ", ".join(filter(None, topics)) or getattr(node, "pattern", None) or getattr(node, "extractor", None)
        title, quiet = (topic, node.name) if topic else (node.name, kind)
        wanted = max(_width(title), _width(quiet)) + 2 * _INSIDE
        width = min(_WIDE, max(_NARROW, wanted))
        return cls(node.name, kind, title, quiet, tuple(getattr(node, "stores", ())), node.predecessors, width)

    @property
    def side(self) -> float:
        """Room for the stores at its side."""
        return _STORE_GAP + max(map(_store_width, self.stores)) if self.stores else 0.0

    @property
    def height(self) -> float:
        return max(_HIGH, len(self.stores) * (_STORE_HIGH + 4) + 4)


@dataclass(frozen=True)
class _Box:
    """A sub-topology, with the places of its nodes in it."""

    title: str
    labels: Mapping[str, _Label]
    places: Mapping[str, tuple[float, float]]
    width: float
    height: float

    @classmethod
    def of(cls, title: str, nodes: Sequence[_Label]) -> _Box:
        """Puts each node above the middle of what it feeds first; none stands in the column of another's children."""
        labels = {label.name: label for label in nodes}
        ranks = _ranks(labels)
        children: dict[str, list[str]] = {name: [] for name in labels}
        roots: list[str] = []
        for name, label in labels.items():
            feeders = [feeder for feeder in label.predecessors if feeder in labels and ranks[feeder] < ranks[name]]
            # The lowest of those that feed it: then all lines lead downwards.
            siblings = children[max(feeders, key=ranks.__getitem__)] if feeders else roots
            siblings.append(name)
        heights = [
            max((labels[name].height for name in labels if ranks[name] == rank), default=0.0)
            for rank in range(1 + max(ranks.values(), default=0))
        ]
        tops = [_TITLE + _MARGIN + sum(heights[:rank]) + rank * _GAP_Y for rank in range(len(heights))]
        by_rank = sorted(labels, key=ranks.__getitem__)
        reaches = _reaches(labels, children, reversed(by_rank))
        middles, end = {}, 0.0
        for root in roots:
            middles[root] = end + reaches[root].left
            end += reaches[root].left + reaches[root].right + _GAP_X
        for name in by_rank:
            for child, shift in zip(children[name], reaches[name].shifts, strict=True):
                middles[child] = middles[name] + shift
        places = {
            name: (_MARGIN + middle - labels[name].width / 2, tops[ranks[name]]) for name, middle in middles.items()
        }
        width = max(end - _GAP_X, _width(title)) + 2 * _MARGIN
        return cls(title, labels, places, width, tops[-1] + heights[-1] + _MARGIN)


@dataclass(frozen=True)
class _Reach:
    """Extent of a node and all below it from its middle, and the distances of its children's middles from it."""

    left: float
    right: float
    shifts: tuple[float, ...]


def _reaches(
    labels: Mapping[str, _Label], children: Mapping[str, Sequence[str]], upwards: Iterable[str]
) -> dict[str, _Reach]:
    found: dict[str, _Reach] = {}
    for name in upwards:
        end, middles = 0.0, []
        for child in children[name]:
            middles.append(end + found[child].left)
            end = middles[-1] + found[child].right + _GAP_X
        middle = (middles[0] + middles[-1]) / 2 if middles else 0.0
        half = labels[name].width / 2
        right = max(half + labels[name].side, end - _GAP_X - middle)
        found[name] = _Reach(max(half, middle), right, tuple(one - middle for one in middles))
    return found


def _ranks(labels: Mapping[str, _Label]) -> dict[str, int]:
    """Returns how deep each node stands: below the lowest of those that feed it."""
    feeders = {name: [one for one in label.predecessors if one in labels] for name, label in labels.items()}
    ranks: dict[str, int] = {}
    for name in TopologicalSorter(feeders).static_order():
        ranks[name] = 1 + max((ranks[feeder] for feeder in feeders[name]), default=-1)
    return ranks


def _frame(box: _Box, left: float, top: float) -> Iterator[str]:
    yield _rectangle(left, top, box.width, box.height, 12, 'fill="#f6f8fa" stroke="#d0d7de"')
    yield f'<text x="{left + 14:.1f}" y="{top + 20:.1f}" fill="#57606a" font-size="11">{escape(box.title)}</text>'


def _lines(nodes: Sequence[NodeDescription], where: Mapping[str, tuple[float, float, _Label]]) -> Iterator[str]:
    writers: dict[str, list[str]] = {}
    for node in nodes:
        if topic := getattr(node, "topic", None):
            writers.setdefault(topic, []).append(node.name)
    for node in nodes:
        for successor in node.successors:
            yield from _arrow(where[node.name], where[successor], "")
        for topic in getattr(node, "topics", None) or ():
            for writer in writers.get(topic, ()):
                yield from _arrow(where[writer], where[node.name], ' stroke-dasharray="5 4"')


def _arrow(above: tuple[float, float, _Label], below: tuple[float, float, _Label], dashes: str) -> Iterator[str]:
    x1, y1 = above[0] + above[2].width / 2, above[1] + _HIGH
    x2, y2 = below[0] + below[2].width / 2, below[1]
    bend = max(18.0, abs(y2 - y1) / 2)
    path = f"M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2 - 6:.1f}"
    yield f'<path d="{path}" fill="none" stroke="#57606a"{dashes}/>'
    yield f'<path d="M{x2 - 4:.1f} {y2 - 7:.1f} h8 l-4 7 z" fill="#57606a"/>'


def _node(label: _Label, x: float, y: float) -> Iterator[str]:
    middle, room = x + label.width / 2, label.width - 2 * _INSIDE
    full = label.name if label.title == label.name else f"{label.name}\n{label.title}"
    yield f"<g><title>{escape(full)}</title>"
    yield _rectangle(x, y, label.width, _HIGH, 6 if label.kind == "processor" else _HIGH // 2, _STYLES[label.kind])
    yield _centred(middle, y + 19, _fitting(label.title, room), 'fill="#1f2328"')
    yield _centred(middle, y + 36, _fitting(label.quiet, room), 'fill="#57606a" font-size="11"')
    yield "</g>"
    left = x + label.width + _STORE_GAP
    for number, store in enumerate(label.stores):
        top = y + 4 + number * (_STORE_HIGH + 4)
        start, end = f'x1="{x + label.width:.1f}" y1="{y + _HIGH / 2:.1f}"', f'x2="{left:.1f}" y2="{top + 11:.1f}"'
        yield f'<line {start} {end} stroke="#b98a2f"/>'
        yield f"<g><title>{escape(store)}</title>"
        yield _rectangle(left, top, _store_width(store), _STORE_HIGH, 4, _STYLES["store"])
        text = escape(_fitting(store, _STORE_WIDE - 15))
        yield f'<text x="{left + 8:.1f}" y="{top + 15:.1f}" fill="#1f2328">{text}</text>'
        yield "</g>"


def _rectangle(x: float, y: float, width: float, height: float, round_by: int, style: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_by}" {style}/>'


def _centred(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" {style}>{escape(text)}</text>'


def _width(text: str) -> float:
    return sum(_SMALL_LETTER if letter.islower() else _OTHER_LETTER for letter in text)


def _store_width(name: str) -> float:
    return min(_STORE_WIDE, _width(name) + 16)


def _fitting(text: str, room: float) -> str:
    """Returns as much of a text as there is room for."""
    if _width(text) <= room + 1:
        return text
    return next(short for end in range(len(text), 0, -1) if _width(short := f"{text[:end]}…") <= room)
