"""Rows that a pull query reads from the view of a table: of some keys, of a range of keys, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from headrace.sql.planning.build import key_serde_of
from headrace.sql.planning.sources import FromSource
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.pull.key_access import Access, KeyRows, RangeRows, plain_key
from headrace.sql.reading.record_rows import RecordRows, Row, Unreadable, key_format_of
from headrace.sql.reading.tables import SqlTables
from headrace.sql.reading.tables.carried_headers import unpacked
from headrace.sql.reading.tables.expiry import Expiry
from headrace.sql.reading.tables.view import TableSnapshot, TableView, ViewRow
from headrace.sql.types import INTEGER, STRING
from headrace.state.engines.engine import after_prefix
from headrace.topics.log import Raw

_START = Struct(">q")
_INT, _LONG = Struct(">i"), Struct(">q")
_BOUNDS_BYTES = {True: 16, False: 8}
"""How many bytes the window has in a key: two times of a session, the start of others."""
_UNKNOWN = -1

ByteRange = tuple[bytes | None, bytes | None]


class TableRows:
    """Reads the rows of one table, as they were when it was refreshed last or later."""

    _view: TableView

    def __init__(self, source: FromSource, typing: Typing, expiry: Expiry | None) -> None:
        self.source = source
        self._expiry = expiry
        self._records = RecordRows(source, typing)
        self._has_headers = bool(source.definition.schema.headers)
        by_column = expiry is not None and expiry.column is not None
        self._record_time = self._time_of if by_column else None
        definition = source.definition
        plain = key_serde_of(definition.schema.key, key_format_of(definition).without_window)
        self._key_bytes = plain.serializer(definition.topic, is_key=True)
        self._window_bytes = 0
        if definition.window is not None:
            self._window_bytes = _BOUNDS_BYTES[definition.window.size is None]

    def refresh(self, tables: SqlTables) -> None:
        """Brings the view up to date; before the first question it has to be done."""
        self._view = tables.view(self.source.definition, self._expiry, self._record_time)

    def rows(self, access: Access | None) -> Iterator[Row]:
        """Yields rows as of one moment; without ``access`` all of them."""
        with self._view.reading() as snapshot:
            found = snapshot.scan_all() if access is None else self._select_rows(access, snapshot)
            for each in found:
                row = self._row(each)
                if row is not None:
                    yield row

    def lookup(self) -> KeyLookup:
        """Returns what finds rows by single keys, all as of one moment; whoever has it closes it."""
        return KeyLookup(self, self._view)

    def row_of(self, key: tuple[Any, ...], snapshot: TableSnapshot) -> Row | None:
        """Returns the row of a key of a table without windows."""
        data = self._key_bytes(key)
        if data is None:
            return None
        for partition in range(snapshot.partitions):
            found = snapshot.get(partition, data)
            if found is not None:
                return self._row(found)
        return None

    def _select_rows(self, access: Access, snapshot: TableSnapshot) -> Iterator[ViewRow]:
        seen: set[tuple[int, bytes]] = set()
        for one in access:
            for row in self._read_rows(one, snapshot):
                if len(access) > 1:
                    if row[:2] in seen:
                        continue
                    seen.add(row[:2])
                yield row

    def _read_rows(self, one: KeyRows | RangeRows, snapshot: TableSnapshot) -> Iterator[ViewRow]:
        if isinstance(one, RangeRows):
            for start, stop in self._byte_ranges(one):
                yield from snapshot.scan_all(start, stop)
            return
        key = self._key_bytes(plain_key(one.key))
        if key is None:
            return
        # Whoever wrote the topic has chosen the partitions, perhaps by other means than the key's hash.
        for partition in range(snapshot.partitions):
            if self._window_bytes:
                yield from self._read_windows(partition, key, one, snapshot)
            else:
                found = snapshot.get(partition, key)
                if found is not None:
                    yield found

    def _read_windows(self, partition: int, key: bytes, one: KeyRows, snapshot: TableSnapshot) -> Iterator[ViewRow]:
        low, high = one.starts
        start = key if low is None or low <= 0 else key + _START.pack(low)
        if high is not None and high < 0:
            return
        stop = after_prefix(key) if high is None else key + _START.pack(high) + b"\0"
        length = len(key) + self._window_bytes
        for row in snapshot.scan(partition, start, stop):
            # Another key may begin with the same bytes.
            if len(row[1]) == length and row[1].startswith(key):
                yield row

    def _byte_ranges(self, one: RangeRows) -> list[ByteRange]:
        low, high = one.bounds
        [column] = self.source.definition.schema.key
        if column.type == STRING:
            start = None if low is None else low.encode()
            return [(start, None if high is None else high.encode() + b"\0")]
        numbers = _INT if column.type == INTEGER else _LONG
        half = 1 << (numbers.size * 8 - 1)
        low = -half if low is None else low
        high = half - 1 if high is None else high
        # Negative numbers come behind the others by their bytes.
        pieces = [(max(low, 0), high), (low, min(high, -1))]
        return [(numbers.pack(first), numbers.pack(last) + b"\0") for first, last in pieces if first <= last]

    def _time_of(self, partition: int, raw: Raw) -> int:
        _, timestamp_ms, key, value, _ = raw
        # A deletion has no column to take the time from.
        if value is None:
            return timestamp_ms
        row = self._row((partition, key, timestamp_ms, value))
        return -1 if row is None else int(row[0])

    def _row(self, found: tuple[int, bytes | None, int, bytes]) -> Row | None:
        partition, key, timestamp_ms, value = found
        try:
            if self._has_headers:
                plain, headers = unpacked(value)
                return self._records.row(partition, _UNKNOWN, timestamp_ms, key, plain, headers)
            return self._records.row(partition, _UNKNOWN, timestamp_ms, key, value)
        except Unreadable:
            return None


class KeyLookup:
    """Finds rows of a table by key, all as of one moment."""

    def __init__(self, rows: TableRows, view: TableView) -> None:
        self._rows = rows
        self._reading = view.reading()
        self._snapshot = self._reading.__enter__()

    def get(self, key: tuple[Any, ...]) -> Row | None:
        """Returns the row of a key, or None."""
        return self._rows.row_of(key, self._snapshot)

    def close(self) -> None:
        """Ends the use of the view."""
        self._reading.__exit__(None, None, None)
