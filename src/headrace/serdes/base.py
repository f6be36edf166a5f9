"""The serde protocol, and the base class of the serdes that come with Headrace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from headrace.errors import DeserializationError, SerializationError, describe_value

T = TypeVar("T")


class Serde(Protocol[T]):
    """Serde protocol: two functions per topic, made once and called for every record.

    None never reaches a serde: it is None on the wire too. A serializer raises ``SerializationError`` for a value that
    is not its own, a deserializer ``DeserializationError`` for bytes it cannot read. A serde is a value: it pickles and
    is equal to another one that does the same.

    >>> from headrace.serdes import Serdes
    >>> serialize = Serdes.string().serializer("orders", is_key=False)
    >>> serialize("hello")
    b'hello'
    """

    @property
    def identity(self) -> bool:
        """Whether an object can stand for its bytes: objects are hashable, and equal exactly if their bytes are."""
        ...

    @property
    def immutable(self) -> bool:
        """Whether an object can be kept and handed out instead of reading its bytes again."""
        ...

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[T], bytes]:
        """Returns the function that writes keys or values of a topic."""
        ...

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], T]:
        """Returns the function that reads keys or values of a topic."""
        ...


class BaseSerde(Generic[T]):
    """Base for serdes: two methods to write, two more for users to call.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class HexSerde(BaseSerde[int]):
    ...     def serializer(self, topic, *, is_key):
    ...         return lambda number: hex(number).encode()
    ...     def deserializer(self, topic, *, is_key):
    ...         return lambda data: int(data, 16)
    >>> HexSerde().serialize(255), HexSerde().deserialize(b"0xff")
    (b'0xff', 255)
    """

    exact_type: ClassVar[type | None] = None
    """Type whose instances the serializer takes: a cheap check for those who keep objects and write them later."""
    fixed_size: ClassVar[int | None] = None
    """Length of every serialised value, for the six serdes whose lengths Kafka's list layout leaves out."""

    @property
    def identity(self) -> bool:
        """Whether an object can stand for its bytes: see ``Serde``. Set it to True in a class where it is so."""
        return False

    @property
    def immutable(self) -> bool:
        """Whether an object can be kept instead of being read again: see ``Serde``."""
        return False

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[T], bytes]:
        """Returns the function that writes keys or values of a topic."""
        raise NotImplementedError

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], T]:
        """Returns the function that reads keys or values of a topic."""
        raise NotImplementedError

    def fast_serializer(self, *, is_key: bool) -> Callable[[T], bytes] | None:
        """Returns a built-in function, or one as fast, that writes the same bytes; or None.

        It is called per record in place of the serializer, saving what explains errors. It may fail with any exception:
        the record then goes to the serializer, whose error says what is wrong.
        """
        return None

    def fast_deserializer(self, *, is_key: bool) -> Callable[[bytes], T] | None:
        """Returns a built-in function that reads the same values, or None; see ``fast_serializer``."""
        return None

    def trusted_serializer(self) -> Callable[[T], bytes] | None:
        """Returns a built-in function that writes values of types that the serializer has taken before, or None.

        Unlike a ``fast_serializer`` it need not refuse other types: stores have looked at them already.
        """
        return self.fast_serializer(is_key=False)

    def serialize(self, value: T | None, topic: str = "") -> bytes | None:
        r"""Writes one value; None stays None.

        >>> from headrace.serdes import Serdes
        >>> Serdes.integer().serialize(1), Serdes.integer().serialize(None)
        (b'\x00\x00\x00\x01', None)
        """
        return None if value is None else self.serializer(topic, is_key=False)(value)

    def deserialize(self, data: bytes | None, topic: str = "") -> T | None:
        r"""Reads one value; None stays None.

        >>> from headrace.serdes import Serdes
        >>> Serdes.integer().deserialize(b"\x00\x00\x00\x01")
        1
        """
        return None if data is None else self.deserializer(topic, is_key=False)(data)


def resolved(serde: Serde[Any] | None, default: Serde[Any]) -> Serde[Any]:
    """Returns the serde, or the default; one around another (of windowed keys, of changes) may have it inside.

    >>> from headrace.serdes import Serdes
    >>> resolved(None, Serdes.string())
    StringSerde(encoding='utf-8')
    """
    if serde is None:
        return default
    resolve = getattr(serde, "resolve", None)
    found: Serde[Any] = serde if resolve is None else resolve(default)
    return found


class StoreTopic(str):
    """The changelog topic of a store, as its serdes are told it; messages speak of the store, which may have none.

    >>> StoreTopic("app-totals-changelog", "totals").store
    'totals'
    """

    __slots__ = ("store",)

    store: str

    def __new__(cls, topic: str, store: str) -> StoreTopic:
        made = super().__new__(cls, topic)
        made.store = store
        return made


@dataclass(frozen=True, slots=True)
class Place:
    """Place at which a serde is used.

    >>> print(Place("value of topic 'orders'"))
    value of topic 'orders'
    """

    text: str
    """What messages begin with."""
    option: str = ""
    """Where its serde is named, behind "name another serde"."""

    def __str__(self) -> str:
        return self.text


def place(topic: str, *, is_key: bool) -> Place:
    """Returns where a serde is used.

    >>> str(place("orders", is_key=True)), str(place("", is_key=False))
    ("key of topic 'orders'", 'value')
    >>> str(place(StoreTopic("app-totals-changelog", "totals"), is_key=False))
    "value of store 'totals'"
    """
    what = "key" if is_key else "value"
    if isinstance(topic, StoreTopic):
        option = f" in Materialized({what}_serde=…), StreamJoined or the store's builder"
        return Place(f"{what} of store '{topic.store}'", option)
    return Place(f"{what} of topic '{topic}'" if topic else what)


def wrong_type(where: Place, serde: str, required: str, value: Any) -> SerializationError:
    """Returns the error for a value that is not the serde's.

    >>> wrong_type(Place("value of topic 'orders'"), "string", "str", 5)
    SerializationError("value of topic 'orders': the string serde needs str, got int 5; ...")
    """
    found = describe_value(value)
    message = (
        f"{where}: the {serde} serde needs {required}, got {found}; convert it, or name another serde{where.option}"
    )
    return SerializationError(message)


def bad_bytes(where: Place, serde: str, required: str, data: Any) -> DeserializationError:
    """Returns the error for bytes that the serde cannot read.

    >>> bad_bytes(Place("value"), "integer", "4 bytes", b"abc")
    DeserializationError("value: the integer serde reads 4 bytes, got bytes b'abc'; is this the serde that wrote them?")
    """
    found = describe_value(data)
    message = f"{where}: the {serde} serde reads {required}, got {found}; is this the serde that wrote them?"
    return DeserializationError(message)
