"""A message of Protobuf as the text that cases compare."""

from __future__ import annotations

from google.protobuf import text_format
from google.protobuf.message_factory import GetMessageClass

from headrace.serdes.registry.registry import Schema
from headrace.sql.formats.proto_columns import compiled


def message_text(schema: str, data: bytes) -> str:
    """Reads a message with its schema; a field that has its default is not written."""
    message = GetMessageClass(compiled(Schema(schema, "PROTOBUF"), None).message(None))()
    message.ParseFromString(data)
    return str(text_format.MessageToString(message))
