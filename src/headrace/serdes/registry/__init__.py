"""Serdes whose schemas are in a schema registry, in the wire format of its clients."""

from headrace.serdes.registry.avro import AvroSerde
from headrace.serdes.registry.json_schema import JsonSchemaSerde
from headrace.serdes.registry.protobuf import ProtobufSerde
from headrace.serdes.registry.registry import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, subject_of

__all__ = [
    "AvroSerde",
    "JsonSchemaSerde",
    "ProtobufSerde",
    "RegisteredSchema",
    "Schema",
    "SchemaReference",
    "SchemaRegistry",
    "subject_of",
]
