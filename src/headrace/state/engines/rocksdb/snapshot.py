"""Snapshots of RocksDB: all engines of an environment at one moment.

An iterator of RocksDB sees the rows that were there when it was made, however long it is used. rocksdict has
snapshots, too, but their iterators see later rows (0.3.29).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NoReturn

from rocksdict import RdictIter

from headrace.errors import InvalidStateStoreError
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Row, in_chunks
from headrace.state.engines.environment import SNAPSHOT_IS_OVER, SNAPSHOT_ONLY_READS
from headrace.state.engines.rocksdb.rocksdb_engine import COUNTED_ROWS, Failure, RocksDbEngine


class RocksDbSnapshot:
    """Engines of an environment that only read, all of them at the same moment: that of the last ``begin``."""

    def __init__(
        self,
        look: Callable[[], Mapping[str, RdictIter]],
        engine: Callable[[str], RocksDbEngine],
        failure: Failure,
    ) -> None:
        self._look = look
        self._engine = engine
        self._seen: Mapping[str, RdictIter] | None = None
        self.failure = failure

    def begin(self) -> None:
        """Looks at what is there now."""
        self._seen = self._look()

    def end(self) -> None:
        """Stops looking; RocksDB can drop what only this one saw."""
        self._seen = None

    def engine(self, name: str) -> SnapshotEngine:
        """Returns the engine of that name, as far as it can be read."""
        return SnapshotEngine(self, name)

    def seen(self, name: str) -> RdictIter | None:
        """Returns what is seen of an engine, None if it was not there yet."""
        if self._seen is None:
            raise InvalidStateStoreError(SNAPSHOT_IS_OVER)
        return self._seen.get(name)

    def count_now(self, name: str) -> int:
        """Returns how many rows an engine has by now, about."""
        return self._engine(name).count()


class SnapshotEngine:
    """An engine as a snapshot sees it. One thread reads at a time."""

    __slots__ = ("_name", "_snapshot")

    def __init__(self, snapshot: RocksDbSnapshot, name: str) -> None:
        self._snapshot = snapshot
        self._name = name

    def get(self, key: bytes) -> bytes | None:
        row = self._read(key, key + b"\0", False, 1)  # noqa: FBT003
        return row[0][1] if row else None

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        return in_chunks(self._read, start, stop, reverse=reverse)

    def _read(self, start: bytes | None, stop: bytes | None, reverse: bool, limit: int) -> list[Row]:  # noqa: FBT001
        rows = self._snapshot.seen(self._name)
        try:
            if rows is None:
                return []
            return _read_back(rows, start, stop, limit) if reverse else _read_on(rows, start, stop, limit)
        except Exception as error:
            raise self._snapshot.failure(error) from error

    def count(self) -> int:
        counted = sum(1 for _ in islice(self.scan(), COUNTED_ROWS))
        return counted if counted < COUNTED_ROWS else max(counted, self._snapshot.count_now(self._name))

    def put(self, key: bytes, value: bytes) -> NoReturn:
        raise InvalidStateStoreError(SNAPSHOT_ONLY_READS)

    def delete(self, key: bytes) -> NoReturn:
        raise InvalidStateStoreError(SNAPSHOT_ONLY_READS)

    def delete_range(self, start: bytes, stop: bytes) -> NoReturn:
        raise InvalidStateStoreError(SNAPSHOT_ONLY_READS)

    def apply(self, changes: Changes) -> NoReturn:
        raise InvalidStateStoreError(SNAPSHOT_ONLY_READS)

    def clear(self) -> NoReturn:
        raise InvalidStateStoreError(SNAPSHOT_ONLY_READS)

    def close(self) -> None:
        """Does nothing: the snapshot holds the resources."""


def _read_on(rows: RdictIter, start: bytes | None, stop: bytes | None, limit: int) -> list[Row]:
    chunk: list[Row] = []
    if start is None:
        rows.seek_to_first()
    else:
        rows.seek(start)
    while len(chunk) < limit and rows.valid():
        key = rows.key()
        if stop is not None and key >= stop:
            return chunk
        chunk.append((key, rows.value()))
        rows.next()
    rows.status()
    return chunk


def _read_back(rows: RdictIter, start: bytes | None, stop: bytes | None, limit: int) -> list[Row]:
    chunk: list[Row] = []
    if stop is None:
        rows.seek_to_last()
    else:
        rows.seek_for_prev(stop)
        if rows.valid() and rows.key() == stop:
            rows.prev()
    while len(chunk) < limit and rows.valid():
        key = rows.key()
        if start is not None and key < start:
            return chunk
        chunk.append((key, rows.value()))
        rows.prev()
    # An iterator that fails looks like one at its end.
    rows.status()
    return chunk
