"""Builds the sources, sinks and stream operations of a DSL case."""

from __future__ import annotations

from typing import Any

from golden_cases.case import GoldenNode
from golden_cases.dsl_build import STRING, Call, DslBuild, grouped, materialized, registry, value_mapper
from golden_cases.processors import FixedKeySupplier, Supplier, TopicName
from headrace import Branched, Produced, Repartitioned, Stores

CALLS: dict[str, Call] = {}
op = registry(CALLS)


@op("stream")
def _stream(making: DslBuild, node: GoldenNode) -> Any:
    return making.builder.stream(node.get("topics") or node["topic"], making.consumed(node))


@op("table")
def _table(making: DslBuild, node: GoldenNode) -> Any:
    return making.builder.table(node["topic"], making.consumed(node), materialized(node))


@op("global_table")
def _global_table(making: DslBuild, node: GoldenNode) -> Any:
    return making.builder.global_table(node["topic"], making.consumed(node), materialized(node))


@op("to")
def _to(making: DslBuild, node: GoldenNode) -> None:
    topic = TopicName(making.functions, node["topic"], node["topic_fn"]) if "topic_fn" in node else node["topic"]
    making.parent(node).to(topic, Produced(key_serde=STRING, value_serde=STRING, name=node.get("name")))


@op("filter", "filter_not")
def _filter(making: DslBuild, node: GoldenNode) -> Any:
    predicate = making.functions.PREDICATES[node["fn"]]
    return getattr(making.parent(node), node["op"])(predicate, name=node.get("name"))


@op("map_values")
def _map_values(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).map_values(value_mapper(making, node), name=node.get("name"))


@op("flat_map_values")
def _flat_map_values(making: DslBuild, node: GoldenNode) -> Any:
    mapper = making.functions.FLAT_VALUE_MAPPERS[node["fn"]]
    return making.parent(node).flat_map_values(mapper, name=node.get("name"))


@op("map")
def _map(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).map(making.functions.PAIR_MAPPERS[node["fn"]], name=node.get("name"))


@op("flat_map")
def _flat_map(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).flat_map(making.functions.FLAT_PAIR_MAPPERS[node["fn"]], name=node.get("name"))


@op("select_key")
def _select_key(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).select_key(making.functions.KEY_SELECTORS[node["fn"]], name=node.get("name"))


@op("merge")
def _merge(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).merge(making.parent(node, 1), name=node.get("name"))


@op("branch")
def _branch(making: DslBuild, node: GoldenNode) -> Any:
    if node["group"] not in making.branches:
        making.branches[node["group"]] = _split(making, node)
    return making.branches[node["group"]][node["index"]]


def _split(making: DslBuild, node: GoldenNode) -> list[Any]:
    split = making.parent(node).split(name=node.get("name"))
    names = node.get("branch_names")
    for index, function in enumerate(node["fns"]):
        branched = Branched(name=names[index]) if names else None
        split = split.branch(making.functions.PREDICATES[function], branched)
    made = split.default_branch() if node["default"] else split.no_default_branch()
    return list(made.values())


@op("repartition")
def _repartition(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).repartition(Repartitioned(key_serde=STRING, value_serde=STRING, name=node.get("name")))


@op("peek", "for_each")
def _effect(making: DslBuild, node: GoldenNode) -> Any:
    def action(key: Any, value: Any) -> None:
        making.effects.append([node["id"], key, value])

    return getattr(making.parent(node), node["op"])(action, name=node.get("name"))


def _add_store(making: DslBuild, node: GoldenNode) -> list[str]:
    if "store" not in node:
        return []
    supplier = Stores.in_memory_key_value_store(node["store"])
    making.builder.add_state_store(Stores.key_value_store_builder(supplier, STRING, STRING))
    return [node["store"]]


@op("process")
def _process(making: DslBuild, node: GoldenNode) -> Any:
    stores = _add_store(making, node)
    return making.parent(node).process(Supplier(making.functions, node), *stores, name=node.get("name"))


@op("process_values")
def _process_values(making: DslBuild, node: GoldenNode) -> Any:
    stores = _add_store(making, node)
    return making.parent(node).process_values(FixedKeySupplier(making.functions, node), *stores, name=node.get("name"))


@op("to_table")
def _to_table(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).to_table(materialized(node, always=True), name=node.get("name"))


@op("group_by_key")
def _group_by_key(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).group_by_key(grouped(node))


@op("group_by")
def _group_by(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).group_by(making.functions.KEY_SELECTORS[node["fn"]], grouped(node))
