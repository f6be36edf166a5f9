"""The rows of a table that an aggregation keeps: how they are read, and how a new one is saved and sent on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

from headrace.arguments.signatures import describe_function
from headrace.errors import SerializationError
from headrace.operators.base import Edge, HeldBack, Node, ValueGetter
from headrace.state.stores.versioned import PUT_RETURN_CODE_NOT_PUT, VALID_TO_UNDEFINED
from headrace.topics.log import Headers

_logger = logging.getLogger(__name__)

Save: TypeAlias = Callable[[Any, Any, Any, int, int, Headers], None]
"""(key, new, old, newest_ms, timestamp_ms, headers): the time of the row, and the time of the record that made it."""


def rows(store: Any) -> ValueGetter:
    """Returns how the rows of a key-value store are looked up."""
    if store.kind == "versioned":
        return ValueGetter(store.get_pair, store.get_pair_as_of)
    held_back = HeldBack(store.holds_back, store.told_pair, store.flush_cache) if store.cached else None
    return ValueGetter(store.get_pair, held_back=held_back)


def forward_flushes(store: Any, node: Node, *, send_old: bool) -> None:
    """Makes a cached store send its changes on whenever it is flushed."""
    store.send_old = send_old
    store.on_flush = node.forward


def saver(store: Any, node: Node, *, send_old: bool) -> Save:
    """Returns what saves a row of a key-value store and, unless a cache holds the change back, forwards it."""
    if store.kind == "versioned":
        return _save_version(store, node, send_old=send_old)
    return _save_by(store.put_pair, store, node, send_old=send_old)


def _save_by(put_pair: Callable[..., None], store: Any, node: Node, *, send_old: bool) -> Save:
    if store.cached:
        forward_flushes(store, node, send_old=send_old)
        return _save_cached(put_pair, node)
    forward, fail = node.forward, node.fail

    def save(key: Any, new: Any, old: Any, newest_ms: int, timestamp_ms: int, headers: Headers) -> None:
        try:
            put_pair(key, new, newest_ms, headers)
        except SerializationError as error:
            return fail(error, key, new, timestamp_ms, headers)
        return forward(key, new, old if send_old else None, newest_ms, headers, True)

    return save


def expiring(edge: Edge, store: Any, node: Node, *, send_old: bool) -> Edge:
    """Returns the edge of a table's node for rows that may have a time to live.

    A row that is over is deleted like any other. A record never finds one under its key: it goes before the record.
    """
    expiry = node.expiry(store.name)
    if expiry is None:
        return edge
    # Rows that are over have left the index already.
    delete = _save_by(store.put_unindexed, store, node, send_old=send_old)
    expiry.owned_by(node.name, delete, send_old=send_old)
    settle = expiry.settle

    def update(key: Any, *change: Any) -> None:
        settle(key)
        edge(key, *change)

    return update


def _save_cached(put_pair: Callable[..., None], node: Node) -> Save:
    fail = node.fail

    def save(key: Any, new: Any, old: Any, newest_ms: int, timestamp_ms: int, headers: Headers) -> None:
        try:
            # A deleted row has no time of its own: the cache sends it on with the time of the record that deleted it.
            put_pair(key, new, timestamp_ms if new is None else newest_ms, headers)
        except SerializationError as error:
            fail(error, key, new, timestamp_ms, headers)

    return save


def _save_version(store: Any, node: Node, *, send_old: bool) -> Save:
    put, forward, fail = store.put, node.forward, node.fail

    def save(key: Any, new: Any, old: Any, newest_ms: int, timestamp_ms: int, headers: Headers) -> None:
        try:
            valid_to_ms = put(key, new, newest_ms)
        except SerializationError as error:
            return fail(error, key, new, timestamp_ms, headers)
        if valid_to_ms != PUT_RETURN_CODE_NOT_PUT:
            forward(key, new, old if send_old else None, newest_ms, headers, valid_to_ms == VALID_TO_UNDEFINED)
        return None

    return save


def warner(node: Node, function: Any) -> Callable[[], None]:
    """Returns what warns, once, of an aggregator that gave None for a key without a row: nothing comes of it."""
    warned = False

    def warn() -> None:
        nonlocal warned
        if not warned:
            warned = True
            _logger.warning(
                "node '%s': %s returned None for a key that has no row, so nothing is kept; "
                "an aggregator returns the new aggregate, also when it has changed the old one in place",
                node.name,
                describe_function(function),
            )

    return warn


def keeper(store: Any) -> Callable[[Any], Any]:
    """Returns what keeps an old value safe from an aggregator that changes it in place and returns it."""
    # Inline stores hold immutable values; a copy of one from another store costs little, as it is immutable itself.
    return _same if getattr(store, "inline", False) else deepcopy


def _same(value: Any) -> Any:
    return value
