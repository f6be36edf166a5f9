"""``Serdes``: every serde that comes with Headrace, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload
from uuid import UUID

from headrace.arguments.hints import HintingType
from headrace.errors import ConfigError, describe_value
from headrace.serdes.base import BaseSerde, Serde
from headrace.serdes.custom import CustomSerde
from headrace.serdes.json import JsonSerde, TypedJsonSerde
from headrace.serdes.lists import ListSerde
from headrace.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
    VoidSerde,
)
from headrace.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from headrace.windows.custom import Windows

T = TypeVar("T")


class Serdes(metaclass=HintingType):
    """Makes serdes: ``Serdes.string()``, ``Serdes.long()``, ``Serdes.json(Order)`` and so on.

    >>> Serdes.long().deserialize(Serdes.long().serialize(7))
    7
    >>> Serdes.string() == Serdes.string()
    True
    """

    @staticmethod
    def string(encoding: str = "utf-8") -> StringSerde:
        """Text.

        >>> Serdes.string().serialize("a")
        b'a'
        """
        return StringSerde(encoding)

    @staticmethod
    def bytes() -> BytesSerde:
        """Bytes as they are.

        >>> Serdes.bytes().serialize(b"a")
        b'a'
        """
        return BytesSerde()

    @staticmethod
    def short() -> ShortSerde:
        r"""Whole numbers of 16 bits.

        >>> Serdes.short().serialize(1)
        b'\x00\x01'
        """
        return ShortSerde()

    @staticmethod
    def integer() -> IntegerSerde:
        r"""Whole numbers of 32 bits.

        >>> Serdes.integer().serialize(1)
        b'\x00\x00\x00\x01'
        """
        return IntegerSerde()

    @staticmethod
    def long() -> LongSerde:
        r"""Whole numbers of 64 bits.

        >>> Serdes.long().deserialize(b"\x00\x00\x00\x00\x00\x00\x00\x01")
        1
        """
        return LongSerde()

    @staticmethod
    def float() -> FloatSerde:
        r"""Real numbers of 32 bits.

        >>> Serdes.float().serialize(1.0)
        b'?\x80\x00\x00'
        """
        return FloatSerde()

    @staticmethod
    def double() -> DoubleSerde:
        """Real numbers of 64 bits, which is what Python calls ``float``.

        >>> Serdes.double().deserialize(Serdes.double().serialize(0.1))
        0.1
        """
        return DoubleSerde()

    @staticmethod
    def boolean() -> BooleanSerde:
        r"""True and False.

        >>> Serdes.boolean().serialize(False)
        b'\x00'
        """
        return BooleanSerde()

    @staticmethod
    def uuid() -> UuidSerde:
        """UUIDs, as text.

        >>> Serdes.uuid().deserialize(b"00000000-0000-0000-0000-000000000001")
        UUID('00000000-0000-0000-0000-000000000001')
        """
        return UuidSerde()

    @staticmethod
    def void() -> VoidSerde:
        """Nothing but None.

        >>> Serdes.void().serialize(None) is None
        True
        """
        return VoidSerde()

    @staticmethod
    def list_of(inner: Serde[T]) -> ListSerde[T]:
        """Lists, in the layout of Kafka's ``ListSerde``.

        >>> Serdes.list_of(Serdes.long()).deserialize(Serdes.list_of(Serdes.long()).serialize([1, None, 3]))
        [1, None, 3]
        """
        return ListSerde(inner)

    @overload
    @staticmethod
    def json() -> JsonSerde: ...
    @overload
    @staticmethod
    def json(type: type[T]) -> TypedJsonSerde[T]: ...
    @overload
    @staticmethod
    def json(type: Any) -> TypedJsonSerde[Any]: ...
    @staticmethod
    def json(type: Any = None) -> JsonSerde | TypedJsonSerde[Any]:
        """JSON: of dicts, lists and plain values, or of one type, which is faster and checked when it is read.

        A type is a dataclass, ``msgspec.Struct``, ``TypedDict``, or whatever else msgspec knows.

        >>> Serdes.json().serialize({"user": "alice"})
        b'{"user":"alice"}'
        >>> Serdes.json(list[int]).deserialize(b"[1, 2]")
        [1, 2]
        """
        return JsonSerde() if type is None else TypedJsonSerde(type)

    @staticmethod
    def time_windowed(
        inner: Serde[T],
        window_size_ms: int | None = None,
        *,
        changelog: bool = False,
        windows: Windows | None = None,
    ) -> TimeWindowedSerde[T]:
        """Keys of time windows of that size, or of windows of one's own.

        ``changelog`` is for the keys in the changelog topic of a window store.

        >>> Serdes.time_windowed(Serdes.string(), 10).deserialize(b"a" + bytes(8))
        [a@0/10]
        """
        if window_size_ms is None:
            if windows is None:
                message = "time_windowed serde: window_size_ms is missing; give it, or windows"
                raise ConfigError(message)
            window_size_ms = windows.size_ms
        return TimeWindowedSerde(inner, window_size_ms, changelog=changelog, windows=windows)

    @staticmethod
    def session_windowed(inner: Serde[T]) -> SessionWindowedSerde[T]:
        """Keys of sessions.

        >>> Serdes.session_windowed(Serdes.string()).deserialize(b"a" + bytes(16))
        [a@0/0]
        """
        return SessionWindowedSerde(inner)

    @staticmethod
    def of(
        serialize: Callable[[T], Any],
        deserialize: Callable[[Any], T],
        *,
        identity: bool = False,
        immutable: bool = False,
    ) -> CustomSerde[T]:
        """A serde of your own, from a function that returns bytes and one that reads them.

        ``identity`` and ``immutable`` let stores keep your objects instead of their bytes: see ``Serde`` before.

        >>> Serdes.of(str.encode, bytes.decode).deserialize(b"a")
        'a'
        """
        return CustomSerde(serialize, deserialize, identity=identity, immutable=immutable)

    @staticmethod
    def serde_from(python_type: type[T]) -> BaseSerde[T]:
        """The serde of a Python type: ``str``, ``bytes``, ``int`` (long), ``float`` (double), ``bool``, ``UUID``.

        >>> Serdes.serde_from(int)
        LongSerde()
        """
        serde = _BY_TYPE.get(python_type) if isinstance(python_type, type) else None
        if serde is None:
            known = ", ".join(sorted(known.__name__ for known in _BY_TYPE))
            found = describe_value(python_type)
            message = f"serde_from: {found} has no serde of its own; use Serdes.json(type), or one of {known}"
            raise ConfigError(message)
        return serde


_BY_TYPE: dict[type, BaseSerde[Any]] = {
    str: StringSerde(),
    bytes: BytesSerde(),
    int: LongSerde(),
    float: DoubleSerde(),
    bool: BooleanSerde(),
    UUID: UuidSerde(),
    type(None): VoidSerde(),
}
