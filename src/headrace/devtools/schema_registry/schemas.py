"""Schemas as texts: whether they are any, and when two of them are the same."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from headrace.devtools.schema_registry.avro_schemas import Names, Node, resolve_avro
from headrace.devtools.schema_registry.errors import INVALID_SCHEMA, RegistryError
from headrace.serdes.registry.registry import Schema
from headrace.sql.formats.proto_text import parse_proto

KINDS = ("JSON", "PROTOBUF", "AVRO")


def checked_schema(schema: Schema, referenced: Mapping[str, Schema]) -> Schema:
    """Returns a schema as it is kept, without needless spaces; raises ``RegistryError`` if it is none.

    ``referenced`` are the schemas that it imports, by the names that it gives them.
    """
    try:
        match schema.kind:
            case "AVRO":
                avro_type(schema, referenced)
                text = json.dumps(_plain_avro(json.loads(schema.text)), separators=(",", ":"))
            case "JSON":
                found = json.loads(schema.text)
                if not isinstance(found, dict | bool):
                    message = f"a JSON Schema is an object or a boolean, got {schema.text[:100]}"
                    raise ValueError(message)
                text = json.dumps(found, separators=(",", ":"))
            case "PROTOBUF":
                descriptor_of(schema)
                text = schema.text
            case kind:
                message = f"the kind must be one of {', '.join(KINDS)}, got '{kind}'"
                raise ValueError(message)
    except (ValueError, RecursionError) as error:
        message = f"Either the input schema or one its references is invalid: {error}"
        raise RegistryError(INVALID_SCHEMA, message) from error
    return Schema(text, schema.kind, schema.references)


def identity(schema: Schema) -> tuple[object, ...]:
    """Returns what is equal for schemas that are the same, in whichever order their attributes are written.

    >>> one, other = (Schema(text, "JSON") for text in ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'))
    >>> identity(one) == identity(other)
    True
    """
    text = schema.text if schema.kind == "PROTOBUF" else json.dumps(json.loads(schema.text), sort_keys=True)
    return schema.kind, text, schema.references


def avro_type(schema: Schema, referenced: Mapping[str, Schema]) -> Node:
    """Returns an Avro schema with its names resolved, those of the schemas that it imports as well."""
    names: Names = {}
    for each in referenced.values():
        resolve_avro(json.loads(each.text), names)
    return resolve_avro(json.loads(schema.text), names)


def descriptor_of(schema: Schema) -> FileDescriptorProto:
    """Returns the descriptor of a Protobuf schema, which clients register as text or as its bytes in Base64."""
    try:
        data = base64.b64decode(schema.text, validate=True)
        found = FileDescriptorProto.FromString(data)
        if found.message_type or found.enum_type:
            return found
    except (ValueError, DecodeError):
        pass
    return parse_proto(schema.text, "default").descriptor


def serialized(schema: Schema) -> Schema:
    """Returns a Protobuf schema as its descriptor in Base64, which some clients ask for; others as they are."""
    if schema.kind != "PROTOBUF":
        return schema
    data = descriptor_of(schema).SerializeToString()
    return Schema(base64.b64encode(data).decode(), schema.kind, schema.references)


# Any: JSON.
def _plain_avro(schema: Any) -> Any:
    """Writes a primitive type without further attributes as its name, as Avro does."""
    if isinstance(schema, dict):
        if schema.keys() == {"type"} and isinstance(schema["type"], str):
            return schema["type"]
        return {name: _plain_avro(part) if name in _TYPES else part for name, part in schema.items()}
    return [_plain_avro(each) for each in schema] if isinstance(schema, list) else schema


_TYPES = ("type", "items", "values", "fields")
"""The attributes of an Avro schema that hold types."""
