"""Processors and extractors at sources: columns of key, headers and record position; event time from a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.processor import FixedKeyProcessor
from headrace.record import FixedKeyRecord, Headers
from headrace.sql.errors import SqlExecutionError
from headrace.sql.expressions.row_functions import RowFunction
from headrace.sql.types.schema import Column, Namespace
from headrace.timestamps import ConsumedRecord
from headrace.windows import Windowed

Row = list[Any]
Extra = tuple[str, Any]
"""What a column is made of, and which part of it."""

OF_RECORD = frozenset({"ROWTIME", "ROWPARTITION", "ROWOFFSET", "HEADERS", "HEADER"})
"""Extras for which the key and the row are not enough."""


def extra_of(column: Column, key: tuple[Column, ...]) -> Extra:
    """Returns what a column that is not in the value is made of."""
    if column.namespace is Namespace.KEY:
        return "KEY", next(place for place, one in enumerate(key) if one.name == column.name)
    if column.namespace is Namespace.HEADERS:
        return ("HEADERS", None) if column.header_key is None else ("HEADER", column.header_key)
    return column.name, None


@dataclass(frozen=True, slots=True)
class WithKeyColumns:
    """The row, then columns of its key and the bounds of its window."""

    extras: tuple[Extra, ...]

    def __call__(self, key: Any, row: Row | None) -> Row | None:
        return None if row is None else row + [key_part(kind, part, key) for kind, part in self.extras]


def key_part(kind: str, part: Any, key: Any) -> Any:
    """Returns a column of the key, or a bound of its window."""
    if key is None:
        return None
    if kind == "KEY":
        plain = key.key if type(key) is Windowed else key
        return None if plain is None else plain[part]
    return key.window.start_ms if kind == "WINDOWSTART" else key.window.end_ms


@dataclass(frozen=True)
class RecordColumns:
    """Makes processors that add columns of the key, of the headers and of the record's place."""

    extras: tuple[Extra, ...]

    def __call__(self) -> AddRecordColumns:
        return AddRecordColumns(self.extras)


class AddRecordColumns(FixedKeyProcessor[Any, Any, Any]):
    """Adds columns to the row of each record."""

    def __init__(self, extras: tuple[Extra, ...]) -> None:
        self._extras = extras

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        """Forwards the record with the longer row."""
        row = record.value
        if row is not None:
            row = row + [self._value(kind, part, record) for kind, part in self._extras]
        self.context.forward(record.with_value(row))

    def _value(self, kind: str, part: Any, record: FixedKeyRecord[Any, Any]) -> Any:
        if kind == "ROWTIME":
            return record.timestamp_ms
        if kind == "HEADERS":
            return header_structs(record.headers)
        if kind == "HEADER":
            return record.headers.last(part)
        if kind in ("ROWPARTITION", "ROWOFFSET"):
            metadata = self.context.record_metadata
            if metadata is None:
                return None
            return metadata.partition if kind == "ROWPARTITION" else metadata.offset
        return key_part(kind, part, record.key)


def header_structs(headers: Headers) -> list[dict[str, Any]]:
    """Returns all headers as the value of a HEADERS column."""
    return [{"KEY": name, "VALUE": value} for name, value in headers]


@dataclass(frozen=True, slots=True)
class ColumnTime:
    """Takes the time of a record from a column; one without a usable time is left out, or stops the query."""

    column: str
    function: RowFunction
    of_key: bool
    strict: bool

    def __call__(self, record: ConsumedRecord, partition_time_ms: int) -> int:
        key = record.key.key if type(record.key) is Windowed else record.key
        row = key if self.of_key else record.value
        if row is None:
            return record.timestamp_ms
        return self.time_of(row)

    def time_of(self, row: Any) -> int:
        """Returns the time in milliseconds; a negative number if there is none."""
        time_ms: Any = self.function(row)[0]
        if time_ms is not None and time_ms >= 0:
            return int(time_ms)
        if self.strict:
            message = (
                f"Fatal user code error in TimestampExtractor callback for record: column '{self.column}' gives the "
                f"time {time_ms}, which must not be null or negative; unset ksql.timestamp.throw.on.invalid to skip "
                "such records"
            )
            raise SqlExecutionError(message)
        return -1
