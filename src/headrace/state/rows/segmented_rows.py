"""Base of rows with a retention: stream-time clock, expiry, layout in the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec
from headrace.state.rows.segments import DATA, INDEX, Layout, Segments
from headrace.state.stores.store import Store

# Key bytes, times, sequence number (0 where rows have none), data or None for a deletion
RestoredRow = tuple[bytes, tuple[int, ...], int, bytes | None]

MAX_ROWS = 200_000
"""How many rows, and keys without rows, a store keeps in memory beyond those that are dirty."""


class SegmentedRows:
    """Rows by key and time, as objects above an engine. ``dirty`` is what a flush has to write.

    A kind of rows says how it keeps them in memory. It counts in ``_count`` what it keeps besides ``dirty``: also each
    key of which it only knows that there are no rows, or looking for keys that are not there would fill the memory.
    """

    __slots__ = (
        "_count",
        "_deleted_before_ms",
        "_everything",
        "_saved_ms",
        "_store",
        "dirty",
        "engine",
        "keys",
        "layout",
        "segments",
    )

    def __init__(self, store: Store, engine: Engine, keys: Codec, layout: Layout, segments: Segments) -> None:
        self._store = store
        self.engine = engine
        self.keys = keys
        self.layout = layout
        self.segments = segments
        self.dirty: dict[Any, Any] = {}

    def reload(self) -> None:
        """Forgets what is buffered and reads the clock from the engine."""
        self._forget()
        self.dirty.clear()
        self._count = 0
        self.reload_clock()
        # A store that has never had a row has no clock either, and needs no look into the engine.
        self._everything = not self.segments.has_started

    def reload_clock(self) -> None:
        """Reads the clock from the engine: what has been observed without being put is forgotten."""
        self.segments.load(self.engine)
        self._saved_ms = self.segments.observed_ms
        self._deleted_before_ms = self.layout.segment_start(self._gone_before_ms)

    def flush(self) -> None:
        """Writes the dirty rows and the clock to the engine, and deletes segments that have expired."""
        gone_before_ms = self.layout.segment_start(self._gone_before_ms)
        if gone_before_ms > self._deleted_before_ms:
            self._delete_expired()
            self._deleted_before_ms = gone_before_ms
        self._write_dirty()
        self.dirty.clear()
        if self.segments.observed_ms != self._saved_ms:
            self.segments.save(self.engine)
            self._saved_ms = self.segments.observed_ms
        if self._count > MAX_ROWS:
            self._trim()

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Writes rows of a changelog into the engine, and starts anew from there."""
        self.flush()
        for key, times, sequence, data in rows:
            if self.segments.observe(times[0]):
                self._write(key, times, data, sequence=sequence)
        self._delete_expired()
        self.segments.save(self.engine)
        self.reload()

    def _forget(self) -> None:
        """Forgets the rows in memory that are not dirty."""
        raise NotImplementedError

    def _write_dirty(self) -> None:
        """Writes the dirty rows that have not expired."""
        raise NotImplementedError

    def _drop_all_expired(self) -> int:
        """Forgets rows in memory that have expired; returns how many are left."""
        raise NotImplementedError

    def _drop_most(self, limit: int) -> int:
        """Forgets rows in memory that are not dirty until at most ``limit`` are left; returns how many."""
        self._forget()
        return 0

    def _trim(self) -> None:
        self._count = self._drop_all_expired()
        if self._count > MAX_ROWS // 2:
            self._count = self._drop_most(MAX_ROWS // 2)
            self._everything = False

    @property
    def _gone_before_ms(self) -> int:
        """Rows that are older may be deleted; this is done by whole segments."""
        return self.segments.live_from_ms

    def _delete_expired(self) -> None:
        for start, stop in self.layout.expired(self.layout.segment_start(self._gone_before_ms)):
            self.engine.delete_range(start, stop)

    def _write(self, key: bytes, times: tuple[int, ...], data: bytes | None, *, sequence: int = 0) -> None:
        """Sets or deletes a row, and what the index has of it."""
        engine, layout = self.engine, self.layout
        name = layout.data(key, *times, sequence=sequence)
        if data is None:
            engine.delete(name)
        else:
            engine.put(name, data)
        if layout.time_first:
            if data is None:
                engine.delete(layout.index(key, *times))
            else:
                engine.put(layout.index(key, *times), b"")

    def _read_key(self, key: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
        """Returns times and data of a key's rows in the engine, by time."""
        layout, segments, engine = self.layout, self.segments, self.engine
        for segment in layout.segments_between(max(0, self._gone_before_ms), max(0, segments.observed_ms)):
            for name, data in engine.scan(*layout.of_key(key, segment)):
                if layout.time_first:
                    times = layout.split_index(name)[1]
                    found = engine.get(layout.data(key, *times))
                    if found is not None:
                        yield times, found
                else:
                    yield layout.split(name)[1], data

    def _scan(self, from_ms: int, to_ms: int, *, reverse: bool) -> Iterator[tuple[bytes, tuple[int, ...], bytes]]:
        """Returns key bytes, times and data of at least the rows between these times, in the order of the layout."""
        for name, data in self.engine.scan(*self.layout.between(from_ms, to_ms), reverse=reverse):
            key, times, _ = self.layout.split(name)
            yield key, times, data

    def _scan_by_key(
        self, from_ms: int, to_ms: int, *, reverse: bool
    ) -> Iterator[tuple[bytes, tuple[int, ...], bytes]]:
        """Returns key bytes, times and data of all rows in the segments of these times, by segment, key and times."""
        layout, engine, indexed = self.layout, self.engine, self.layout.time_first
        start, stop = layout.by_key_between(INDEX if indexed else DATA, from_ms, to_ms)
        for name, data in engine.scan(start, stop, reverse=reverse):
            if indexed:
                key, times = layout.split_index(name)
                found = engine.get(layout.data(key, *times))
                if found is not None:
                    yield key, times, found
            else:
                key, times, _ = layout.split(name)
                yield key, times, data
