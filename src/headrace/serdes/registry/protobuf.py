"""Protobuf with a schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.serdes.registry.objects import RegistrySerde

M = TypeVar("M")


@dataclass(frozen=True)
class ProtobufSerde(RegistrySerde[M], Generic[M]):
    r"""Messages of Protobuf in the registry's wire format.

    >>> from google.rpc.http_pb2 import HttpHeader
    >>> from headrace.serdes.registry import SchemaRegistry
    >>> serde = ProtobufSerde(SchemaRegistry("mock://doctest-protobuf"), HttpHeader)
    >>> serde.deserialize(serde.serialize(HttpHeader(key="a", value="b"), "headers"), "headers").value
    'b'
    """

    message: type[M]
    """The generated class of the messages."""

    __hash__ = RegistrySerde.__hash__

    # Any: nothing says that M is a message, because the library's types may not be installed.
    def _client_serializer(self) -> Any:
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        return ProtobufSerializer(self.message, self.registry.client, conf=dict(self.serializer_settings))

    def _client_deserializer(self) -> Any:
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer

        return ProtobufDeserializer(
            self.message, conf=dict(self.deserializer_settings), schema_registry_client=self.registry.client
        )
