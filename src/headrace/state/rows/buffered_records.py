"""Buffered records as bytes, in the layout of Kafka Streams' buffers."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from headrace.state.stores.store import HeaderPairs, Origin

_INT = Struct(">i")
_CONTEXT = Struct(">qqi")
_ABSENT = -1
_SAME_AS_PRIOR = -2


class Buffered(NamedTuple):
    """A change that waits, with the record it came from. Values are bytes."""

    timestamp_ms: int
    headers: HeaderPairs
    origin: Origin
    offset: int
    new: bytes | None
    old: bytes | None = None
    prior: bytes | None = None
    """The value before the first change that is waiting."""


def size_of(entry: Buffered) -> int:
    """Returns how many bytes an entry counts in a buffer with a limit.

    >>> size_of(Buffered(5, (("h", b"12"),), ("topic", 0), 7, b"new", b"old", b"old"))
    34
    """
    size = 20 + sum(len(value) for value in (entry.prior, entry.new) if value is not None)
    if entry.old is not None and entry.old != entry.prior:
        size += len(entry.old)
    if entry.origin is not None:
        size += len(entry.origin[0])
    return size + sum(len(name) + (0 if value is None else len(value)) for name, value in entry.headers)


def pack(entry: Buffered) -> bytes:
    """Returns an entry as bytes.

    >>> unpack(pack(Buffered(5, (("h", None),), ("topic", 0), 7, b"new", None, b"")))[0]
    Buffered(timestamp_ms=5, headers=(('h', None),), origin=('topic', 0), offset=7, new=b'new', old=None, prior=b'')
    """
    topic = None if entry.origin is None else entry.origin[0].encode()
    parts = [_CONTEXT.pack(entry.timestamp_ms, entry.offset, _ABSENT if topic is None else len(topic)), topic or b""]
    parts += [_INT.pack(-1 if entry.origin is None else entry.origin[1]), _INT.pack(len(entry.headers))]
    for name, value in entry.headers:
        parts += [_sized(name.encode()), _sized(value)]
    parts.append(_sized(entry.prior))
    # The old value is usually the prior one, and then not written twice.
    same = entry.old is not None and entry.old == entry.prior
    parts += [_INT.pack(_SAME_AS_PRIOR) if same else _sized(entry.old), _sized(entry.new)]
    return b"".join(parts)


def unpack(data: bytes) -> tuple[Buffered, int]:
    """Returns the entry that ``pack`` wrote, and where it ends."""
    timestamp_ms, offset, length = _CONTEXT.unpack_from(data)
    place = _CONTEXT.size
    topic = None
    if length != _ABSENT:
        topic, place = data[place : place + length].decode(), place + length
    (partition,) = _INT.unpack_from(data, place)
    (count,) = _INT.unpack_from(data, place + 4)
    place += 8
    headers = []
    for _ in range(count):
        name, place = _read(data, place)
        value, place = _read(data, place)
        headers.append(((name or b"").decode(), value))
    prior, place = _read(data, place)
    if _INT.unpack_from(data, place)[0] == _SAME_AS_PRIOR:
        old, place = prior, place + 4
    else:
        old, place = _read(data, place)
    new, place = _read(data, place)
    origin = None if topic is None else (topic, partition)
    return Buffered(timestamp_ms, tuple(headers), origin, offset, new, old, prior), place


def _sized(value: bytes | None) -> bytes:
    return _INT.pack(_ABSENT) if value is None else _INT.pack(len(value)) + value


def _read(data: bytes, place: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(data, place)
    place += 4
    return (None, place) if length == _ABSENT else (data[place : place + length], place + length)
