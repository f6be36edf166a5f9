"""JSON with a JSON Schema in a schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.serdes.registry.objects import ObjectSerde

T = TypeVar("T")


@dataclass(frozen=True)
class JsonSchemaSerde(ObjectSerde[T], Generic[T]):
    r"""JSON in the registry's wire format, checked against its schema when it is written and when it is read.

    >>> from headrace.serdes.registry import SchemaRegistry
    >>> schema = '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'
    >>> serde = JsonSchemaSerde(SchemaRegistry("mock://doctest-json"), schema)
    >>> serde.serialize({"id": 7}, "orders")
    b'\x00\x00\x00\x00\x01{"id":7}'
    >>> serde.serialize({"id": "seven"}, "orders")
    Traceback (most recent call last):
    ...
    headrace.errors.SerializationError: value of topic 'orders': JsonSchemaSerde cannot write dict {'id': 'seven'}: ...
    """

    __hash__ = ObjectSerde.__hash__

    def _client_serializer(self) -> Any:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(self.schema, self.registry.client, conf=dict(self.serializer_settings))

    def _client_deserializer(self) -> Any:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer

        return JSONDeserializer(
            self.schema, schema_registry_client=self.registry.client, conf=dict(self.deserializer_settings)
        )
