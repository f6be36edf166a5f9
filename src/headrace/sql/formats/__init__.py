"""Formats: how the rows of a source become bytes and come back."""

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
