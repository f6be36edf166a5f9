"""A serde made of two functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace.arguments.signatures import describe_function, takes
from headrace.errors import ConfigError, DeserializationError, SerializationError, StreamsError, describe_value
from headrace.serdes.base import BaseSerde, place

T = TypeVar("T")


@dataclass(frozen=True)
class CustomSerde(BaseSerde[T]):
    """A serde from a function that writes and one that reads; what they raise is reported as a serde's error.

    >>> reversed_text = CustomSerde(lambda text: text[::-1].encode(), lambda data: data.decode()[::-1])
    >>> reversed_text.serialize("abc"), reversed_text.deserialize(b"cba")
    (b'cba', 'abc')
    """

    write: Callable[[T], bytes]
    """Returns the bytes of a value."""
    read: Callable[[bytes], T]
    """Returns the value of bytes."""
    identity: bool = False
    """Whether an object can stand for its bytes: see ``Serde``."""
    immutable: bool = False
    """Whether an object can be kept instead of being read again: see ``Serde``."""

    def __post_init__(self) -> None:
        for role, function, argument in (("serialize", self.write, "value"), ("deserialize", self.read, "data")):
            if not callable(function) or not takes(function, 1):
                found = describe_function(function) if callable(function) else describe_value(function)
                message = f"Serdes.of: {role} must be a function ({argument}); found {found}"
                raise ConfigError(message)

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[T], bytes]:
        where, write, name = place(topic, is_key=is_key), self.write, _name(self.write)

        def serialize(value: T) -> bytes:
            try:
                data = write(value)
            except StreamsError:
                raise
            except Exception as error:
                message = f"{where}: serializer {name} raised {error!r} for {describe_value(value)}"
                raise SerializationError(message) from error
            if type(data) is not bytes:
                message = f"{where}: serializer {name} must return bytes, got {describe_value(data)}"
                raise SerializationError(message)
            return data

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], T]:
        where, read, name = place(topic, is_key=is_key), self.read, _name(self.read)

        def deserialize(data: bytes) -> T:
            try:
                return read(data)
            except StreamsError:
                raise
            except Exception as error:
                message = f"{where}: deserializer {name} raised {error!r} for {describe_value(data)}"
                raise DeserializationError(message) from error

        return deserialize


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
