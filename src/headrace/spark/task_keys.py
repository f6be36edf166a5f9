"""The names under which Spark groups rows by task, chosen so that tasks spread evenly over Spark's partitions.

Spark sends a key to partition ``pmod(hash(key), partitions)``. With the bare task ids some partitions would get several
tasks and others none, so each key is the id with a number behind it that leads where the task belongs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from struct import iter_unpack

_SEED = 42
_MASK = 0xFFFFFFFF


def spark_hash(text: str) -> int:
    """Returns Spark's ``hash`` of a string whose length in bytes is a multiple of 4.

    >>> spark_hash("abcd")
    -396302900
    """
    data = text.encode()
    assert len(data) % 4 == 0, "Spark's way with the last bytes is its own; keys are padded"
    h = _SEED
    for (k,) in iter_unpack("<I", data):
        k = k * 0xCC9E2D51 & _MASK
        k = (k << 15 | k >> 17) * 0x1B873593 & _MASK
        h ^= k
        h = ((h << 13 | h >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def spread_keys(tasks: Iterable[str], partitions: int) -> dict[str, str]:
    """Returns a key for each task; in their order, the keys go to Spark's partitions in turn.

    >>> keys = spread_keys(["0_0", "0_1", "0_2"], 2)
    >>> [spark_hash(key) % 2 for key in keys.values()]
    [0, 1, 0]
    >>> task_of(keys["0_2"])
    '0_2'
    """
    keys: dict[str, str] = {}
    for place, task in enumerate(tasks):
        wanted = place % partitions
        candidates = (_padded(f"{task}#{salt}") for salt in count())
        keys[task] = next(key for key in candidates if spark_hash(key) % partitions == wanted)
    return keys


def task_of(key: str) -> str:
    """Returns the task's name in a key."""
    return key.partition("#")[0]


def _padded(text: str) -> str:
    return text + "." * (-len(text.encode()) % 4)
