"""Protobuf schemas as the library compiles them, and the columns they describe."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pool, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.type import date_pb2, timeofday_pb2

from headrace.serdes.registry.registry import Schema, SchemaRegistry
from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.proto_schemas import DECIMAL_FILE, META_FILE
from headrace.sql.formats.proto_text import ProtoFile, parse_proto
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    MAP,
    STRING,
    STRUCT,
    TIME,
    TIMESTAMP,
    SqlStruct,
    SqlType,
    StructField,
)
from headrace.sql.types.schema import Column, Namespace

_KNOWN = {
    **{
        module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
        for module in (timestamp_pb2, wrappers_pb2, date_pb2, timeofday_pb2)
    },
    DECIMAL_FILE: parse_proto(
        'syntax = "proto3"; package confluent.type; '
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
        DECIMAL_FILE,
    ).descriptor.SerializeToString(),
    META_FILE: FileDescriptorProto(name=META_FILE, package="confluent", syntax="proto3").SerializeToString(),
}
WRAPPERS = {
    "google.protobuf.BoolValue": BOOLEAN,
    "google.protobuf.Int32Value": INTEGER,
    "google.protobuf.Int64Value": BIGINT,
    "google.protobuf.UInt32Value": BIGINT,
    "google.protobuf.UInt64Value": BIGINT,
    "google.protobuf.FloatValue": DOUBLE,
    "google.protobuf.DoubleValue": DOUBLE,
    "google.protobuf.StringValue": STRING,
    "google.protobuf.BytesValue": BYTES,
}
_READ_MESSAGES = {
    "google.type.Date": DATE,
    "google.type.TimeOfDay": TIME,
    "google.protobuf.Timestamp": TIMESTAMP,
    **WRAPPERS,
}
_READ_SCALARS = {
    FieldDescriptor.TYPE_BOOL: BOOLEAN,
    FieldDescriptor.TYPE_INT32: INTEGER,
    FieldDescriptor.TYPE_SINT32: INTEGER,
    FieldDescriptor.TYPE_SFIXED32: INTEGER,
    FieldDescriptor.TYPE_UINT32: BIGINT,
    FieldDescriptor.TYPE_FIXED32: BIGINT,
    FieldDescriptor.TYPE_INT64: BIGINT,
    FieldDescriptor.TYPE_SINT64: BIGINT,
    FieldDescriptor.TYPE_SFIXED64: BIGINT,
    FieldDescriptor.TYPE_UINT64: BIGINT,
    FieldDescriptor.TYPE_FIXED64: BIGINT,
    FieldDescriptor.TYPE_FLOAT: DOUBLE,
    FieldDescriptor.TYPE_DOUBLE: DOUBLE,
    FieldDescriptor.TYPE_STRING: STRING,
    FieldDescriptor.TYPE_BYTES: BYTES,
    FieldDescriptor.TYPE_ENUM: STRING,
}


@dataclass(frozen=True, eq=False)
class Compiled:
    """A schema whose messages can be made."""

    # Any: the pool's own type differs between the implementations of the library.
    pool: Any
    messages: tuple[str, ...]
    """Full names of the messages that the schema itself defines at its top, in their order."""
    enumerations: tuple[str, ...]
    """Full names of the enumerations that it defines there."""
    parameters: dict[tuple[str, str], dict[str, str]]

    def message(self, name: str | None) -> Descriptor:
        """Returns the message of that name, or the first; raises ``LookupError`` if there is none."""
        if not self.messages:
            message = "the Protobuf schema defines no message"
            raise LookupError(message)
        wanted = self.messages[0] if name is None else self._full_name(name)
        try:
            found: Descriptor = self.pool.FindMessageTypeByName(wanted)
        except KeyError:
            known = ", ".join(self.messages)
            message = f"the Protobuf schema has no message '{wanted}'; it defines {known}"
            raise LookupError(message) from None
        return found

    def _full_name(self, name: str) -> str:
        """Returns the full name of the message that is called so without its package, else the name itself."""
        return next((known for known in self.messages if known.rpartition(".")[2] == name), name)


@lru_cache(maxsize=1024)
def compiled(schema: Schema, registry: SchemaRegistry | None) -> Compiled:
    """Returns the schema, compiled; the registry has the schemas that it imports."""
    pool = descriptor_pool.DescriptorPool()
    parameters: dict[tuple[str, str], dict[str, str]] = {}
    file = _parse_file(schema.text, "schema.proto")
    _add(pool, file, schema, registry, parameters)
    prefix = f"{file.descriptor.package}." if file.descriptor.package else ""
    messages = tuple(prefix + message.name for message in file.descriptor.message_type)
    enumerations = tuple(prefix + enumeration.name for enumeration in file.descriptor.enum_type)
    return Compiled(pool, messages, enumerations, parameters)


def _add(
    pool: Any, file: ProtoFile, schema: Schema, registry: SchemaRegistry | None, parameters: dict[Any, dict[str, str]]
) -> None:
    references = {reference.name: reference for reference in schema.references}
    for name in file.descriptor.dependency:
        if name in references and registry is not None:
            reference = references[name]
            found = registry.version(reference.subject, reference.version)
            if found is None:
                message = f"schema '{name}', version {reference.version} of '{reference.subject}', is not registered"
                raise LookupError(message)
            _add(pool, _parse_file(found.schema.text, name), found.schema, registry, parameters)
        else:
            _add_known(pool, name)
    parameters.update(file.parameters)
    pool.Add(file.descriptor)


def _add_known(pool: Any, name: str) -> None:
    if name not in _KNOWN:
        message = f"the Protobuf schema imports '{name}', which is not registered as a reference of it"
        raise LookupError(message)
    descriptor = FileDescriptorProto.FromString(_KNOWN[name])
    for dependency in descriptor.dependency:
        _add_known(pool, dependency)
    pool.Add(descriptor)


def _parse_file(text: str, name: str) -> ProtoFile:
    if "message" in text or "syntax" in text:
        return parse_proto(text, name)
    # The client for Python registers descriptors instead of texts.
    descriptor = FileDescriptorProto.FromString(base64.b64decode(text))
    descriptor.name = name
    return ProtoFile(descriptor)


def columns_of(schema: Compiled, message: str | None, namespace: Namespace, *, keep_case: bool) -> tuple[Column, ...]:
    """Returns the columns that a message describes."""
    found = _struct(schema, schema.message(message), (), keep_case=keep_case)
    return tuple(Column(field.name, field.type, namespace) for field in found.fields)


def _struct(schema: Compiled, message: Descriptor, outer: tuple[str, ...], *, keep_case: bool) -> SqlStruct:
    if message.full_name in outer:
        text = f"message '{message.full_name}' contains itself, which no type in SQL does"
        raise SqlStatementError(text)
    inside = (*outer, message.full_name)

    def field_of(name: str, type: SqlType) -> StructField:
        return StructField(name if keep_case else name.upper(), type)

    def fields_of(fields: Iterable[FieldDescriptor]) -> tuple[StructField, ...]:
        return tuple(field_of(field.name, _type(schema, field, inside, keep_case=keep_case)) for field in fields)

    choices = tuple(field_of(name, STRUCT(fields_of(fields))) for name, _, fields in choices_of(message))
    return STRUCT((*choices, *fields_of(plain_fields(message))))


def choices_of(message: Descriptor) -> list[tuple[str, str, list[FieldDescriptor]]]:
    """Returns the oneofs of a message: the name of its column, its own name, and its fields.

    A column of its own for each, named and placed as Connect's converter does.
    """
    found = []
    for oneof in message.oneofs:
        # What is only there to say that a field is optional is no choice.
        if [f"_{field.name}" for field in oneof.fields] != [oneof.name]:
            found.append((f"{oneof.name}_{oneof.index}", oneof.name, list(oneof.fields)))
    return found


def plain_fields(message: Descriptor) -> list[FieldDescriptor]:
    """Returns the fields of a message that belong to no oneof."""
    chosen = {field.name for _, _, fields in choices_of(message) for field in fields}
    return [field for field in message.fields if field.name not in chosen]


def _type(schema: Compiled, field: FieldDescriptor, outer: tuple[str, ...], *, keep_case: bool) -> SqlType:
    given = schema.parameters.get((field.containing_type.full_name, field.name), {})
    if is_map(field):
        value = field.message_type.fields_by_name["value"]
        return MAP(STRING, _single(schema, value, given, outer, keep_case=keep_case))
    single = _single(schema, field, given, outer, keep_case=keep_case)
    return ARRAY(single) if field.is_repeated else single


def _single(
    schema: Compiled, field: FieldDescriptor, given: dict[str, str], outer: tuple[str, ...], *, keep_case: bool
) -> SqlType:
    if field.message_type is None:
        return _READ_SCALARS[field.type]
    name = field.message_type.full_name
    if name in _READ_MESSAGES:
        return _READ_MESSAGES[name]
    if name == "confluent.type.Decimal":
        return DECIMAL(int(given.get("precision", 64)), int(given.get("scale", 0)))
    return _struct(schema, field.message_type, outer, keep_case=keep_case)


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map: a repeated message of entries to the descriptor, a map to everyone else."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
