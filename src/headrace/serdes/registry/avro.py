"""Avro with a schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.serdes.registry.objects import ObjectSerde

T = TypeVar("T")


@dataclass(frozen=True)
class AvroSerde(ObjectSerde[T], Generic[T]):
    r"""Avro records in the registry's wire format: dicts, or objects of a type.

    The schema is registered under ``<topic>-value`` or ``<topic>-key`` when the first record is written, unless
    ``serializer_settings={"auto.register.schemas": False}``. What others wrote with older or newer schemas is read
    into this one, by Avro's rules for that.

    >>> from headrace.serdes.registry import SchemaRegistry
    >>> schema = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
    >>> serde = AvroSerde(SchemaRegistry("mock://doctest-avro"), schema)
    >>> serde.serialize({"id": 7}, "orders")
    b'\x00\x00\x00\x00\x01\x0e'
    >>> serde.deserialize(_, "orders")
    {'id': 7}
    """

    __hash__ = ObjectSerde.__hash__

    def _client_serializer(self) -> Any:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(self.registry.client, self.schema, conf=dict(self.serializer_settings))

    def _client_deserializer(self) -> Any:
        from confluent_kafka.schema_registry.avro import AvroDeserializer

        return AvroDeserializer(self.registry.client, self.schema, conf=dict(self.deserializer_settings))
