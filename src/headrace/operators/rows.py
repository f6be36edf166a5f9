"""The rows of a table that an aggregation keeps: how they are read, and how a new one is saved and sent on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

from headrace.errors import SerializationError
from headrace.operators.base import Getter, Node
from headrace.signatures import describe_function
from headrace.state.versioned import PUT_RETURN_CODE_NOT_PUT, VALID_TO_UNDEFINED
from headrace.topics.log import Headers

_logger = logging.getLogger(__name__)

Save: TypeAlias = Callable[[Any, Any, Any, int, int, Headers], None]
"""(key, new, old, newest_ms, timestamp_ms, headers): the time of the row, and the time of the record that made it."""


def rows(store: Any) -> Getter:
    """Returns how the rows of a key-value store are looked up."""
    if store.kind == "versioned":
        return Getter(store.get_pair, store.get_pair_as_of)
    return Getter(store.get_pair)


def forward_flushes(store: Any, node: Node, *, send_old: bool) -> None:
    """Makes a cached store send its changes on whenever it is flushed."""
    store.send_old = send_old
    store.on_flush = node.forward


def saver(store: Any, node: Node, *, send_old: bool) -> Save:
    """Returns what saves a row of a key-value store and, unless a cache holds the change back, forwards it."""
    if store.kind == "versioned":
        return _save_version(store, node, send_old=send_old)
    if store.cached:
        forward_flushes(store, node, send_old=send_old)
        return _save_cached(store, node)
    put_pair, forward, fail = store.put_pair, node.forward, node.fail

    def save(key: Any, new: Any, old: Any, newest_ms: int, timestamp_ms: int, headers: Headers) -> None:
        try:
            put_pair(key, new, newest_ms, headers)
        except SerializationError as error:
            return fail(error, key, new, timestamp_ms, headers)
        return forward(key, new, old if send_old else None, newest_ms, headers, True)

    return save


def _save_cached(store: Any, node: Node) -> Save:
    put_pair, fail = store.put_pair, node.fail

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
