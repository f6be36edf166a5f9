"""Serdes around a serializer and a deserializer of confluent-kafka: what Avro, JSON Schema and Protobuf share."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

from headrace.errors import ConfigError, DeserializationError, SerializationError, describe_value
from headrace.serdes.base import BaseSerde, place
from headrace.serdes.registry.registry import SchemaRegistry

T = TypeVar("T")
_KEPT = (datetime.datetime, datetime.date, datetime.time, Decimal, bytes, UUID)


# The serializers take (value, context) and nothing of them is typed, hence Any.
@dataclass(frozen=True)
class RegistrySerde(BaseSerde[T], Generic[T]):
    """Base of the serdes with a registered schema."""

    registry: SchemaRegistry
    """Where the schemas are."""

    serializer_settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Settings of the client's serializer, such as ``auto.register.schemas`` or ``use.latest.version``."""
    deserializer_settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Settings of the client's deserializer."""

    def __post_init__(self) -> None:
        if not isinstance(self.registry, SchemaRegistry):
            found = describe_value(self.registry)
            message = f"{type(self).__name__}: the registry must be a SchemaRegistry, got {found}"
            raise ConfigError(message)

    def __hash__(self) -> int:
        return hash((type(self), self.registry))

    def serializer(self, topic: str, *, is_key: bool) -> Callable[[T], bytes]:
        where, name, context = place(topic, is_key=is_key), type(self).__name__, _context(self, topic, is_key=is_key)
        write, prepare = self._client_serializer(), self._prepare()

        def serialize(value: T) -> bytes:
            try:
                data: bytes = write(prepare(value), context)
            except Exception as error:
                message = f"{where}: {name} cannot write {describe_value(value)}: {error!r}"
                raise SerializationError(message) from error
            return data

        return serialize

    def deserializer(self, topic: str, *, is_key: bool) -> Callable[[bytes], T]:
        where, name, context = place(topic, is_key=is_key), type(self).__name__, _context(self, topic, is_key=is_key)
        read, restore = self._client_deserializer(), self._restore()

        def deserialize(data: bytes) -> T:
            try:
                value: T = restore(read(data, context))
            except Exception as error:
                message = f"{where}: {name} cannot read {describe_value(data)}: {error!r}"
                raise DeserializationError(message) from error
            return value

        return deserialize

    def _client_serializer(self) -> Any:
        raise NotImplementedError

    def _client_deserializer(self) -> Any:
        raise NotImplementedError

    def _prepare(self) -> Callable[[Any], Any]:
        return _same

    def _restore(self) -> Callable[[Any], Any]:
        return _same


@dataclass(frozen=True)
class ObjectSerde(RegistrySerde[T], Generic[T]):
    """Base of the serdes whose schema is a text: they write dicts, or objects of a type."""

    schema: str
    """The schema that is written with, and that what was written with another one is brought to when it is read."""
    type: Any = None
    """A dataclass or ``msgspec.Struct`` whose objects are written and read; without it they are dicts."""

    __hash__ = RegistrySerde.__hash__

    def _prepare(self) -> Callable[[Any], Any]:
        return _same if self.type is None else _to_dict

    def _restore(self) -> Callable[[Any], Any]:
        type = self.type
        return _same if type is None else lambda value: msgspec.convert(value, type)


def _context(serde: RegistrySerde[Any], topic: str, *, is_key: bool) -> Any:
    # Before anything else: it says what to install if the client is not there.
    _ = serde.registry.client
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext(topic, MessageField.KEY if is_key else MessageField.VALUE)


def _to_dict(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=_KEPT)


def _same(value: Any) -> Any:
    return value
