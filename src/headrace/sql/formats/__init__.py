"""Formats: how the rows of a source become bytes and come back.

| module | |
|---|---|
| ``format``, ``registered`` | the protocol, and what formats with registered schemas share |
| ``json``, ``json_reading``, ``json_writing`` | JSON |
| ``json_sr``, ``json_schemas`` | JSON_SR |
| ``avro``, ``avro_schemas``, ``avro_unions``, ``avro_writing`` | AVRO |
| ``protobuf``, ``proto_columns``, ``proto_messages``, ``proto_schemas``, ``proto_text`` | PROTOBUF |
| ``delimited``, ``kafka``, ``none`` | DELIMITED, KAFKA, NONE |
| ``coercion``, ``java_numbers``, ``generated``, ``registered_json`` | what formats share |
"""

from __future__ import annotations

from headrace.sql.errors import SqlStatementError
from headrace.sql.formats.avro import AvroFormat
from headrace.sql.formats.delimited import DelimitedFormat, delimiter_of
from headrace.sql.formats.format import Format, FormatOptions, KeySerde, RowSerde
from headrace.sql.formats.json import JsonFormat
from headrace.sql.formats.json_sr import JsonSchemaFormat
from headrace.sql.formats.kafka import KafkaFormat
from headrace.sql.formats.none import NoneFormat
from headrace.sql.formats.protobuf import ProtobufFormat, ProtobufNoRegistryFormat

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        KafkaFormat(),
        JsonFormat(),
        DelimitedFormat(),
        NoneFormat(),
        AvroFormat(),
        JsonSchemaFormat(),
        ProtobufFormat(),
        ProtobufNoRegistryFormat(),
    )
}
"""Every format, by its name."""


def format_named(name: str) -> Format:
    """Returns the format of that name, in any case.

    >>> format_named("json").name
    'JSON'
    """
    found = FORMATS.get(name.upper())
    if found is None:
        message = f"Unknown format: {name.upper()}"
        raise SqlStatementError(message)
    return found


__all__ = ["FORMATS", "Format", "FormatOptions", "KeySerde", "RowSerde", "delimiter_of", "format_named"]
