"""Requests of operations to their parent tables: to send old values, or to keep rows for lookups.

Both may make a table keep its rows although nobody asked for a store. What a table can answer depends on what was asked
before, so the answers are recorded in the draft by the call that asks.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.dsl.draft import Draft
from headrace.dsl.graph import NodeId, Process, TableJoin, TableSource
from headrace.topology import operations as ops

_DERIVED = (ops.TableFilter, ops.TableMapValues, ops.TableTransformValues)


def ask_for_old_values(draft: Draft, table: NodeId, *, force: bool) -> bool:
    """Makes a table send old values with its changes; without ``force`` only if that takes no further store.

    Returns whether it does.
    """
    if table in draft.sends_old:
        return True
    node = draft.nodes[table]
    if isinstance(node, TableJoin):
        for parent in (node.this_table, node.other_table):
            ask_for_old_values(draft, parent, force=True)
        draft.change(
            table,
            this_operation=replace(node.this_operation, send_old=True),
            other_operation=replace(node.other_operation, send_old=True),
            merge_operation=replace(node.merge_operation, send_old=True),
        )
    else:
        assert isinstance(node, Process | TableSource)  # nothing else makes a table
        if not _send_old(draft, node, force=force):
            return False
    draft.sends_old.add(table)
    return True


def _send_old(draft: Draft, node: Process | TableSource, *, force: bool) -> bool:
    operation = node.operation
    if isinstance(operation, ops.TableSource):
        if operation.store is None and not force:
            return False
        _keep_rows(draft, node)
    elif isinstance(operation, ops.Suppress):
        return ask_for_old_values(draft, node.parents[0], force=force)
    elif isinstance(operation, _DERIVED):
        if operation.store is None and not ask_for_old_values(draft, node.parents[0], force=force):
            return False
    elif isinstance(operation, ops.TablePassThrough):
        for parent in node.parents:
            _set_old(draft, parent)
        return True
    _set_old(draft, node.id)
    return True


def _set_old(draft: Draft, table: NodeId) -> None:
    node = draft.nodes[table]
    assert isinstance(node, Process | TableSource)  # nothing else makes a table
    operation = node.operation
    if isinstance(operation, ops.TableFilter):
        changed: ops.Operation = replace(operation, send_old=True, use_old=True)
    else:
        # Every operation that makes a table has the flag; the base class, which streams share, does not.
        changed = replace(operation, send_old=True)  # type: ignore[call-arg]
    draft.change(table, operation=changed)


def _keep_rows(draft: Draft, node: Process | TableSource) -> str:
    assert isinstance(node.operation, ops.TableSource)  # the callers' case
    store = node.store if isinstance(node, TableSource) else node.stores[0]
    if node.operation.store is None:
        draft.change(node.id, operation=replace(node.operation, store=store.name))
    return store.name


def rows_of(draft: Draft, table: NodeId) -> tuple[str, ...]:
    """Makes sure that a table's rows can be looked up, and returns the stores it takes to do so."""
    if table not in draft.row_stores:
        draft.row_stores[table] = _row_stores(draft, table)
    return draft.row_stores[table]


def _row_stores(draft: Draft, table: NodeId) -> tuple[str, ...]:
    node = draft.nodes[table]
    if isinstance(node, TableJoin):
        if node.merge_operation.store is not None:
            return (node.merge_operation.store,)
        both = rows_of(draft, node.this_table) + rows_of(draft, node.other_table)
        return tuple(dict.fromkeys(both))
    assert isinstance(node, Process | TableSource)  # nothing else makes a table
    operation = node.operation
    if isinstance(operation, ops.TableSource):
        return (_keep_rows(draft, node),)
    if isinstance(operation, ops.Suppress):
        return (operation.store, *rows_of(draft, node.parents[0]))
    if isinstance(operation, ops.TablePassThrough):
        return rows_of(draft, node.parents[0])
    if isinstance(operation, _DERIVED) and operation.store is None:
        return rows_of(draft, node.parents[0])
    store: str = operation.store  # type: ignore[attr-defined]  # every other operation that makes a table has one
    return (store,)


def lookup_name(draft: Draft, table: NodeId) -> str:
    """Returns the name of the node whose rows are the table's: a cogroup's are those of its first aggregation."""
    node = draft.nodes[table]
    if isinstance(node, Process) and isinstance(node.operation, ops.TablePassThrough):
        return draft.nodes[node.parents[0]].name
    return node.name
