"""Rows of a session store as objects, between the store and its engine."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec
from headrace.state.rows.segmented_rows import SegmentedRows
from headrace.state.rows.segments import Layout, Segments
from headrace.state.stores.store import Store

# start, end, aggregate
SessionRow = tuple[int, int, Any]
# key bytes, start, end, aggregate
ScannedSession = tuple[bytes, int, int, Any]

_FIRST = -1


class SessionRows(SegmentedRows):
    """One aggregate per key and session.

    ``_sessions`` has all live sessions of the keys that are in it: the (end, start) of each in order, and the
    aggregates by (end, start), as objects if the value serde is immutable, else as bytes.
    """

    __slots__ = ("_sessions", "values")

    def __init__(
        self, store: Store, engine: Engine, keys: Codec, values: Codec, layout: Layout, segments: Segments
    ) -> None:
        super().__init__(store, engine, keys, layout, segments)
        self.values = values
        self._sessions: dict[Any, tuple[list[tuple[int, int]], dict[tuple[int, int], Any]]] = {}
        # (name, end, start) of what has changed; the rows themselves are in ``_sessions``
        self.dirty: dict[tuple[Any, int, int], None]
        self.reload()

    def _forget(self) -> None:
        self._sessions.clear()

    def _of_key(self, name: Any) -> tuple[list[tuple[int, int]], dict[tuple[int, int], Any]]:
        found = self._sessions.get(name)
        if found is not None:
            return found
        rows: dict[tuple[int, int], Any] = {}
        if not self._everything:
            key = self.keys.encode(name) if self.keys.keep else name
            for (end_ms, start_ms), data in self._read_key(key):
                rows[end_ms, start_ms] = self.values.decode(data) if self.values.keep else data
        self._count += len(rows) + 1
        found = self._sessions[name] = (sorted(rows), rows)
        return found

    def get(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """Returns the aggregate of a session, or None."""
        if end_ms < self.segments.visible_from_ms:
            return None
        row = self._of_key(key if self.keys.keep else self.keys.encode(key))[1].get((end_ms, start_ms))
        return row if row is None or self.values.keep else self.values.decode(row)

    def find(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[SessionRow]:
        """Returns the sessions of a key that end and start within the bounds, by end, then start."""
        order, rows = self._of_key(key if self.keys.keep else self.keys.encode(key))
        decode = None if self.values.keep else self.values.decode
        first = bisect_left(order, (max(earliest_end_ms, self.segments.visible_from_ms), _FIRST))
        found = []
        for times in order[first:]:
            end_ms, start_ms = times
            if start_ms <= latest_start_ms:
                row = rows[times]
                found.append((start_ms, end_ms, row if decode is None else decode(row)))
        return found

    def put(self, key: Any, start_ms: int, end_ms: int, aggregate: Any) -> None:
        """Sets the aggregate of a session; None deletes it."""
        if not self.segments.observe(end_ms):
            return self._store.task.drop()
        self._set(key, start_ms, end_ms, aggregate)
        return None

    def remove(self, key: Any, start_ms: int, end_ms: int) -> None:
        """Deletes a session."""
        self.segments.pass_by(end_ms)
        if end_ms >= self.segments.live_from_ms:
            self._set(key, start_ms, end_ms, None)

    def _set(self, key: Any, start_ms: int, end_ms: int, aggregate: Any) -> None:
        name, times = key if self.keys.keep else self.keys.encode(key), (end_ms, start_ms)
        order, rows = self._of_key(name)
        if aggregate is None:
            if times in rows:
                del rows[times]
                del order[bisect_left(order, times)]
        else:
            if times not in rows:
                insort(order, times)
                self._count += 1
            rows[times] = aggregate if self.values.keep else self.values.encode(aggregate)
        self.dirty[name, end_ms, start_ms] = None
        if order and order[0][0] < self.segments.live_from_ms:
            self._drop_expired(name)

    def _write_dirty(self) -> None:
        keys, values, live_from_ms = self.keys, self.values, self.segments.live_from_ms
        for name, end_ms, start_ms in self.dirty:
            if end_ms >= live_from_ms:
                row = self._sessions[name][1].get((end_ms, start_ms))
                data = row if row is None or not values.keep else values.encode(row)
                self._write(keys.encode(name) if keys.keep else name, (end_ms, start_ms), data)

    def _drop_all_expired(self) -> int:
        for name in list(self._sessions):
            self._drop_expired(name)
            if not self._sessions[name][0]:
                del self._sessions[name]
        return sum(len(order) + 1 for order, _ in self._sessions.values())

    def _drop_expired(self, name: Any) -> None:
        order, rows = self._sessions[name]
        end = bisect_left(order, (self.segments.live_from_ms, _FIRST))
        for times in order[:end]:
            del rows[times]
        del order[:end]

    def scan(self, earliest_end_ms: int, latest_start_ms: int, *, reverse: bool = False) -> Iterator[ScannedSession]:
        """Returns the visible sessions of all keys within the bounds, by segment of the end, key, end and start."""
        self.flush()
        decode, low_ms = self.values.decode, max(earliest_end_ms, self.segments.visible_from_ms, 0)
        rows = self._scan_by_key(low_ms, max(low_ms, self.segments.observed_ms), reverse=reverse)
        for key, (end_ms, start_ms), data in rows:
            if end_ms >= low_ms and start_ms <= latest_start_ms:
                yield key, start_ms, end_ms, decode(data)

    def scan_closed(self, earliest_end_ms: int, latest_end_ms: int) -> list[ScannedSession]:
        """Returns the sessions of all keys that end within the bounds, by end, start and key; also those beyond the
        retention that are not deleted yet.
        """
        self.flush()
        decode, low_ms = self.values.decode, max(earliest_end_ms, self.segments.live_from_ms, 0)
        if latest_end_ms < low_ms:
            return []
        found = [
            (key, start_ms, end_ms, decode(data))
            for key, (end_ms, start_ms), data in self._scan(low_ms, latest_end_ms, reverse=False)
            if low_ms <= end_ms <= latest_end_ms
        ]
        if not self.layout.time_first:
            found.sort(key=lambda row: (row[2], row[1], row[0]))
        return found
