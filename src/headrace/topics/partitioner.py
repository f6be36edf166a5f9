"""Default partitioner: Kafka's murmur2 hash of the key, so that Kafka's clients and Headrace agree."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from headrace.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde

StreamPartitioner: TypeAlias = Callable[[str, Any, Any, int], "int | Iterable[int] | None"]
"""``(topic, key, value, partition count) -> partition``, or several; None lets the key decide, none at all drops it."""

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF
_MANY = 1 << 18


def murmur2(data: bytes) -> int:
    """Returns Kafka's 32-bit murmur2 hash, signed as in Java.

    >>> murmur2(b"21"), murmur2(b"")
    (-973932308, 275646681)
    """
    length = len(data)
    rest = length & 3
    hashed = (_SEED ^ length) & _MASK
    for word in struct.unpack_from(f"<{length >> 2}I", data):
        mixed = word * _MULTIPLIER & _MASK
        mixed = (mixed ^ mixed >> 24) * _MULTIPLIER & _MASK
        hashed = (hashed * _MULTIPLIER & _MASK) ^ mixed
    if rest:
        hashed = (hashed ^ int.from_bytes(data[-rest:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed & 0x80000000 else hashed


# Streams see the same keys again and again, and the hash of one costs more than everything else on a record's way out.
@lru_cache(maxsize=1 << 16)
def partition_for(key_bytes: bytes, n: int) -> int:
    """Returns the partition of a key among ``n``, as Kafka's producer chooses it.

    >>> partition_for(b"alice", 4), partition_for(b"bob", 4)
    (1, 2)
    """
    return (murmur2(key_bytes) & 0x7FFFFFFF) % n


class KnownPartitions(dict[bytes, int]):
    """The partitions of keys among ``n``, computed when a key is first asked for. It is for many keys at once.

    >>> KnownPartitions(4)[b"alice"]
    1
    """

    # A look into a dict costs half of one into an LRU cache, which must also note which key was asked for last.
    __slots__ = ("_n",)

    def __init__(self, n: int) -> None:
        super().__init__()
        self._n = n

    def __missing__(self, key: bytes) -> int:
        if len(self) >= _MANY:
            self.clear()
        partition = self[key] = (murmur2(key) & 0x7FFFFFFF) % self._n
        return partition


@lru_cache(maxsize=32)
def known_partitions(n: int) -> KnownPartitions:
    """Returns the one that everybody in this process shares."""
    return KnownPartitions(n)


def default_partitioner(key_serde: Serde[Any], topic: str) -> StreamPartitioner | None:
    """Returns the partitioner for records that need more than the hash of their key's bytes, or None.

    A windowed key goes where its plain key goes, so that all windows of a key are in one partition.

    >>> from headrace.serdes import Serdes
    >>> from headrace.windows import TimeWindow, Windowed
    >>> choose = default_partitioner(Serdes.time_windowed(Serdes.string(), 10), "counts")
    >>> choose("counts", Windowed("alice", TimeWindow(20, 30)), 1, 4) == partition_for(b"alice", 4)
    True
    """
    if not isinstance(key_serde, TimeWindowedSerde | SessionWindowedSerde):
        return None
    serialize = key_serde.base_key_serializer(topic)

    def choose(_topic: str, key: Any, _value: Any, n: int) -> int | None:
        return None if key is None else known_partitions(n)[serialize(key)]

    return choose
