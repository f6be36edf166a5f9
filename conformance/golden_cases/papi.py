"""Builds the topology of a Processor API case."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType

from golden_cases.case import Case, GoldenNode
from golden_cases.processors import Extractor, Supplier, TopicName
from headrace import Serdes, Stores, Topology

STRING = Serdes.string()


def build(case: Case, functions: ModuleType) -> Topology:
    """Builds the topology with the calls that the case lists, in their order."""
    topology = Topology()
    for node in case["nodes"]:
        _CALLS[node["op"]](topology, node, functions)
    return topology


def _add_source(topology: Topology, node: GoldenNode, functions: ModuleType) -> None:
    extractor = Extractor(functions.TIMESTAMP_EXTRACTORS[node["extractor"]]) if "extractor" in node else None
    topology.add_source(
        node["name"], *node["topics"], key_serde=STRING, value_serde=STRING, timestamp_extractor=extractor
    )


def _add_processor(topology: Topology, node: GoldenNode, functions: ModuleType) -> None:
    topology.add_processor(node["name"], Supplier(functions, node), *node["of"])


def _add_state_store(topology: Topology, node: GoldenNode, _functions: ModuleType) -> None:
    if node["type"] == "window":
        window = Stores.in_memory_window_store(
            node["store"],
            timedelta(milliseconds=node["retention_ms"]),
            timedelta(milliseconds=node["size_ms"]),
            retain_duplicates=False,
        )
        topology.add_state_store(Stores.window_store_builder(window, STRING, STRING), *node["of"])
    else:
        plain = Stores.in_memory_key_value_store(node["store"])
        topology.add_state_store(Stores.key_value_store_builder(plain, STRING, STRING), *node["of"])


def _add_global_store(topology: Topology, node: GoldenNode, functions: ModuleType) -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store(node["store"]), STRING, STRING)
    topology.add_global_store(
        store.with_logging_disabled(),
        node["source"],
        node["topic"],
        node["name"],
        Supplier(functions, node),
        key_serde=STRING,
        value_serde=STRING,
    )


def _add_sink(topology: Topology, node: GoldenNode, functions: ModuleType) -> None:
    topic = TopicName(functions, node["topic"], node["topic_fn"]) if "topic_fn" in node else node["topic"]
    topology.add_sink(node["name"], topic, *node["of"], key_serde=STRING, value_serde=STRING)


_CALLS = {
    "add_source": _add_source,
    "add_processor": _add_processor,
    "add_state_store": _add_state_store,
    "add_global_store": _add_global_store,
    "add_sink": _add_sink,
}
