"""One engine in RocksDB: a column family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from rocksdict import ColumnFamily, DbClosedError, Rdict, ReadOptions, WriteBatch

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Row, in_chunks

COUNTED_ROWS = 1000
"""Up to so many rows are counted; beyond, RocksDB estimates."""

Failure: TypeAlias = Callable[[Exception], Exception]


class RocksDbEngine:
    """One named map of a ``RocksDbEnvironment``, with keys of any length.

    Of more than a thousand rows ``count`` is an estimate. Single writes are batches of their own: use ``apply`` for
    many.
    """

    __slots__ = ("__weakref__", "_failure", "_handle", "_write", "family")

    def __init__(
        self, family: Rdict, handle: ColumnFamily, write: Callable[[WriteBatch], None], failure: Failure
    ) -> None:
        self.family = family
        self._handle: ColumnFamily | None = handle
        self._write = write
        self._failure = failure

    def get(self, key: bytes) -> bytes | None:
        try:
            return self.family.get(key)
        except Exception as error:
            raise self._failure(error) from error

    def put(self, key: bytes, value: bytes) -> None:
        self.apply(Changes(rows={key: value}))

    def delete(self, key: bytes) -> None:
        self.apply(Changes(rows={key: None}))

    def delete_range(self, start: bytes, stop: bytes) -> None:
        self.apply(Changes(ranges=((start, stop),)))

    def apply(self, changes: Changes) -> None:
        batch = WriteBatch(raw_mode=True)
        self.add_to(batch, changes)
        self._write(batch)

    def add_to(self, batch: WriteBatch, changes: Changes) -> None:
        """Makes the changes part of a larger write."""
        put, delete, handle = batch.put, batch.delete, self._handle
        for start, stop in changes.ranges:
            if stop == start + b"\0":
                # One key; a range costs later reads more.
                delete(start, handle)
            elif start < stop:
                batch.delete_range(start, stop, handle)
        for key, value in changes.rows.items():
            if value is None:
                delete(key, handle)
            else:
                put(key, value, handle)

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        return in_chunks(self._read, start, stop, reverse=reverse)

    def _read(self, start: bytes | None, stop: bytes | None, reverse: bool, limit: int) -> list[Row]:  # noqa: FBT001
        try:
            return _read_rows(self.family, start, stop, reverse=reverse, limit=limit)
        except Exception as error:
            raise self._failure(error) from error

    def count(self) -> int:
        try:
            counted = sum(1 for _ in islice(self.family.keys(), COUNTED_ROWS))
            return counted if counted < COUNTED_ROWS else max(counted, self.figure("estimate-num-keys"))
        except Exception as error:
            raise self._failure(error) from error

    def clear(self) -> None:
        last = next(self.scan(reverse=True), None)
        if last is not None:
            self.apply(Changes(ranges=((b"", last[0]),), rows={last[0]: None}))

    def figure(self, metric: str) -> int:
        """Returns one of RocksDB's own figures; 0 once it is closed."""
        try:
            return self.family.property_int_value(f"rocksdb.{metric}") or 0
        except DbClosedError:
            return 0

    def flush(self) -> None:
        """Writes what is buffered into a file, unless it is closed."""
        try:
            self.family.flush()
        except DbClosedError:
            # Another thread closed it, which flushes.
            return
        except Exception as error:
            raise self._failure(error) from error

    def release(self) -> None:
        """Lets go of the database, which stays open as long as anything of it is."""
        self.family.close()
        self._handle = None

    def close(self) -> None:
        """Does nothing: the environment holds the resources."""


def _read_rows(family: Rdict, start: bytes | None, stop: bytes | None, *, reverse: bool, limit: int) -> list[Row]:
    if start is not None and stop is not None and start >= stop:
        return []
    options = None
    if stop is not None:
        options = ReadOptions()
        options.set_iterate_upper_bound(stop)
    rows = family.items(backwards=reverse, from_key=stop if reverse else start, read_opt=options)
    # Any: rocksdict can also keep other types than bytes.
    chunk: list[Any] = list(islice(rows, limit))
    if reverse and start is not None:
        # rocksdict 0.3.29 takes a lower bound for an upper one.
        while chunk and chunk[-1][0] < start:
            chunk.pop()
    return chunk
