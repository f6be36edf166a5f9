"""Partition keys of rows: the bytes in the key of a changelog record that decide in which partition the row belongs."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, TypeAlias

from headrace.config import StreamsConfig
from headrace.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde
from headrace.topology.graph import Graph
from headrace.topology.nodes import ProcessorNode
from headrace.topology.operations import Distinct

PartitionKey: TypeAlias = Callable[[bytes], bytes]
"""From the key of a changelog record to the bytes that Kafka's partitioner hashes."""

_LENGTH = Struct(">i")
_START, _END_AND_START, _START_AND_NUMBER = 8, 16, 12
_TIME_AND_SIDE = 9
_NUMBER = 4


def partition_key_of(topology: Graph, store: str, config: StreamsConfig) -> PartitionKey:
    """Returns where a store's rows have their partition key.

    A store whose rows are keyed by something else has it nowhere: then its rows are not where the hash says.

    >>> from headrace import StreamsBuilder
    >>> from headrace.windows import TimeWindows
    >>> from datetime import timedelta
    >>> builder = StreamsBuilder()
    >>> windows = TimeWindows.of_size_with_no_grace(timedelta(minutes=1))
    >>> table = builder.stream("in").group_by_key().windowed_by(windows).count()
    >>> topology = builder.build()
    >>> partition_key_of(topology, topology.state_stores[0], StreamsConfig())(b"alice" + bytes(12))
    b'alice'
    """
    builder = topology.store_builders[store]
    return _behind_window(stored_key_of(topology, store), builder.key_serde or config.default_key_serde)


def primary_key_of(topology: Graph, store: str, config: StreamsConfig) -> PartitionKey:
    """Returns where subscriptions of a foreign-key join have the key of their row in the left table."""
    return _behind_window(_trailing_part, topology.store_builders[store].other_serde or config.default_key_serde)


def stored_key_of(topology: Graph, store: str) -> PartitionKey:
    """Returns where a store's rows have what the serde of its keys has written."""
    match topology.store_builders[store].kind:
        case "window" | "timestamped_window" if _has_identities(topology, store):
            return _leading_part
        case "window" | "timestamped_window":
            return lambda key: key[:-_START_AND_NUMBER]
        case "session":
            return lambda key: key[:-_END_AND_START]
        case "unmatched":
            return lambda key: key[_TIME_AND_SIDE:]
        case "buffer":
            return lambda key: key[_TIME_AND_SIDE:-_NUMBER]
        case "subscription":
            return _leading_part
    return _whole_key


def _behind_window(outer: PartitionKey, serde: Serde[Any] | None) -> PartitionKey:
    """Leaves out the window of a windowed key: all windows of a key are in one partition."""
    if isinstance(serde, SessionWindowedSerde):
        return lambda key: outer(key)[:-_END_AND_START]
    if isinstance(serde, TimeWindowedSerde):
        length = _START_AND_NUMBER if serde.changelog else _START
        return lambda key: outer(key)[:-length]
    return outer


def _whole_key(key: bytes) -> bytes:
    return key


def _leading_part(key: bytes) -> bytes:
    """Returns the first of two parts, whose length comes before it."""
    (length,) = _LENGTH.unpack_from(key)
    return key[_LENGTH.size : _LENGTH.size + length]


def _trailing_part(key: bytes) -> bytes:
    (length,) = _LENGTH.unpack_from(key)
    return key[_LENGTH.size + length :]


def _has_identities(topology: Graph, store: str) -> bool:
    """Returns whether a store keeps what a deduplication takes for an identity, behind the record's key."""
    return any(
        isinstance(node, ProcessorNode)
        and isinstance(node.operation, Distinct)
        and node.operation.store == store
        and node.operation.identify is not None
        for node in topology.nodes.values()
    )
