"""The shapes in which rows are sent: one writer for each media type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from headrace.sql.reading.results import ResultRow
from headrace.sql.server.errors import RequestError
from headrace.sql.server.json_rows import row_writer
from headrace.sql.server.protobuf_rows import ProtobufRows
from headrace.sql.server.querying import OpenQuery


class RowFormat(Protocol):
    """Writes an answer piece by piece."""

    media_type: str

    def begin(self) -> str: ...
    def rows(self, rows: Sequence[ResultRow]) -> str: ...
    def end(self, message: str | None) -> str: ...
    def failed(self, error: RequestError) -> str: ...


class StreamedRows:
    """An array of objects, each with one of header, row, finalMessage and errorMessage."""

    media_type = "application/vnd.ksql.v1+json"

    def __init__(self, query: OpenQuery) -> None:
        self._query = query
        self._write = row_writer(query.schema)

    def begin(self) -> str:
        header = {"queryId": self._query.id, "schema": str(self._query.schema)}
        return f"[{_json({'header': header})}"

    def rows(self, rows: Sequence[ResultRow]) -> str:
        return "".join(map(self._row, rows))

    def _row(self, row: ResultRow) -> str:
        tombstone = ',"tombstone":true' if row.tombstone else ""
        return f',\n{{"row":{{"columns":{self._write(row.columns)}{tombstone}}}}}'

    def end(self, message: str | None) -> str:
        final = "" if message is None else f",\n{_json({'finalMessage': message})}"
        return f"{final}]\n"

    def failed(self, error: RequestError) -> str:
        return f",\n{_json({'errorMessage': error.to_json()})}]\n"


class StreamedProtobuf(StreamedRows):
    """The same with rows as messages of Protobuf; the header has their schema."""

    media_type = "application/vnd.ksql.v1+protobuf"

    def __init__(self, query: OpenQuery) -> None:
        super().__init__(query)
        self._protobuf = ProtobufRows(query.schema)

    def begin(self) -> str:
        header = {
            "queryId": self._query.id,
            "schema": str(self._query.schema),
            "protoSchema": self._protobuf.schema_text,
        }
        return f"[{_json({'header': header})}"

    def _row(self, row: ResultRow) -> str:
        return f',\n{{"row":{{"protobufBytes":"{self._protobuf.encoded(row.columns)}"}}}}'


class Delimited:
    """A line with the columns, then a line for each row. Tombstones have no form here, so they are left out."""

    media_type = "application/vnd.ksqlapi.delimited.v1"

    def __init__(self, query: OpenQuery) -> None:
        self._query = query
        self._write = row_writer(query.schema)

    def begin(self) -> str:
        return f"{_json(_columns(self._query))}\n"

    def rows(self, rows: Sequence[ResultRow]) -> str:
        return "".join(f"{self._write(row.columns)}\n" for row in rows if not row.tombstone)

    def end(self, message: str | None) -> str:
        return ""

    def failed(self, error: RequestError) -> str:
        return f"{_json({'status': 'error', **error.to_json()})}\n"


class JsonArray(Delimited):
    """The same as one array."""

    media_type = "application/json"

    def begin(self) -> str:
        return f"[{_json(_columns(self._query))}"

    def rows(self, rows: Sequence[ResultRow]) -> str:
        return "".join(f",\n{self._write(row.columns)}" for row in rows if not row.tombstone)

    def end(self, message: str | None) -> str:
        return "]\n"

    def failed(self, error: RequestError) -> str:
        return f",\n{_json({'status': 'error', **error.to_json()})}]\n"


def _columns(query: OpenQuery) -> dict[str, Any]:
    return {
        "queryId": query.id,
        "columnNames": [column.name for column in query.schema],
        "columnTypes": [str(column.type) for column in query.schema],
    }


def _json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)
