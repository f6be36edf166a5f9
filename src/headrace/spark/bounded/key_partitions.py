"""Partitions of a whole column of keys, by Kafka's murmur2 hash, with numpy.

A history has more keys than a dict should remember, and hashing one in Python costs more than everything else on the
way of its record to a task.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

_MULTIPLIER = np.uint32(0x5BD1E995)
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF

Ints: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint32]]"


def key_partitions(keys: pa.BinaryArray, partitions: int) -> Ints:
    """Returns the partition of each key; there is no null among them.

    >>> key_partitions(pa.array([b"alice", b"bob", b""], pa.binary()), 4).tolist()
    [1, 2, 1]
    """
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    hashed = np.empty(len(keys), np.uint32)
    # Keys of one length are hashed together, a word at a time: there are few lengths.
    for length in np.unique(lengths):
        chosen = lengths == length
        hashed[chosen] = _murmur2(octets, starts[chosen], int(length))
    return (hashed & 0x7FFFFFFF).astype(np.int64) % partitions


def _murmur2(octets: np.ndarray[tuple[int], np.dtype[np.uint8]], starts: Ints, length: int) -> Words:
    hashed: Words = np.full(len(starts), (_SEED ^ length) & _MASK, np.uint32)
    if length >= 4:
        # The four bytes from each place on, wherever it is.
        words: Words = np.ndarray((len(octets) - 3,), "<u4", octets, strides=(1,))
        for word in range(length >> 2):
            mixed = words[starts + 4 * word] * _MULTIPLIER
            mixed = (mixed ^ (mixed >> np.uint32(24))) * _MULTIPLIER
            hashed = (hashed * _MULTIPLIER) ^ mixed
    rest = length & 3
    if rest:
        for place in range(rest):
            hashed ^= octets[starts + length - rest + place].astype(np.uint32) << np.uint32(8 * place)
        hashed = hashed * _MULTIPLIER
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _MULTIPLIER
    return hashed ^ (hashed >> np.uint32(15))
