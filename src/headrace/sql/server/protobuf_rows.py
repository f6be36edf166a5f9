"""Rows of results as messages of Protobuf, whose schema follows from the columns."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.sql.formats import FormatOptions, format_named
from headrace.sql.formats.proto_schemas import schema_text
from headrace.sql.types.schema import Namespace, Schema


class ProtobufRows:
    """Writes rows of one schema."""

    def __init__(self, schema: Schema) -> None:
        columns = tuple(replace(column, namespace=Namespace.VALUE, header_key=None) for column in schema)
        self.schema_text = schema_text(columns, None, None, map_entries=True)
        format = format_named("PROTOBUF_NOSR")
        format.check(columns, FormatOptions())
        self._write = format.serde(columns, FormatOptions()).serializer("", is_key=False)

    def encoded(self, row: Sequence[Any]) -> str:
        """Returns a row as base64."""
        return base64.b64encode(self._write(list(row)) or b"").decode()
