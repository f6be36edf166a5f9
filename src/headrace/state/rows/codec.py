"""Codecs of a store: keys and values as bytes, or as the objects themselves where the serdes allow it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, NamedTuple

from headrace.serdes import Serde
from headrace.serdes.base import StoreTopic

_TIMESTAMP = Struct(">q")
pack_timestamp = _TIMESTAMP.pack
UNKNOWN_TIMESTAMP = -1


class Codec(NamedTuple):
    """Functions between objects and bytes; ``keep`` tells whether an object can stand for its bytes."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    keep: bool
    trusted: Callable[[Any], bytes] | None = None
    """Writes what ``encode`` writes, faster, for objects of types that it has taken; errors need not explain much."""

    def encode_all(self, objects: Collection[Any]) -> list[bytes]:
        """Returns the bytes of many objects, of types that ``encode`` has taken before."""
        if self.trusted is not None:
            # If it fails, the careful function says what is wrong.
            with suppress(Exception):
                return list(map(self.trusted, objects))
        return list(map(self.encode, objects))


class TypeGuard:
    """Finds values of a wrong type when they are put, although they are written much later.

    The first value of each type is written as a test; after that, the test is a look into ``known``.
    """

    __slots__ = ("_encode", "known")

    def __init__(self, codec: Codec) -> None:
        self._encode = codec.encode
        self.known: set[type] = {type(None)}

    def admit(self, value: object) -> None:
        """Raises what the serializer raises if it does not take such values."""
        self._encode(value)
        self.known.add(type(value))


def key_codec(serde: Serde[Any], topic: StoreTopic) -> Codec:
    """Returns the codec of keys; messages of the serde speak of the store."""
    # Keys are not looked at before they are written, so what is wrong must show.
    fast = getattr(serde, "fast_serializer", _nothing)(is_key=True)
    return Codec(*_functions(serde, topic, is_key=True), serde.identity, fast)


def value_codec(serde: Serde[Any], topic: StoreTopic) -> Codec:
    """Returns the codec of values; messages of the serde speak of the store."""
    trusted = getattr(serde, "trusted_serializer", _nothing)()
    return Codec(*_functions(serde, topic, is_key=False), serde.immutable, trusted)


def _functions(
    serde: Serde[Any], topic: StoreTopic, *, is_key: bool
) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    # Values are checked with the serializer's own words when they are put, and bytes are the store's own.
    decode = getattr(serde, "fast_deserializer", _nothing)(is_key=is_key)
    return serde.serializer(topic, is_key=is_key), decode or serde.deserializer(topic, is_key=is_key)


def _nothing(*, is_key: bool = False) -> None:
    """Stands in for what a serde does not have."""


def pair_codec(values: Codec, *, with_timestamp: bool = True) -> Codec:
    """Returns the codec of (value, timestamp) pairs: 8 bytes of timestamp, then the value.

    Without timestamps, as in a plain store below a timestamped one, they are read back as unknown.
    """
    encode, decode, pack, unpack = values.encode, values.decode, _TIMESTAMP.pack, _TIMESTAMP.unpack_from
    trusted = values.trusted or encode
    if with_timestamp:
        return Codec(
            lambda pair: pack(pair[1]) + encode(pair[0]),
            lambda data: (decode(data[8:]), unpack(data)[0]),
            values.keep,
            lambda pair: pack(pair[1]) + trusted(pair[0]),
        )
    return Codec(
        lambda pair: encode(pair[0]),
        lambda data: (decode(data), UNKNOWN_TIMESTAMP),
        values.keep,
        lambda pair: trusted(pair[0]),
    )


def timestamp_of(data: bytes) -> int:
    """Returns the timestamp at the start of bytes.

    >>> timestamp_of(pack_timestamp(5) + b"value")
    5
    """
    timestamp_ms: int = _TIMESTAMP.unpack_from(data)[0]
    return timestamp_ms


def timed_rows(rows: Mapping[bytes, bytes | None], now_ms: int) -> tuple[Sequence[int], list[bytes | None]]:
    """Returns the times and the values of rows that begin with a timestamp; a deletion has the time ``now_ms``.

    >>> timed_rows({b"a": pack_timestamp(5) + b"value", b"b": None}, 9)
    ((5, 9), [b'value', None])
    """
    now = pack_timestamp(now_ms)
    times = Struct(f">{len(rows)}q").unpack(b"".join([now if row is None else row[:8] for row in rows.values()]))
    return times, [None if row is None else row[8:] for row in rows.values()]


KEY_END = b"\0\1"


def escape(key: bytes) -> bytes:
    r"""Returns key bytes in a form that sorts the same and that no other key's form begins with.

    >>> escape(b"a") < escape(b"a\0") < escape(b"ab")
    True
    """
    return key.replace(b"\0", b"\0\xff") + KEY_END


def unescape(data: bytes) -> bytes:
    r"""Returns the key bytes of an escaped key.

    >>> unescape(escape(b"a\0b"))
    b'a\x00b'
    """
    return data[:-2].replace(b"\0\xff", b"\0")
