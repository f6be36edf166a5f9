"""Wire formats of internal topics: table changes, and the subscriptions and responses of foreign-key joins.

The bytes are Kafka Streams' own, so that its tools can read these topics and its data can be taken over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from struct import Struct
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from headrace.errors import DeserializationError, SerializationError
from headrace.record import Change
from headrace.serdes import BaseSerde, Serde
from headrace.serdes.base import resolved
from headrace.serdes.zigzag import read_zigzag, zigzag

T = TypeVar("T")
K = TypeVar("K")

_HASH_SIZE = 16
_HASH_ABSENT = 0x80
_PARTITION = Struct(">i")


class Instruction(IntEnum):
    """Instruction to the right side of a foreign-key join about a subscription."""

    DELETE_KEY_NO_PROPAGATE = 0
    """Forget the subscription, answer nothing."""
    DELETE_KEY_AND_PROPAGATE = 1
    """Forget the subscription, answer that there is no row."""
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    """Keep the subscription, answer in any case."""
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3
    """Keep the subscription, answer if there is a row."""


class Subscription(NamedTuple):
    """A row of the left table asks for the rows of its foreign key."""

    hash: bytes | None
    """`murmur3_128` of the row's value; None when the row is gone."""
    instruction: Instruction
    primary_key: Any
    """The left row's key, of the user's type."""
    version: int = 1
    """Format of the bytes: 0 (before Kafka 3.4) has no partition."""
    primary_partition: int | None = None
    """Partition of the left row, where the answer has to go."""


class SubscriptionResponse(NamedTuple):
    """The answer to a subscription: the right table's value, or None, and the hash that the question carried."""

    hash: bytes | None
    value: Any
    """The right row's value, of the user's type."""
    primary_partition: int | None = None
    """Where to send the answer; not part of its bytes."""


def response_partitioner(topic: str, key: object, value: SubscriptionResponse, partitions: int) -> int | None:
    """Sends an answer back to the partition that asked; None (an old question) leaves it to the key.

    >>> response_partitioner("t", "k", SubscriptionResponse(None, "v", 3), 4)
    3
    """
    return value.primary_partition


@dataclass(frozen=True, slots=True)
class ChangeSerde(BaseSerde[Change], Generic[T]):
    r"""A table's change on a repartition topic: new value, old value or both, then a byte that says which.

    >>> from headrace.serdes import Serdes
    >>> write = ChangeSerde(Serdes.string()).serializer("topic", is_key=False)
    >>> write(Change("b", "a"))
    b'\x02ba\x02'
    """

    inner: Serde[T] | None = None
    """None: the application's default."""

    inner_is_key: ClassVar[bool] = False
    """Whether `resolve` wants the default serde of keys rather than of values."""

    def resolve(self, default: Serde[Any]) -> ChangeSerde[Any]:
        """Returns this serde with ``default`` inside if nothing was given."""
        return replace(self, inner=resolved(self.inner, default))

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Change], bytes]:
        """Returns the function that writes changes for ``topic``."""
        write = _given(self.inner, self).serializer(topic, is_key=is_key)

        def serialize(change: Change) -> bytes:
            new, old = change.new, change.old
            if new is None:
                if old is None:
                    message = f"topic '{topic}': a change needs a new or an old value, both are None"
                    raise SerializationError(message)
                return write(old) + b"\x00"
            new_bytes = write(new)
            if old is None:
                return new_bytes + b"\x01"
            return b"".join((zigzag(len(new_bytes)), new_bytes, write(old), b"\x02"))

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], Change]:
        """Returns the function that reads changes of ``topic``, also those that carry a `latest` byte."""
        read = _given(self.inner, self).deserializer(topic, is_key=is_key)

        def deserialize(data: bytes) -> Change:
            flag = data[-1] if data else -1
            end, latest = len(data) - 1, True
            if 3 <= flag <= 5:
                end -= 1
                latest = data[end] == 1
                flag -= 3
            if flag == 0:
                return Change(None, read(data[:end]), latest)
            if flag == 1:
                return Change(read(data[:end]), None, latest)
            if flag == 2:
                length, start = read_zigzag(data)
                middle = start + length
                return Change(read(data[start:middle]), read(data[middle:end]), latest)
            message = f"topic '{topic}': not a change of a table, its last byte is {flag}; expected 0 to 5"
            raise DeserializationError(message)

        return deserialize


@dataclass(frozen=True, slots=True)
class SubscriptionSerde(BaseSerde[Subscription], Generic[K]):
    r"""A `Subscription` on its internal topic and in the subscription store.

    >>> from headrace.serdes import Serdes
    >>> write = SubscriptionSerde(Serdes.string()).serializer("topic", is_key=False)
    >>> write(Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, "k", 1, 0))
    b'\x81\x01k\x00\x00\x00\x00'
    """

    primary_key_serde: Serde[K] | None = None
    """None: the application's default for keys."""

    inner_is_key: ClassVar[bool] = True
    """Whether `resolve` wants the default serde of keys rather than of values."""

    def resolve(self, default: Serde[Any]) -> SubscriptionSerde[Any]:
        """Returns this serde with ``default`` inside if nothing was given."""
        return replace(self, primary_key_serde=resolved(self.primary_key_serde, default))

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[Subscription], bytes]:
        """Returns the function that writes subscriptions for ``topic``."""
        write = _given(self.primary_key_serde, self).serializer(f"{topic}-pk", is_key=True)

        def serialize(subscription: Subscription) -> bytes:
            digest, instruction, primary_key, version, partition = subscription
            first = version if digest is not None else version | _HASH_ABSENT
            head = bytes((first, instruction)) + (digest or b"") + write(primary_key)
            return head if version == 0 else head + _PARTITION.pack(partition)

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], Subscription]:
        """Returns the function that reads subscriptions of ``topic``."""
        read = _given(self.primary_key_serde, self).deserializer(f"{topic}-pk", is_key=True)

        def deserialize(data: bytes) -> Subscription:
            try:
                first, instruction = data[0], Instruction(data[1])
                digest, start = (None, 2) if first & _HASH_ABSENT else (data[2:18], 18)
                version = first & 0x7F
                if version == 0:
                    return Subscription(digest, instruction, read(data[start:]), 0, None)
                (partition,) = _PARTITION.unpack_from(data, len(data) - 4)
                return Subscription(digest, instruction, read(data[start:-4]), version, partition)
            except (IndexError, ValueError) as error:
                if isinstance(error, DeserializationError):
                    raise
                message = f"topic '{topic}': not a subscription of a foreign-key join: {data[:24]!r}"
                raise DeserializationError(message) from error

        return deserialize


@dataclass(frozen=True, slots=True)
class SubscriptionResponseSerde(BaseSerde[SubscriptionResponse], Generic[T]):
    r"""A `SubscriptionResponse` on its internal topic.

    A right value whose bytes are empty arrives as None: the format cannot tell them apart.

    >>> from headrace.serdes import Serdes
    >>> serde = SubscriptionResponseSerde(Serdes.string())
    >>> serde.serializer("topic", is_key=False)(SubscriptionResponse(None, "v", 7))
    b'\x80v'
    >>> serde.deserializer("topic", is_key=False)(b"\x80v")
    SubscriptionResponse(hash=None, value='v', primary_partition=None)
    """

    value_serde: Serde[T] | None = None
    """None: the application's default for values."""

    inner_is_key: ClassVar[bool] = False
    """Whether `resolve` wants the default serde of keys rather than of values."""

    def resolve(self, default: Serde[Any]) -> SubscriptionResponseSerde[Any]:
        """Returns this serde with ``default`` inside if nothing was given."""
        return replace(self, value_serde=resolved(self.value_serde, default))

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[SubscriptionResponse], bytes]:
        """Returns the function that writes answers for ``topic``."""
        write = _given(self.value_serde, self).serializer(topic, is_key=is_key)

        def serialize(response: SubscriptionResponse) -> bytes:
            digest, value, _ = response
            head = b"\x80" if digest is None else b"\x00" + digest
            return head if value is None else head + write(value)

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], SubscriptionResponse]:
        """Returns the function that reads answers of ``topic``."""
        read = _given(self.value_serde, self).deserializer(topic, is_key=is_key)

        def deserialize(data: bytes) -> SubscriptionResponse:
            if not data or (data[0] & _HASH_ABSENT == 0 and len(data) <= _HASH_SIZE):
                message = f"topic '{topic}': not an answer of a foreign-key join: {data[:24]!r}"
                raise DeserializationError(message)
            digest, start = (None, 1) if data[0] & _HASH_ABSENT else (data[1:17], 17)
            return SubscriptionResponse(digest, read(data[start:]) if len(data) > start else None)

        return deserialize


def _given(inner: Serde[T] | None, serde: object) -> Serde[T]:
    if inner is None:
        message = f"{type(serde).__name__} has no serde inside; call resolve(default) before its first use"
        raise SerializationError(message)
    return inner
