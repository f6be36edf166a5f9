"""Push queries that need no topology: each record of the source gives its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.sql.reading.record_rows import Unreadable
from headrace.sql.reading.results import ResultRow
from headrace.sql.reading.row_query import RowQuery
from headrace.topics.log import Raw


class StreamRows:
    """Rows of a stream's records. A record without value gives none."""

    def __init__(self, query: RowQuery, *, with_null_keys: bool = True) -> None:
        self._query = query
        self._records = query.records()
        self._with_null_keys = with_null_keys or not query.source.definition.schema.key

    def __call__(self, partition: int, raw: Raw) -> Iterable[ResultRow]:
        offset, time_ms, key, value, headers = raw
        if key is None and not self._with_null_keys:
            return
        try:
            row = self._records.row(partition, offset, time_ms, key, value, headers)
        except Unreadable:
            return
        passes = self._query.predicate
        if row is not None and (passes is None or passes(row)):
            yield from map(ResultRow, self._query.results(row))


class TableChanges:
    """Rows of a table's changes. A row that is gone, or passes the condition no more, gives a tombstone."""

    def __init__(self, query: RowQuery, *, with_tombstones: bool = True) -> None:
        self._query = query
        self._records = query.records()
        self._with_tombstones = with_tombstones
        # Keys of the rows that pass: a row that never did is not said to be gone.
        self._passing: set[bytes] = set()

    def __call__(self, partition: int, raw: Raw) -> Iterable[ResultRow]:
        offset, time_ms, key, value, headers = raw
        if key is None:
            return
        try:
            row = self._records.row(partition, offset, time_ms, key, value, headers)
            passes = self._query.predicate
            if row is not None and (passes is None or passes(row)):
                if passes is not None:
                    self._passing.add(key)
                yield from map(ResultRow, self._query.results(row))
            elif self._with_tombstones and (passes is None or key in self._passing):
                self._passing.discard(key)
                yield from self._gone(partition, offset, time_ms, key)
        except Unreadable:
            return

    def _gone(self, partition: int, offset: int, time_ms: int, key: bytes) -> Iterator[ResultRow]:
        columns = self._query.deleted(self._records.key_row(partition, offset, time_ms, key))
        yield ResultRow(columns, tombstone=True)
