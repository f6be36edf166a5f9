"""Common part of building the operations of a DSL case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from types import ModuleType
from typing import Any

from golden_cases.case import GoldenNode
from golden_cases.effects import EffectSink
from golden_cases.processors import Extractor
from headrace import (
    Consumed,
    Grouped,
    Materialized,
    Serdes,
    Stores,
    StreamsBuilder,
    with_key,
)

STRING = Serdes.string()
LONG = Serdes.long()


def millis(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def printed(windowed: Any) -> str:
    return f"{windowed.key}@{windowed.window.start_ms}/{windowed.window.end_ms}"


@dataclass
class DslBuild:
    """A topology in the making: the builder and the handle that each node gave."""

    functions: ModuleType
    effects: EffectSink
    builder: StreamsBuilder = field(default_factory=StreamsBuilder)
    handles: dict[str, Any] = field(default_factory=dict)
    windowed: set[str] = field(default_factory=set)
    """Ids of the tables with a windowed key."""
    branches: dict[str, list[Any]] = field(default_factory=dict)
    """The streams of each split, by group."""

    def parent(self, node: GoldenNode, index: int = 0) -> Any:
        return self.handles[node["of"][index]]

    def extractor(self, node: GoldenNode) -> Extractor | None:
        return Extractor(self.functions.TIMESTAMP_EXTRACTORS[node["extractor"]]) if "extractor" in node else None

    def consumed(self, node: GoldenNode) -> Consumed[Any, Any]:
        return Consumed(
            key_serde=STRING,
            value_serde=STRING,
            timestamp_extractor=self.extractor(node),
            name=node.get("name"),
        )


Call = Callable[[DslBuild, GoldenNode], Any]


def registry(calls: dict[str, Call]) -> Callable[..., Callable[[Call], Call]]:
    """Returns a decorator that notes in ``calls`` which function builds which operations."""

    def op(*names: str) -> Callable[[Call], Call]:
        def register(call: Call) -> Call:
            calls.update(dict.fromkeys(names, call))
            return call

        return register

    return op


def materialized(node: GoldenNode, *, value_serde: Any = STRING, always: bool = False) -> Materialized[Any, Any] | None:
    """Returns the store that a node asks for; without one, the serdes alone if the call ``always`` takes them."""
    if "store" not in node:
        return Materialized(key_serde=STRING, value_serde=value_serde) if always else None
    store = node["store"]
    if "versioned_ms" in node:
        store = Stores.persistent_versioned_key_value_store(store, millis(node["versioned_ms"]))
    retention = millis(node["retention_ms"]) if "retention_ms" in node else None
    return Materialized(store, key_serde=STRING, value_serde=value_serde, retention=retention)


def value_mapper(making: DslBuild, node: GoldenNode) -> Any:
    if node.get("with_key"):
        function = making.functions.VALUE_MAPPERS_WITH_KEY[node["fn"]]
        if node["of"][0] in making.windowed:
            return with_key(lambda key, value: function(printed(key), value))
        return with_key(function)
    return making.functions.VALUE_MAPPERS[node["fn"]]


def grouped(node: GoldenNode) -> Grouped[Any, Any]:
    return Grouped(name=node.get("name"), key_serde=STRING, value_serde=STRING)
