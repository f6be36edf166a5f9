"""Builds the aggregations, tables and joins of a DSL case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from golden_cases.case import GoldenNode
from golden_cases.dsl_build import (
    LONG,
    STRING,
    Call,
    DslBuild,
    grouped,
    materialized,
    millis,
    printed,
    registry,
    value_mapper,
)
from headrace import (
    BufferConfig,
    EmitStrategy,
    Joined,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    Suppressed,
    TableJoined,
    TimeWindows,
    with_key,
)

Windows = TimeWindows | SlidingWindows | SessionWindows
CALLS: dict[str, Call] = {}
op = registry(CALLS)


def _windows(spec: GoldenNode) -> Windows:
    grace = millis(spec["grace_ms"])
    if spec["type"] == "sliding":
        return SlidingWindows.of_time_difference_and_grace(millis(spec["difference_ms"]), grace)
    if spec["type"] == "session":
        return SessionWindows.of_inactivity_gap_and_grace(millis(spec["gap_ms"]), grace)
    windows = TimeWindows.of_size_and_grace(millis(spec["size_ms"]), grace)
    return windows.advance_by(millis(spec["advance_ms"])) if spec["type"] == "hopping" else windows


def _windowed(making: DslBuild, node: GoldenNode, group: Any) -> Any:
    if "windows" not in node:
        return group
    making.windowed.add(node["id"])
    windowed = group.windowed_by(_windows(node["windows"]))
    return windowed.emit_strategy(EmitStrategy.on_window_close()) if "emit" in node else windowed


@op("count")
def _count(making: DslBuild, node: GoldenNode) -> Any:
    store = materialized(node, value_serde=LONG, always=True)
    return _windowed(making, node, making.parent(node)).count(materialized=store, name=node.get("name"))


@op("reduce")
def _reduce(making: DslBuild, node: GoldenNode) -> Any:
    reducer = making.functions.REDUCERS[node["fn"]]
    group = _windowed(making, node, making.parent(node))
    return group.reduce(reducer, materialized=materialized(node, always=True), name=node.get("name"))


def _merger(making: DslBuild, node: GoldenNode) -> dict[str, Any]:
    return {"merger": making.functions.SESSION_MERGERS[node["merger"]]} if "merger" in node else {}


@op("aggregate")
def _aggregate(making: DslBuild, node: GoldenNode) -> Any:
    return _windowed(making, node, making.parent(node)).aggregate(
        making.functions.INITIALIZERS[node["init"]],
        making.functions.AGGREGATORS[node["fn"]],
        **_merger(making, node),
        materialized=materialized(node, always=True),
        name=node.get("name"),
    )


@op("cogroup")
def _cogroup(making: DslBuild, node: GoldenNode) -> Any:
    aggregators = [making.functions.AGGREGATORS[function] for function in node["fns"]]
    cogrouped = making.parent(node).cogroup(aggregators[0])
    for index, aggregator in enumerate(aggregators[1:], start=1):
        cogrouped = cogrouped.cogroup(making.parent(node, index), aggregator)
    return _windowed(making, node, cogrouped).aggregate(
        making.functions.INITIALIZERS[node["init"]],
        **_merger(making, node),
        materialized=materialized(node, always=True),
        name=node.get("name"),
    )


@op("table_group_by")
def _table_group_by(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).group_by(making.functions.PAIR_MAPPERS[node["fn"]], grouped(node))


@op("table_reduce")
def _table_reduce(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).reduce(
        making.functions.REDUCERS[node["add"]],
        making.functions.SUBTRACTORS[node["sub"]],
        materialized=materialized(node, always=True),
        name=node.get("name"),
    )


@op("table_aggregate")
def _table_aggregate(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).aggregate(
        making.functions.INITIALIZERS[node["init"]],
        making.functions.AGGREGATORS[node["add"]],
        making.functions.AGGREGATORS[node["sub"]],
        materialized=materialized(node, always=True),
        name=node.get("name"),
    )


def _keeps_windows(making: DslBuild, node: GoldenNode) -> bool:
    if node["of"][0] in making.windowed:
        making.windowed.add(node["id"])
        return True
    return False


@op("table_filter", "table_filter_not")
def _table_filter(making: DslBuild, node: GoldenNode) -> Any:
    predicate: Callable[..., bool] = making.functions.PREDICATES[node["fn"]]
    if _keeps_windows(making, node):
        plain = predicate

        def predicate(key: Any, value: Any) -> bool:
            return plain(printed(key), value)

    call = getattr(making.parent(node), node["op"].removeprefix("table_"))
    return call(predicate, materialized=materialized(node), name=node.get("name"))


@op("table_map_values")
def _table_map_values(making: DslBuild, node: GoldenNode) -> Any:
    _keeps_windows(making, node)
    return making.parent(node).map_values(
        value_mapper(making, node), materialized=materialized(node), name=node.get("name")
    )


@op("suppress")
def _suppress(making: DslBuild, node: GoldenNode) -> Any:
    _keeps_windows(making, node)
    buffer = BufferConfig.max_records(node["max_records"]) if "max_records" in node else BufferConfig.unbounded()
    name = node.get("name")
    if node["until"] == "window_closes":
        strict = buffer.shut_down_when_full() if "max_records" in node else buffer
        return making.parent(node).suppress(Suppressed.until_window_closes(strict, name=name))
    if "max_records" in node:
        buffer = buffer.shut_down_when_full() if node.get("full") == "shut_down" else buffer.emit_early_when_full()
    return making.parent(node).suppress(Suppressed.until_time_limit(millis(node["limit_ms"]), buffer, name=name))


@op("to_stream")
def _to_stream(making: DslBuild, node: GoldenNode) -> Any:
    selector = making.functions.KEY_SELECTORS[node["fn"]] if "fn" in node else None
    return making.parent(node).to_stream(selector, name=node.get("name"))


@op("to_stream_windowed")
def _to_stream_windowed(making: DslBuild, node: GoldenNode) -> Any:
    return making.parent(node).to_stream(lambda key, _value: printed(key), name=node.get("name"))


@op("join", "left_join", "outer_join")
def _join(making: DslBuild, node: GoldenNode) -> Any:
    join = getattr(making.parent(node), node["op"])
    other = making.parent(node, 1)
    joiner = making.functions.JOINERS[node["fn"]]
    name = node.get("name")
    match node["right"]:
        case "S":
            spec = node["windows"]
            windows = JoinWindows.of_time_difference_and_grace(millis(spec["after_ms"]), millis(spec["grace_ms"]))
            both = StreamJoined(
                key_serde=STRING,
                value_serde=STRING,
                other_value_serde=STRING,
                name=name,
                store_name=node.get("join_store"),
            )
            return join(other, joiner, windows=windows.before(millis(spec["before_ms"])), joined=both)
        case "T":
            grace = millis(node["grace_ms"]) if "grace_ms" in node else None
            joined = Joined(
                key_serde=STRING, value_serde=STRING, other_value_serde=STRING, name=name, grace_period=grace
            )
            return join(other, joiner, joined=joined)
        case "G":
            return join(other, joiner, key_selector=making.functions.KEY_SELECTORS[node["key_fn"]], name=name)
        case _:
            return join(other, joiner, materialized=materialized(node), name=name)


@op("fk_join", "fk_left_join")
def _foreign_key_join(making: DslBuild, node: GoldenNode) -> Any:
    if node.get("with_key"):
        foreign_key: Any = with_key(making.functions.FOREIGN_KEYS_WITH_KEY[node["key_fn"]])
    else:
        foreign_key = making.functions.FOREIGN_KEYS[node["key_fn"]]
    join = getattr(making.parent(node), node["op"].removeprefix("fk_"))
    return join(
        making.parent(node, 1),
        making.functions.JOINERS[node["fn"]],
        foreign_key=foreign_key,
        table_joined=TableJoined(name=node["name"]) if "name" in node else None,
        materialized=materialized(node),
    )
