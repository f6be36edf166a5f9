"""The join of two tables on their key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.dsl.graph import TableJoin
from headrace.dsl.materialized import Materialized
from headrace.dsl.options import TableJoined
from headrace.dsl.requests import ask_for_old_values, lookup_name, rows_of
from headrace.errors import TopologyError
from headrace.record import WithKey
from headrace.topology import operations as ops

if TYPE_CHECKING:
    from headrace.dsl.ktable import KTable


def join_on_key(
    table: KTable[Any, Any],
    other: KTable[Any, Any],
    joiner: Callable[..., Any] | WithKey[Any],
    kind: ops.JoinKind,
    table_joined: TableJoined[Any, Any] | None,
    materialized: Materialized[Any, Any] | None,
    name: str | None,
) -> KTable[Any, Any]:
    """Joins two tables: each side looks up the other's row, and both results meet in one node."""
    if table_joined is not None:
        message = (
            f"join of '{table._name}' and '{other._name}': table_joined is for joins by a foreign key; "
            "found it without foreign_key; pass foreign_key=…, or name=… for a name"
        )
        raise TopologyError(message)
    draft, names = table._draft, table._draft.names
    store = None
    if materialized is not None:
        store = draft.store(materialized, "KTABLE-MERGE-", key_serde=table._key_serde)
    merge = names.named(name, "KTABLE-MERGE-")
    sources = draft.copartition(table._sources | other._sources)
    if kind is not ops.JoinKind.INNER:
        ask_for_old_values(draft, table._node, force=True)
    if kind is ops.JoinKind.OUTER:
        ask_for_old_values(draft, other._node, force=True)
    this_stores, other_stores = rows_of(draft, table._node), rows_of(draft, other._node)
    this_rows, other_rows = lookup_name(draft, table._node), lookup_name(draft, other._node)
    this = names.suffixed(name, "-join-this", "KTABLE-JOINTHIS-")
    that = names.suffixed(name, "-join-other", "KTABLE-JOINOTHER-")
    node = draft.add(
        TableJoin,
        merge,
        (table._node, other._node),
        this=this,
        other=that,
        this_table=table._node,
        other_table=other._node,
        this_operation=ops.TableTableJoin(kind, ops.Side.LEFT, this_rows, other_rows, joiner),
        other_operation=ops.TableTableJoin(kind, ops.Side.RIGHT, other_rows, this_rows, joiner),
        merge_operation=ops.TableJoinMerge(this, that, None if store is None else store.name),
        store=store,
        this_stores=this_stores,
        other_stores=other_stores,
        versioned=store is not None and store.versioned,
    )
    return replace(
        table,
        _node=node,
        _name=merge,
        _key_serde=table._key_serde if store is None else store.key_serde,
        _value_serde=None if store is None else store.value_serde,
        _sources=sources,
        _queryable_name=store.name if store is not None and store.queryable else None,
    )
