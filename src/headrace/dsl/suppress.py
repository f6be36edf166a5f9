"""Holding back updates of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.arguments.durations import to_ms
from headrace.dsl.draft import Draft
from headrace.dsl.graph import GraphNode, Process
from headrace.dsl.requests import ask_for_old_values, lookup_name
from headrace.dsl.stores import suppress_store
from headrace.dsl.suppressed import Suppressed
from headrace.errors import TopologyError
from headrace.topology import operations as ops

if TYPE_CHECKING:
    from headrace.dsl.ktable import KTable


def suppress(table: KTable[Any, Any], suppressed: Suppressed) -> KTable[Any, Any]:
    """Adds the node that buffers a table's updates."""
    draft = table._draft
    if draft.nodes[table._node].versioned:
        raise versioned_suppress(table._where("suppress"))
    named = suppressed.name
    name = draft.names.node("KTABLE-SUPPRESS-") if named is None else named
    by_window_end = suppressed.limit is None
    if suppressed.limit is None:
        wait_ms = _grace_ms(draft, draft.nodes[table._node], "")
    else:
        wait_ms = to_ms(suppressed.limit, "Suppressed: the time limit")
    buffer = suppressed.config
    store_name = f"{named}-store" if named is not None else draft.names.store("KTABLE-SUPPRESS-")
    if named is None and buffer.logging:
        # Kafka Streams counts the changelog as unnamed, but not the buffer, which cannot be queried.
        draft.generated(changelog=f"{store_name}-changelog")
    store = suppress_store(store_name, buffer, table._key_serde, table._value_serde)
    ask_for_old_values(draft, table._node, force=True)
    node = draft.add(
        Process,
        name,
        (table._node,),
        operation=ops.Suppress(
            lookup_name(draft, table._node),
            store.name,
            wait_ms,
            by_window_end,
            buffer.record_limit,
            buffer.byte_limit,
            buffer.strict,
            send_old=True,
        ),
        stores=(store,),
        versioned=False,
    )
    return replace(table, _node=node, _name=name, _queryable_name=None)


def versioned_suppress(where: str) -> TopologyError:
    """Returns the error for a suppression of a table that keeps older versions."""
    message = (
        f"{where}: suppress() is only supported for non-versioned KTables; found a versioned one, "
        "or one made from it; suppress a table whose store is not versioned"
    )
    return TopologyError(message)


def _grace_ms(draft: Draft, node: GraphNode, chain: str) -> int:
    if node.grace_ms is not None:
        return node.grace_ms
    chain = f"{node.name}->{chain}" if chain else node.name
    if not node.parents:
        message = (
            "suppress() until windows close: only a windowed computation has windows that close; "
            f"found none in [{chain}]; aggregate with windowed_by(…) before, or use Suppressed.until_time_limit"
        )
        raise TopologyError(message)
    return max(_grace_ms(draft, draft.nodes[parent], chain) for parent in node.parents)
