"""Headers inside of values, for views of tables that declare columns of headers."""

from __future__ import annotations

from struct import Struct

from headrace.topics.log import Headers, Raw

_LENGTH = Struct(">i")
_NOTHING = -1
"""The length of a value that is not there."""


def carry_headers(records: list[Raw]) -> list[Raw]:
    """Returns records with values that ``unpacked`` takes apart; deletions stay deletions."""
    return [
        (offset, time_ms, key, None if value is None else packed(value, headers), ())
        for offset, time_ms, key, value, headers in records
    ]


def packed(value: bytes, headers: Headers) -> bytes:
    """Returns a value and headers in one piece."""
    parts = [_LENGTH.pack(len(headers))]
    for name, each in headers:
        parts += _pack_sized(name.encode()), _pack_sized(each)
    return b"".join([*parts, value])


def _pack_sized(data: bytes | None) -> bytes:
    return _LENGTH.pack(_NOTHING) if data is None else _LENGTH.pack(len(data)) + data


def unpacked(data: bytes) -> tuple[bytes, Headers]:
    """Returns the value and the headers of a record.

    >>> unpacked(packed(b"1", (("trace", b"x"), ("none", None))))
    (b'1', (('trace', b'x'), ('none', None)))
    """
    parts: list[bytes | None] = []
    place = _LENGTH.size
    for _ in range(2 * _LENGTH.unpack_from(data)[0]):
        [length] = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        parts.append(None if length == _NOTHING else data[place : place + length])
        place += max(0, length)
    names = ((name or b"").decode() for name in parts[::2])
    return data[place:], tuple(zip(names, parts[1::2], strict=True))
