"""Outline of a topology: its nodes and stores without functions, as values that lie in the log as JSON.

An application's outline is what a later version of it is compared with. Internal topics have their short names in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from hashlib import blake2b
from types import CodeType
from typing import Any, ClassVar

from headrace.config import StreamsConfig
from headrace.record import WithKey
from headrace.serdes import Serde
from headrace.serdes.base import resolved
from headrace.state import StoreBuilder
from headrace.state.stores.suppliers import VersionedSupplier, WindowSupplier
from headrace.topology.graph import Graph
from headrace.topology.levels import back_edges
from headrace.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headrace.topology.operations import Operation
from headrace.topology.queryable_stores import logged_stores

_GENERATED = re.compile(r"-\d{10}(-|$)")
_NO_ID = "application"
# What a node tells its children depends on who they are, not on what it does.
_BY_CHILDREN = {"send_old", "use_old"}


def is_generated(name: str) -> bool:
    """Returns whether a name counts the operators before it, because the user gave none.

    >>> is_generated("KSTREAM-AGGREGATE-STATE-STORE-0000000003"), is_generated("counts")
    (True, False)
    """
    return _GENERATED.search(name) is not None


@dataclass(frozen=True)
class NodeOutline:
    """A source, a processor or a sink."""

    SOURCE: ClassVar[str] = "Source"
    SINK: ClassVar[str] = "Sink"

    name: str
    operation: str
    """Class of a processor's operation, else ``SOURCE`` or ``SINK``."""
    parents: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    """What a source reads, or a sink writes; the pattern if it reads by one."""
    details: str = ""
    """What decides its results besides functions: windows, the side of a join."""
    functions: str = ""
    """Digest of the code of its functions, which tells apart nodes that are otherwise alike."""


@dataclass(frozen=True)
class StoreOutline:
    """A store, as far as its rows depend on it."""

    name: str
    kind: str
    key_serde: str
    value_serde: str
    window_ms: int | None = None
    """Length of a window: rows have only its start."""
    retention_ms: int | None = None
    topic: str | None = None
    """What it is restored from, without the application's id; None: it is lost with its process."""
    is_logged: bool = False
    """Whether that is a changelog topic of its own."""
    with_duplicates: bool = False
    """Whether a key can have several rows in a window."""
    by_time: bool = False
    """Whether working copies have its rows in the order of time."""
    is_global: bool = False


@dataclass(frozen=True)
class PartOutline:
    """A sub-topology that has tasks."""

    number: int
    tasks: int
    nodes: tuple[str, ...]
    stores: tuple[str, ...]
    topics: Mapping[str, int] = field(default_factory=dict)
    """Partitions of what its tasks read; short names of internal topics."""


@dataclass(frozen=True)
class Outline:
    """All of a topology that a change has to know; nodes in their order, parents before their children."""

    nodes: tuple[NodeOutline, ...] = ()
    stores: tuple[StoreOutline, ...] = ()
    parts: tuple[PartOutline, ...] = ()
    internal_topics: tuple[str, ...] = ()
    back_edges: tuple[str, ...] = ()
    """Those of the internal topics that are in the log."""

    @classmethod
    def of(cls, topology: Graph, config: StreamsConfig, external: Mapping[str, int]) -> Outline:
        """Takes the outline of a topology, given the partitions of the topics of others.

        >>> from headrace import Materialized, StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> table = builder.stream("in").group_by_key().count(materialized=Materialized("counts"))
        >>> outline = Outline.of(builder.build(), StreamsConfig(application_id="app"), {"in": 2})
        >>> [(store.name, store.kind, store.value_serde, store.topic) for store in outline.stores]
        [('counts', 'timestamped_key_value', 'long', 'counts-changelog')]
        >>> [part.tasks for part in outline.parts]
        [2]
        """
        counts, tasks = topology.partition_counts(external), topology.task_counts(external)
        parts = [part for part in topology.subtopologies() if not part.is_global]
        return cls(
            tuple(_node(topology.nodes[name]) for part in parts for name in part.nodes),
            tuple(_stores(topology, config)),
            tuple(
                PartOutline(
                    part.id,
                    tasks[part.id],
                    part.nodes,
                    tuple(sorted(part.state_stores)),
                    _topics(topology, part.nodes, counts, external),
                )
                for part in parts
            ),
            tuple(sorted(topic.name for topic in topology.internal_topics(_NO_ID).values())),
            tuple(sorted(back_edges(topology))),
        )

    @cached_property
    def store_named(self) -> Mapping[str, StoreOutline]:
        return {store.name: store for store in self.stores}

    @cached_property
    def node_named(self) -> Mapping[str, NodeOutline]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def home(self) -> Mapping[str, PartOutline]:
        """The sub-topology of each store that belongs to tasks."""
        return {store: part for part in self.parts for store in part.stores}

    @cached_property
    def reader(self) -> Mapping[str, PartOutline]:
        """The sub-topology that reads each topic: there is only one."""
        return {topic: part for part in self.parts for topic in part.topics}

    def full_topic_name(self, topic: str, application: str) -> str:
        """Returns a topic's name in the log."""
        return f"{application}-{topic}" if topic in self.internal_topics else topic

    def changelog_of(self, store: str, application: str) -> str | None:
        """Returns the name in the log of a store's changelog; None if it has none of its own."""
        found = self.store_named.get(store)
        return f"{application}-{found.topic}" if found is not None and found.is_logged else None

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON has it; what a value has by default is left out."""
        return {
            "nodes": [_plain(node) for node in self.nodes],
            "stores": [_plain(store) for store in self.stores],
            "parts": [_plain(part) for part in self.parts],
            "internal_topics": list(self.internal_topics),
            "back_edges": list(self.back_edges),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Outline:
        """Reads what ``to_json`` has made.

        >>> outline = Outline((NodeOutline("a", NodeOutline.SOURCE, topics=("in",)),), internal_topics=("b",))
        >>> Outline.from_json(outline.to_json()) == outline
        True
        """
        return cls(
            tuple(NodeOutline(**_tuples(node)) for node in found["nodes"]),
            tuple(StoreOutline(**store) for store in found["stores"]),
            tuple(PartOutline(**_tuples(part)) for part in found["parts"]),
            tuple(found["internal_topics"]),
            tuple(found["back_edges"]),
        )


def serde_name(serde: Serde[Any]) -> str:
    """Returns the name of the format that a serde writes, as far as its class tells.

    >>> from headrace import Serdes
    >>> serde_name(Serdes.long()), serde_name(Serdes.json(int)), serde_name(Serdes.list_of(Serdes.string()))
    ('long', 'json(int)', 'list(string)')
    """
    name = type(serde).__name__.removesuffix("Serde").removeprefix("Typed").lower() or type(serde).__name__
    inside = ", ".join(_inside(serde)) if is_dataclass(serde) else ""
    return f"{name}({inside})" if inside else name


def _inside(serde: Any) -> Iterator[str]:
    for each in fields(serde):
        value = getattr(serde, each.name)
        if hasattr(value, "deserializer") and not isinstance(value, type):
            yield serde_name(value)
        elif each.name == "type" and value is not None:
            yield getattr(value, "__qualname__", str(value)).rpartition(".")[2]
        elif each.name == "write" and callable(value):
            yield getattr(value, "__qualname__", type(value).__qualname__).rpartition(".")[2]


def _node(node: Node) -> NodeOutline:
    match node:
        case SourceNode():
            topics = node.topics if node.pattern is None else (node.pattern.pattern,)
            return NodeOutline(node.name, NodeOutline.SOURCE, topics=topics)
        case SinkNode():
            written = () if node.topic is None else (node.topic,)
            return NodeOutline(node.name, NodeOutline.SINK, node.parents, topics=written)
        case ProcessorNode():
            operation = node.operation
            return NodeOutline(
                node.name,
                type(operation).__name__,
                node.parents,
                node.stores,
                details=", ".join(_details(operation)),
                functions=_digest(operation),
            )


def _stores(topology: Graph, config: StreamsConfig) -> Iterator[StoreOutline]:
    # An application that is copied has another id, and the same outline.
    topics = topology.changelog_topics(_NO_ID)
    internal = topology.internal_topics(_NO_ID)
    for name in topology.state_stores:
        topic, is_logged = topics.get(name), name in logged_stores(topology, _NO_ID)
        if topic is not None and (is_logged or topic in internal):
            topic = topic.removeprefix(f"{_NO_ID}-")
        yield _store(topology.store_builders[name], config, topic, is_logged=is_logged)
    for store in topology.global_stores.values():
        yield _store(store.builder, config, store.topic, is_global=True)


def _store(
    builder: StoreBuilder, config: StreamsConfig, topic: str | None, *, is_logged: bool = False, is_global: bool = False
) -> StoreOutline:
    supplier = builder.supplier
    windowed = supplier if isinstance(supplier, WindowSupplier) else None
    history = supplier.history_retention_ms if isinstance(supplier, VersionedSupplier) else None
    return StoreOutline(
        builder.name,
        builder.kind,
        _serde_name(builder.key_serde, config, is_key=True),
        _serde_name(builder.value_serde, config, is_key=False),
        None if windowed is None else windowed.window_size_ms,
        builder.retention_ms if history is None else history,
        topic,
        is_logged,
        windowed is not None and windowed.retain_duplicates,
        bool(getattr(supplier, "time_index", False)),
        is_global,
    )


def _serde_name(serde: Serde[Any] | None, config: StreamsConfig, *, is_key: bool) -> str:
    wants_key: bool = getattr(serde, "inner_is_key", is_key)
    return serde_name(resolved(serde, config.default_key_serde if wants_key else config.default_value_serde))


def _topics(
    topology: Graph, nodes: tuple[str, ...], counts: Mapping[str, int], external: Mapping[str, int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in nodes:
        node = topology.nodes[name]
        if isinstance(node, SourceNode):
            matched = [topic for topic in external if topology.source_for(topic) == node]
            found |= {topic: counts.get(topic, external.get(topic, 0)) for topic in node.topics or matched}
    return dict(sorted(found.items()))


def _details(operation: Operation) -> Iterator[str]:
    for each in fields(operation):
        value = getattr(operation, each.name)
        if each.name in _BY_CHILDREN or value is None:
            continue
        if isinstance(value, Enum):
            yield f"{each.name}={value.name}"
        elif isinstance(value, int):
            yield f"{each.name}={value}"
        elif each.name == "windows":
            yield f"windows={value!r}" if is_dataclass(value) else f"windows={type(value).__qualname__}"


def _digest(operation: Operation) -> str:
    code = [_code(getattr(operation, each.name)) for each in fields(operation)]
    return blake2b("\n".join(code).encode(), digest_size=8).hexdigest() if any(code) else ""


# Any: the user's functions, in whichever form they were given.
def _code(value: Any) -> str:
    if isinstance(value, tuple):
        return "".join(map(_code, value))
    if isinstance(value, WithKey):
        return _code(value.function)
    if isinstance(value, partial):
        return _code(value.func)
    if not callable(value) or isinstance(value, Enum):
        return ""
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return _code_text(code) + "".join(_describe_captured(each) for each in _captures(value))
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _captures(function: Any) -> Iterator[Any]:
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # It names something that is not there yet: itself, for instance.
            continue


def _describe_captured(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | bytes | None) else _code(value)


def _code_text(code: CodeType) -> str:
    return f"{code.co_code.hex()} {code.co_names} {[_constant(each) for each in code.co_consts]}"


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _code_text(value)
    # Another process has them in another order.
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _plain(value: Any) -> dict[str, Any]:
    defaults = {each.name: each.default for each in fields(value)}
    return {name: each for name, each in asdict(value).items() if each != defaults[name] or name == "number"}


def _tuples(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
