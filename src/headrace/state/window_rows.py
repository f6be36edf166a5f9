"""Rows of a window store as objects, between the store and its engine."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from headrace.state.base import HeaderPairs, Store
from headrace.state.buffer import MISSING
from headrace.state.codec import UNKNOWN_TIMESTAMP, Codec, TypeGuard, escape
from headrace.state.engine import Engine
from headrace.state.segmented_rows import SegmentedRows
from headrace.state.segments import Layout, Segments

# start, value, timestamp
WindowRow = tuple[int, Any, int]
# key bytes, start, (value, timestamp)
ScannedRow = tuple[bytes, int, tuple[Any, int]]

_NO_ROWS: dict[int, Any] = {}


class WindowRows(SegmentedRows):
    """At most one (value, timestamp) per key and window start.

    ``dirty`` has what was written and ``_windows`` what is the same in the engine: by key, by start; None is a row that
    is not there. ``_starts`` has the starts in order for those keys whose rows are all in memory, because they were
    asked for a range of time.
    """

    __slots__ = ("_guard", "_starts", "_windows", "_with_timestamp", "get_pair", "pairs", "put_pair")

    get_pair: Callable[[Any, int], tuple[Any, int] | None]
    put_pair: Callable[..., None]

    def __init__(
        self,
        store: Store,
        engine: Engine,
        keys: Codec,
        pairs: Codec,
        guard: TypeGuard,
        layout: Layout,
        segments: Segments,
        *,
        with_timestamp: bool,
    ) -> None:
        super().__init__(store, engine, keys, layout, segments)
        self._with_timestamp = with_timestamp
        self.pairs = pairs
        self._guard = guard
        self.dirty: dict[Any, dict[int, Any]]
        self._windows: dict[Any, dict[int, Any]] = {}
        self._starts: dict[Any, list[int]] = {}
        self.get_pair = self._get()
        self.put_pair = self._put()
        self.reload()

    def _forget(self) -> None:
        self._windows.clear()
        self._starts.clear()

    def _get(self) -> Callable[[Any, int], tuple[Any, int] | None]:
        dirty, windows, segments, load = self.dirty, self._windows, self.segments, self._load
        encode_key, keep_keys, keep_pairs, decode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.decode

        def get_object(key: Any, start_ms: int) -> tuple[Any, int] | None:
            if start_ms < segments.visible_from_ms:
                return None
            rows = dirty.get(key)
            if rows is not None:
                pair: tuple[Any, int] | None = rows.get(start_ms, MISSING)
                if pair is not MISSING:
                    return pair
            rows = windows.get(key)
            pair = MISSING if rows is None else rows.get(start_ms, MISSING)
            return pair if pair is not MISSING else load(key, start_ms)

        def get_other(key: Any, start_ms: int) -> tuple[Any, int] | None:
            if start_ms < segments.visible_from_ms:
                return None
            name = key if keep_keys else encode_key(key)
            row = dirty.get(name, _NO_ROWS).get(start_ms, MISSING)
            if row is MISSING:
                row = windows.get(name, _NO_ROWS).get(start_ms, MISSING)
                if row is MISSING:
                    row = load(name, start_ms)
            pair: tuple[Any, int] | None = row if keep_pairs or row is None else decode(row)
            return pair

        return get_object if keep_keys and keep_pairs else get_other

    def _put(self) -> Callable[..., None]:
        segments, dirty, guard, add = self.segments, self.dirty, self._guard, self._add
        encode_key, keep_keys, keep_pairs, encode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.encode
        known, with_timestamp = guard.known, self._with_timestamp

        def put_object(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            if not segments.live_from_ms <= start_ms <= segments.observed_ms and not segments.observe(start_ms):
                return self._store.task.drop()
            rows = dirty.get(key)
            if rows is None or start_ms not in rows:
                rows = add(key, start_ms)
            rows[start_ms] = None if value is None else (value, timestamp_ms)
            return None

        def put_other(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            if not segments.observe(start_ms):
                return self._store.task.drop()
            row: Any = None if value is None else (value, timestamp_ms if with_timestamp else UNKNOWN_TIMESTAMP)
            add(key if keep_keys else encode_key(key), start_ms)[start_ms] = (
                row if keep_pairs or row is None else encode(row)
            )
            return None

        return put_object if keep_keys and keep_pairs and with_timestamp else put_other

    def _add(self, name: Any, start_ms: int) -> dict[int, Any]:
        """Returns the dirty rows of a key, to which a row of that start will be added."""
        rows = self.dirty.get(name)
        if rows is None:
            rows = self.dirty[name] = {}
        starts = self._starts.get(name)
        if starts is not None:
            place = bisect_left(starts, start_ms)
            if place == len(starts) or starts[place] != start_ms:
                starts.insert(place, start_ms)
        return rows

    def _load(self, name: Any, start_ms: int) -> tuple[Any, int] | None:
        if self._everything or name in self._starts:
            return None
        key = self.keys.encode(name) if self.keys.keep else name
        data = self.engine.get(self.layout.data(key, start_ms))
        row: Any = data if data is None or not self.pairs.keep else self.pairs.decode(data)
        self._windows.setdefault(name, {})[start_ms] = row
        self._count += 1
        return row  # type: ignore[no-any-return]  # bytes for those who keep bytes

    def fetch_pairs(self, key: Any, from_ms: int, to_ms: int, reverse: bool = False) -> list[WindowRow]:  # noqa: FBT001, FBT002
        """Returns (start, value, timestamp) of a key's windows that start from ``from_ms`` to ``to_ms``."""
        name = key if self.keys.keep else self.keys.encode(key)
        starts = self._starts.get(name)
        if starts is None:
            starts = self._complete(name)
        first = bisect_left(starts, max(from_ms, self.segments.visible_from_ms))
        dirty, rows = self.dirty.get(name, _NO_ROWS), self._windows.get(name, _NO_ROWS)
        decode = None if self.pairs.keep else self.pairs.decode
        found = []
        for start_ms in starts[first : bisect_right(starts, to_ms)]:
            row = dirty[start_ms] if start_ms in dirty else rows[start_ms]
            if row is not None:
                value, timestamp_ms = row if decode is None else decode(row)
                found.append((start_ms, value, timestamp_ms))
        if reverse:
            found.reverse()
        if starts and starts[0] < self.segments.live_from_ms:
            self._drop_expired(name)
        return found

    def _complete(self, name: Any) -> list[int]:
        if not self._everything:
            key = self.keys.encode(name) if self.keys.keep else name
            decode = self.pairs.decode if self.pairs.keep else None
            rows = {times[0]: data if decode is None else decode(data) for times, data in self._read_key(key)}
            self._windows[name] = rows
            self._count += len(rows)
        self._count += 1
        starts = {*self._windows.get(name, ()), *self.dirty.get(name, ())}
        ordered = self._starts[name] = sorted(starts)
        return ordered

    def _write_dirty(self) -> None:
        engine, layout, live_from_ms = self.engine, self.layout, self.segments.live_from_ms
        windows, encode_key, encode = self._windows, self.keys.encode, self.pairs.encode
        keep_keys, keep_pairs, put, delete = self.keys.keep, self.pairs.keep, engine.put, engine.delete
        # Many keys share few windows, so the parts of a name that come from the window are made once.
        around: dict[int, tuple[bytes, bytes]] = {}
        for name, rows in self.dirty.items():
            key = encode_key(name) if keep_keys else name
            escaped = escape(key)
            for start_ms, row in rows.items():
                if start_ms < live_from_ms:
                    continue
                parts = around.get(start_ms)
                if parts is None:
                    parts = around[start_ms] = layout.around(start_ms)
                before, after = parts
                if row is None:
                    delete(before + escaped + after)
                else:
                    put(before + escaped + after, encode(row) if keep_pairs else row)
                if layout.time_first:
                    if row is None:
                        delete(layout.index(key, start_ms))
                    else:
                        put(layout.index(key, start_ms), b"")
            clean = windows.get(name)
            if clean is None:
                windows[name] = rows
            else:
                clean.update(rows)
            self._count += len(rows)

    def _drop_all_expired(self) -> int:
        for name in {**self._windows, **self._starts}:
            self._drop_expired(name)
        return sum(len(rows) for rows in self._windows.values()) + len(self._starts)

    def _drop_expired(self, name: Any) -> None:
        live_from_ms = self.segments.live_from_ms
        for rows in (self.dirty.get(name, _NO_ROWS), self._windows.get(name, _NO_ROWS)):
            for start_ms in [start_ms for start_ms in rows if start_ms < live_from_ms]:
                del rows[start_ms]
        if name in self._starts:
            starts = self._starts[name]
            del starts[: bisect_left(starts, live_from_ms)]
        if not self._windows.get(name, _NO_ROWS) and name not in self.dirty:
            self._windows.pop(name, None)
            self._starts.pop(name, None)

    def scan(self, from_ms: int, to_ms: int, *, reverse: bool = False, by_key: bool = False) -> Iterator[ScannedRow]:
        """Returns the visible rows whose windows start from ``from_ms`` to ``to_ms``, in the order of the layout.

        ``by_key``: in the order of segment and key also where rows lie by time.
        """
        self.flush()
        decode, low_ms = self.pairs.decode, max(from_ms, self.segments.visible_from_ms)
        if to_ms < low_ms:
            return
        scan = self._scan_by_key if by_key else self._scan
        for key, (start_ms, *_), data in scan(low_ms, to_ms, reverse=reverse):
            if low_ms <= start_ms <= to_ms:
                yield key, start_ms, decode(data)
