"""The serde of lists, in the layout of Kafka's ``ListSerializer``.

One byte says which of two layouts follows. Of fixed-size items (short, integer, long, float, double, uuid): the number
of Nones and their indexes, the length of the list, and the items that are not None, end to end. Of any other: the
length of the list, and each item with its length before it, -1 for None. All numbers are 32 bits, big endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from headrace.arguments.values import serde
from headrace.errors import ConfigError, DeserializationError
from headrace.serdes.base import BaseSerde, Serde, bad_bytes, place, wrong_type

T = TypeVar("T")
_INT = struct.Struct(">i")
_CONSTANT_SIZE, _VARIABLE_SIZE = b"\x00", b"\x01"
_NONE = _INT.pack(-1)


@dataclass(frozen=True)
class ListSerde(BaseSerde[list[T | None]]):
    r"""Lists of what another serde writes; items may be None.

    >>> from headrace.serdes import Serdes
    >>> serde = ListSerde(Serdes.string())
    >>> serde.serialize(["a", None])
    b'\x01\x00\x00\x00\x02\x00\x00\x00\x01a\xff\xff\xff\xff'
    >>> serde.deserialize(_)
    ['a', None]
    """

    inner: Serde[T]
    """Serde of the items."""

    def __post_init__(self) -> None:
        if self.inner is None:
            message = "list serde: the serde of the items is needed; found None; use for example Serdes.string()"
            raise ConfigError(message)
        serde(self.inner, "list serde: the serde of the items", error=ConfigError)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[list[T | None]], bytes]:
        where = place(topic, is_key=is_key)
        item = self.inner.serializer(topic, is_key=is_key)
        write = _write_variable if _fixed_size(self.inner) is None else _write_constant

        def serialize(value: list[T | None]) -> bytes:
            if type(value) is not list:
                raise wrong_type(where, "list", "list", value)
            return b"".join(write(value, item))

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], list[T | None]]:
        where = place(topic, is_key=is_key)
        item, size = self.inner.deserializer(topic, is_key=is_key), _fixed_size(self.inner)

        def deserialize(data: bytes) -> list[T | None]:
            flag, reader = data[:1], _Reader(data)
            try:
                if flag == _VARIABLE_SIZE:
                    return _read_variable(reader, item)
                if flag == _CONSTANT_SIZE and size is not None:
                    return _read_constant(reader, item, size)
            except _TooShortError as error:
                raise bad_bytes(where, "list", "a whole list", data) from error
            raise bad_bytes(where, "list", "a list of the inner serde's items", data)

        return deserialize


class _TooShortError(DeserializationError):
    """The data ends in the middle of the list."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 1

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            message = f"{size} bytes were announced at {self.at}, but {len(self.data) - self.at} are left"
            raise _TooShortError(message)
        part = self.data[self.at : end]
        self.at = end
        return part

    def number(self) -> int:
        number: int = _INT.unpack(self.take(4))[0]
        return number


def _fixed_size(serde: Serde[T]) -> int | None:
    # A serde that does not derive from BaseSerde has variable size, as any but six of Kafka's own.
    return getattr(serde, "fixed_size", None)


def _write_variable(values: list[T | None], item: Callable[[T], bytes]) -> list[bytes]:
    parts = [_VARIABLE_SIZE, _INT.pack(len(values))]
    for value in values:
        if value is None:
            parts.append(_NONE)
        else:
            data = item(value)
            parts += (_INT.pack(len(data)), data)
    return parts


def _write_constant(values: list[T | None], item: Callable[[T], bytes]) -> list[bytes]:
    nones = [index for index, value in enumerate(values) if value is None]
    header = [_CONSTANT_SIZE, *map(_INT.pack, (len(nones), *nones, len(values)))]
    return header + [item(value) for value in values if value is not None]


def _read_variable(reader: _Reader, item: Callable[[bytes], T]) -> list[T | None]:
    sizes = (reader.number() for _ in range(reader.number()))
    return [None if size < 0 else item(reader.take(size)) for size in sizes]


def _read_constant(reader: _Reader, item: Callable[[bytes], T], size: int) -> list[T | None]:
    nones = {reader.number() for _ in range(reader.number())}
    return [None if index in nones else item(reader.take(size)) for index in range(reader.number())]
