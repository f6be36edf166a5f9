"""Changes of a batch to an engine, as a value that packs to bytes."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct

_VERSION = 1
_HEAD = Struct("<BIIcc")
_DELETED = b""


@dataclass(frozen=True, slots=True)
class Changes:
    """Ranges that are deleted first, then rows that are set, or deleted where the value is None.

    >>> changes = Changes(ranges=((b"a", b"c"),), rows={b"b": b"2", b"x": None})
    >>> Changes.unpack(changes.pack()) == changes
    True
    >>> bool(Changes())
    False
    """

    ranges: tuple[tuple[bytes, bytes], ...] = ()
    """Starts and exclusive stops."""
    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    """Values by key; None deletes."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.ranges)

    def pack(self) -> bytes:
        """Returns the changes as bytes.

        Lengths first, then all keys, then all values: packing and unpacking work on whole columns.

        >>> len(Changes(rows={b"key": b"value"}).pack())
        21
        """
        keys = [bound for pair in self.ranges for bound in pair]
        keys.extend(self.rows)
        values = self.rows.values()
        key_lengths = _column([len(key) for key in keys])
        # A length of 0 deletes, so that of a value is one more than it is.
        value_lengths = _column([0 if value is None else len(value) + 1 for value in values])
        head = _HEAD.pack(
            _VERSION, len(self.ranges), len(self.rows), key_lengths.typecode.encode(), value_lengths.typecode.encode()
        )
        payload = [_DELETED if value is None else value for value in values]
        return b"".join((head, _bytes_of(key_lengths), _bytes_of(value_lengths), b"".join(keys), b"".join(payload)))

    @classmethod
    def unpack(cls, data: bytes) -> Changes:
        """Returns the changes that ``pack`` wrote.

        >>> Changes.unpack(Changes(rows={b"k": None}).pack())
        Changes(ranges=(), rows={b'k': None})
        """
        version, range_count, row_count, key_code, value_code = _HEAD.unpack_from(data)
        if version != _VERSION:
            message = f"changes are of format {version}, this version of Headrace reads {_VERSION}; upgrade Headrace"
            raise ValueError(message)
        key_lengths, place = _read_column(data, _HEAD.size, key_code.decode(), 2 * range_count + row_count)
        value_lengths, place = _read_column(data, place, value_code.decode(), row_count)
        keys = []
        for length in key_lengths:
            keys.append(data[place : place + length])
            place += length
        bounds = keys[: 2 * range_count]
        rows: dict[bytes, bytes | None] = {}
        for key, length in zip(keys[2 * range_count :], value_lengths, strict=True):
            if length:
                rows[key] = data[place : place + length - 1]
                place += length - 1
            else:
                rows[key] = None
        return cls(tuple(zip(bounds[::2], bounds[1::2], strict=True)), rows)


def _column(numbers: list[int]) -> array[int]:
    largest = max(numbers, default=0)
    return array("B" if largest < 2**8 else "H" if largest < 2**16 else "I", numbers)


def _bytes_of(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _read_column(data: bytes, place: int, typecode: str, count: int) -> tuple[Sequence[int], int]:
    column = array(typecode)
    end = place + column.itemsize * count
    column.frombytes(data[place:end])
    if sys.byteorder == "big":
        column.byteswap()
    return column, end
