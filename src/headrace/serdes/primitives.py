"""Serdes of single values: strings, bytes, numbers, booleans, UUIDs, in Kafka's layout."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar
from uuid import UUID

from headrace.errors import ConfigError, SerializationError
from headrace.serdes.base import BaseSerde, Place, bad_bytes, place, wrong_type

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class StringSerde(BaseSerde[str]):
    r"""Text, by default in UTF-8. Bytes that are no text raise, where Kafka would put replacement characters.

    >>> StringSerde().serialize("é")
    b'\xc3\xa9'
    """

    encoding: str = "utf-8"
    """Name of the encoding, as Python knows it."""

    identity: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    exact_type: ClassVar[type] = str

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            message = f"string serde: encoding '{self.encoding}' is unknown; use for example 'utf-8'"
            raise ConfigError(message) from None

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[str], bytes]:
        where, encode, encoding = place(topic, is_key=is_key), str.encode, self.encoding

        def serialize(value: str) -> bytes:
            try:
                return encode(value, encoding)
            except TypeError:
                raise wrong_type(where, "string", "str", value) from None
            except UnicodeEncodeError as error:
                message = f"{where}: the string serde cannot write {value!r} in {encoding}: {error.reason}"
                raise SerializationError(message) from error

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], str]:
        where, encoding = place(topic, is_key=is_key), self.encoding

        def deserialize(data: bytes) -> str:
            try:
                return str(data, encoding)
            except (UnicodeDecodeError, TypeError) as error:
                raise bad_bytes(where, "string", f"{encoding} text", data) from error

        return deserialize

    def fast_serializer(self, *, is_key: bool) -> Callable[[str], bytes] | None:
        return str.encode if self.encoding == "utf-8" else None

    def fast_deserializer(self, *, is_key: bool) -> Callable[[bytes], str] | None:
        return bytes.decode if self.encoding == "utf-8" else None


@dataclass(frozen=True)
class BytesSerde(BaseSerde[bytes]):
    """Bytes as they are; only ``bytes``, because a ``bytearray`` could change after it was stored.

    >>> BytesSerde().serialize(b"raw")
    b'raw'
    """

    identity: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    exact_type: ClassVar[type] = bytes

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], bytes]:
        where = place(topic, is_key=is_key)

        def serialize(value: bytes) -> bytes:
            if type(value) is not bytes:
                raise wrong_type(where, "bytes", "bytes", value)
            return value

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], bytes]:
        return bytes


def _pack(serde: str, layout: struct.Struct, python_type: type[N], where: Place) -> Callable[[N], bytes]:
    pack = layout.pack

    def serialize(value: N) -> bytes:
        # Exactly the type: True is an int, and 1 is not 1.0 once it has been read back.
        if type(value) is not python_type:
            raise wrong_type(where, serde, python_type.__name__, value)
        try:
            return pack(value)
        except (struct.error, OverflowError):
            size = layout.size
            message = f"{where}: {value!r} does not fit into the {size} bytes of the {serde} serde; use a wider serde"
            raise SerializationError(message) from None

    return serialize


def _unpack(serde: str, layout: struct.Struct, python_type: type[N], where: Place) -> Callable[[bytes], N]:
    unpack, size = layout.unpack, layout.size

    def deserialize(data: bytes) -> N:
        try:
            number: N = unpack(data)[0]
        except (struct.error, TypeError):
            raise bad_bytes(where, serde, f"{size} bytes", data) from None
        return number

    return deserialize


class _IntSerde(BaseSerde[int]):
    identity: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    exact_type: ClassVar[type] = int
    layout: ClassVar[struct.Struct]
    label: ClassVar[str]

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[int], bytes]:
        return _pack(self.label, self.layout, int, place(topic, is_key=is_key))

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], int]:
        return _unpack(self.label, self.layout, int, place(topic, is_key=is_key))

    def trusted_serializer(self) -> Callable[[int], bytes]:
        return self.layout.pack


@dataclass(frozen=True)
class ShortSerde(_IntSerde):
    r"""Whole numbers of 16 bits, big endian.

    >>> ShortSerde().serialize(-2)
    b'\xff\xfe'
    """

    layout: ClassVar[struct.Struct] = struct.Struct(">h")
    label: ClassVar[str] = "short"
    fixed_size: ClassVar[int] = 2


@dataclass(frozen=True)
class IntegerSerde(_IntSerde):
    r"""Whole numbers of 32 bits, big endian.

    >>> IntegerSerde().serialize(1)
    b'\x00\x00\x00\x01'
    """

    layout: ClassVar[struct.Struct] = struct.Struct(">i")
    label: ClassVar[str] = "integer"
    fixed_size: ClassVar[int] = 4


@dataclass(frozen=True)
class LongSerde(_IntSerde):
    r"""Whole numbers of 64 bits, big endian; counts are written so.

    >>> LongSerde().serialize(1)
    b'\x00\x00\x00\x00\x00\x00\x00\x01'
    """

    layout: ClassVar[struct.Struct] = struct.Struct(">q")
    label: ClassVar[str] = "long"
    fixed_size: ClassVar[int] = 8


class _RealSerde(BaseSerde[float]):
    # No identity: 0.0 and -0.0 are equal and have different bytes, nan is not even equal to itself.
    exact_type: ClassVar[type] = float
    layout: ClassVar[struct.Struct]
    label: ClassVar[str]

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[float], bytes]:
        return _pack(self.label, self.layout, float, place(topic, is_key=is_key))

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], float]:
        return _unpack(self.label, self.layout, float, place(topic, is_key=is_key))

    def trusted_serializer(self) -> Callable[[float], bytes]:
        return self.layout.pack


@dataclass(frozen=True)
class FloatSerde(_RealSerde):
    """Real numbers of 32 bits; they come back with about 7 digits, so prefer ``DoubleSerde``.

    >>> FloatSerde().deserialize(FloatSerde().serialize(0.5))
    0.5
    """

    # Not immutable in the protocol's sense: what is read back is not what was written.
    layout: ClassVar[struct.Struct] = struct.Struct(">f")
    label: ClassVar[str] = "float"
    fixed_size: ClassVar[int] = 4


@dataclass(frozen=True)
class DoubleSerde(_RealSerde):
    """Real numbers of 64 bits: Python's own.

    >>> DoubleSerde().deserialize(DoubleSerde().serialize(0.1))
    0.1
    """

    immutable: ClassVar[bool] = True
    layout: ClassVar[struct.Struct] = struct.Struct(">d")
    label: ClassVar[str] = "double"
    fixed_size: ClassVar[int] = 8


@dataclass(frozen=True)
class BooleanSerde(BaseSerde[bool]):
    r"""True and False, one byte.

    >>> BooleanSerde().serialize(True)
    b'\x01'
    """

    identity: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    exact_type: ClassVar[type] = bool

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[bool], bytes]:
        where = place(topic, is_key=is_key)

        def serialize(value: bool) -> bytes:  # noqa: FBT001 - the value itself, not a flag
            if value is True:
                return b"\x01"
            if value is False:
                return b"\x00"
            raise wrong_type(where, "boolean", "bool", value)

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], bool]:
        where = place(topic, is_key=is_key)

        def deserialize(data: bytes) -> bool:
            if data == b"\x01":
                return True
            if data == b"\x00":
                return False
            raise bad_bytes(where, "boolean", "one byte, 0 or 1", data)

        return deserialize


@dataclass(frozen=True)
class UuidSerde(BaseSerde[UUID]):
    """UUIDs as text of 36 characters.

    >>> UuidSerde().serialize(UUID(int=1))
    b'00000000-0000-0000-0000-000000000001'
    """

    identity: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    exact_type: ClassVar[type] = UUID
    fixed_size: ClassVar[int] = 36

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[UUID], bytes]:
        where = place(topic, is_key=is_key)

        def serialize(value: UUID) -> bytes:
            if type(value) is not UUID:
                raise wrong_type(where, "uuid", "uuid.UUID", value)
            return str(value).encode()

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], UUID]:
        where = place(topic, is_key=is_key)

        def deserialize(data: bytes) -> UUID:
            try:
                return UUID(data.decode())
            except (ValueError, AttributeError) as error:
                raise bad_bytes(where, "uuid", "a UUID as text", data) from error

        return deserialize


@dataclass(frozen=True)
class VoidSerde(BaseSerde[None]):
    """Nothing but None, for keys or values that are never there.

    >>> VoidSerde().serialize(None) is None
    True
    """

    identity: ClassVar[bool] = True
    immutable: ClassVar[bool] = True

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[None], bytes]:
        where = place(topic, is_key=is_key)

        def serialize(value: None) -> bytes:
            raise wrong_type(where, "void", "None", value)

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], None]:
        where = place(topic, is_key=is_key)

        def deserialize(data: bytes) -> None:
            raise bad_bytes(where, "void", "nothing", data)

        return deserialize
