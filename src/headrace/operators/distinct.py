"""Deduplication of a stream: of the records with one identity the first passes, and those soon after it do not."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from headrace.errors import SerializationError
from headrace.operators.base import Edge, Node, operator
from headrace.operators.emit import NEVER
from headrace.serdes import Serdes
from headrace.serdes.base import resolved
from headrace.topics.log import Headers
from headrace.topology.operations import Distinct

_LENGTH = Struct(">I")
# (key, value) -> what the store knows the record by; None for one that repeats nothing.
Identify = Callable[[Any, Any], Any]


@operator.register
def _distinct(operation: Distinct, node: Node) -> Edge:
    store, within_ms, identify = node.store(operation.store), operation.within_ms, _identifying(operation, node)
    fetch, put, forward, drop, fail = store.fetch_pairs, store.put_pair, node.forward, node.drop, node.fail
    time = node.cell(operation.store, "stream-time", NEVER)

    def pass_first(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        now_ms = time.value
        if timestamp_ms > now_ms:
            time.value = now_ms = timestamp_ms
        try:
            identity = identify(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if identity is None:
            return forward(key, value, timestamp_ms, headers)
        since_ms = now_ms - within_ms
        try:
            if fetch(identity, since_ms if since_ms > 0 else 0, timestamp_ms + within_ms):
                return drop()
            # A record that is older than that passes, and is not remembered.
            if timestamp_ms >= since_ms:
                put(identity, timestamp_ms, True, timestamp_ms)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, value, timestamp_ms, headers)

    return pass_first


def _identifying(operation: Distinct, node: Node) -> Identify:
    if operation.identify is None:
        return lambda key, value: key
    config, identify = node.config, operation.identify
    topic = f"{config.application_id}-{operation.store}-changelog"
    write_key = resolved(operation.key_serde, config.default_key_serde).serializer(topic, is_key=True)
    write = (operation.identity_serde or Serdes.json()).serializer(topic, is_key=True)

    def identity(key: Any, value: Any) -> bytes | None:
        if key is None:
            return None
        found = identify(key, value)
        if found is None:
            return None
        name = write_key(key)
        return _LENGTH.pack(len(name)) + name + write(found)

    return identity
