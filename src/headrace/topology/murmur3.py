"""The hash with which a foreign-key join recognises the left row that asked: Kafka Streams' variant of MurmurHash3."""

from __future__ import annotations

from struct import Struct

_MASK = 0xFFFFFFFFFFFFFFFF
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
_SEED = 104729
_BLOCK = Struct("<QQ")
_DIGEST = Struct(">QQ")


def murmur3_128(data: bytes) -> bytes:
    """Hashes a left row's value as Kafka Streams does, so that both sides of a foreign-key join agree on it.

    >>> len(murmur3_128(b"value"))
    16
    """
    h1 = h2 = _SEED
    length = len(data)
    whole = length & ~15
    # A tail mixes like a block whose missing bytes are 0, except for the rotations after it.
    for k1, k2 in _BLOCK.iter_unpack(data[:whole]):
        h1 ^= _mix(k1, _C1, 31, _C2)
        h1 = ((h1 << 27 | h1 >> 37) + h2 & _MASK) * 5 + 0x52DCE729 & _MASK
        h2 ^= _mix(k2, _C2, 33, _C1)
        h2 = ((h2 << 31 | h2 >> 33) + h1 & _MASK) * 5 + 0x38495AB5 & _MASK
    if whole < length:
        k1, k2 = _BLOCK.unpack(data[whole:].ljust(16, b"\x00"))
        h1 ^= _mix(k1, _C1, 31, _C2)
        h2 ^= _mix(k2, _C2, 33, _C1)
    h1 ^= length
    h2 ^= length
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1 = _finish(h1)
    h2 = _finish(h2)
    h1 = h1 + h2 & _MASK
    return _DIGEST.pack(h1, h2 + h1 & _MASK)


def _mix(k: int, before: int, bits: int, after: int) -> int:
    k = k * before & _MASK
    return (k << bits | k >> 64 - bits) * after & _MASK


def _finish(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33
