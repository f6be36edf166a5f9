"""Rows of a window store as objects, between the store and its engine."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP, Codec, TypeGuard, pair_codec
from headrace.state.rows.row_buffer import MISSING
from headrace.state.rows.segmented_rows import SegmentedRows
from headrace.state.rows.segments import Layout, Segments
from headrace.state.rows.window_starts import StartsByKey
from headrace.state.stores.store import HeaderPairs, Store

# start, value, timestamp
WindowRow = tuple[int, Any, int]
# key bytes, start, (value, timestamp)
ScannedRow = tuple[bytes, int, tuple[Any, int]]

NO_ROWS: dict[Any, Any] = {}


class WindowRows(SegmentedRows):
    """At most one (value, timestamp) per key and window start.

    ``dirty`` has what was written and ``_windows`` what is the same in the engine: by start, by key; None is a row that
    is not there. By start first, because many keys share a window, and windows come and go as a whole.
    """

    __slots__ = (
        "_by_key",
        "_complete",
        "_guard",
        "_whole",
        "_windows",
        "_with_timestamp",
        "get_pair",
        "pairs",
        "put_pair",
    )

    get_pair: Callable[[Any, int], tuple[Any, int] | None]
    put_pair: Callable[..., None]

    def __init__(
        self,
        store: Store,
        engine: Engine,
        keys: Codec,
        values: Codec,
        guard: TypeGuard,
        layout: Layout,
        segments: Segments,
        *,
        with_timestamp: bool,
    ) -> None:
        super().__init__(store, engine, keys, layout, segments)
        self._with_timestamp = with_timestamp
        self.pairs = pair_codec(values, with_timestamp=with_timestamp)
        self._guard = guard
        self.dirty: dict[int, dict[Any, Any]]
        self._windows: dict[int, dict[Any, Any]] = {}
        # Windows whose rows are all in memory: the first of them was put when the engine had none of that time.
        self._whole: set[int] = set()
        # The starts of rows in memory by key, once somebody has asked for a range of time; and the keys of which
        # all rows are in memory.
        self._by_key = StartsByKey()
        self._complete: set[Any] = set()
        self.get_pair = self._get()
        self.put_pair = self._put()
        self.reload()

    def _forget(self) -> None:
        self._windows.clear()
        self._whole.clear()
        self._by_key.forget()
        self._complete.clear()

    def _get(self) -> Callable[[Any, int], tuple[Any, int] | None]:
        dirty, windows, segments, load = self.dirty, self._windows, self.segments, self._load
        encode_key, keep_keys, keep_pairs, decode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.decode

        def get_object(key: Any, start_ms: int) -> tuple[Any, int] | None:
            if start_ms < segments.visible_from_ms:
                return None
            rows = dirty.get(start_ms)
            if rows is not None:
                pair: tuple[Any, int] | None = rows.get(key, MISSING)
                if pair is not MISSING:
                    return pair
            rows = windows.get(start_ms)
            pair = MISSING if rows is None else rows.get(key, MISSING)
            return pair if pair is not MISSING else load(key, start_ms)

        def get_other(key: Any, start_ms: int) -> tuple[Any, int] | None:
            if start_ms < segments.visible_from_ms:
                return None
            name = key if keep_keys else encode_key(key)
            row = dirty.get(start_ms, NO_ROWS).get(name, MISSING)
            if row is MISSING:
                row = windows.get(start_ms, NO_ROWS).get(name, MISSING)
                if row is MISSING:
                    row = load(name, start_ms)
            pair: tuple[Any, int] | None = row if keep_pairs or row is None else decode(row)
            return pair

        return get_object if keep_keys and keep_pairs else get_other

    def _put(self) -> Callable[..., None]:
        segments, dirty, guard, add = self.segments, self.dirty, self._guard, self._add
        encode_key, keep_keys, keep_pairs, encode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.encode
        known, with_timestamp, observe = guard.known, self._with_timestamp, self._observe

        def put_object(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            if not segments.live_from_ms <= start_ms <= segments.observed_ms and not observe(start_ms):
                return self._store.task.drop()
            rows = dirty.get(start_ms)
            if rows is None or key not in rows:
                rows = add(key, start_ms)
            rows[key] = None if value is None else (value, timestamp_ms)
            return None

        def put_other(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            if not observe(start_ms):
                return self._store.task.drop()
            row: Any = None if value is None else (value, timestamp_ms if with_timestamp else UNKNOWN_TIMESTAMP)
            name = key if keep_keys else encode_key(key)
            add(name, start_ms)[name] = row if keep_pairs or row is None else encode(row)
            return None

        return put_object if keep_keys and keep_pairs and with_timestamp else put_other

    def put_all(self, windows: dict[int, dict[Any, tuple[Any, int]]]) -> bool:
        """Puts rows of whole windows at once; False, and nothing is done, if a single put might refuse one of them."""
        newest_ms, oldest_ms = max(windows), min(windows)
        if self._by_key.is_kept or not self.segments.takes(oldest_ms, newest_ms):
            return False
        for start_ms, rows in windows.items():
            self._observe(start_ms)
            known = self.dirty.get(start_ms)
            if known is None:
                self.dirty[start_ms] = rows
            else:
                known.update(rows)
        return True

    def _observe(self, start_ms: int) -> bool:
        """Moves the clock to a start that is put; tells whether the store takes it."""
        if start_ms > self.segments.observed_ms:
            # Nothing of that time is in the engine, so all of it will be in memory.
            self._whole.add(start_ms)
        return self.segments.observe(start_ms)

    def _add(self, name: Any, start_ms: int) -> dict[Any, Any]:
        """Returns the dirty rows of a window, to which a row of that key will be added."""
        rows = self.dirty.get(start_ms)
        if rows is None:
            rows = self.dirty[start_ms] = {}
        if self._by_key.is_kept:
            self._by_key.add(name, start_ms)
        return rows

    def _load(self, name: Any, start_ms: int) -> tuple[Any, int] | None:
        if (
            start_ms > self.segments.observed_ms
            or start_ms in self._whole
            or self._everything
            or name in self._complete
        ):
            return None
        key = self.keys.encode(name) if self.keys.keep else name
        data = self.engine.get(self.layout.data(key, start_ms))
        row: Any = data if data is None or not self.pairs.keep else self.pairs.decode(data)
        self._windows.setdefault(start_ms, {})[name] = row
        if self._by_key.is_kept:
            self._by_key.add(name, start_ms)
        self._count += 1
        return row  # type: ignore[no-any-return]  # bytes for those who keep bytes

    def fetch_pairs(self, key: Any, from_ms: int, to_ms: int, reverse: bool = False) -> list[WindowRow]:  # noqa: FBT001, FBT002
        """Returns (start, value, timestamp) of a key's windows that start from ``from_ms`` to ``to_ms``."""
        name = key if self.keys.keep else self.keys.encode(key)
        if not self._by_key.is_kept:
            self._by_key.collect(self._windows, self.dirty)
        if name not in self._complete:
            self._read_all(name)
        starts = self._by_key.starts(name, self.segments.live_from_ms)
        first = bisect_left(starts, max(from_ms, self.segments.visible_from_ms))
        dirty, windows = self.dirty, self._windows
        decode = None if self.pairs.keep else self.pairs.decode
        found = []
        for start_ms in starts[first : bisect_right(starts, to_ms)]:
            row = dirty.get(start_ms, NO_ROWS).get(name, MISSING)
            if row is MISSING:
                row = windows[start_ms][name]
            if row is not None:
                value, timestamp_ms = row if decode is None else decode(row)
                found.append((start_ms, value, timestamp_ms))
        if reverse:
            found.reverse()
        return found

    def _read_all(self, name: Any) -> None:
        """Brings all rows of a key into memory."""
        if not self._everything:
            key = self.keys.encode(name) if self.keys.keep else name
            decode = self.pairs.decode if self.pairs.keep else None
            for times, data in self._read_key(key):
                self._windows.setdefault(times[0], {})[name] = data if decode is None else decode(data)
                self._by_key.add(name, times[0])
                self._count += 1
        self._complete.add(name)
        self._count += 1

    def _write_dirty(self) -> None:
        live_from_ms, windows, layout = self.segments.live_from_ms, self._windows, self.layout
        written: dict[bytes, bytes | None] = {}
        for start_ms, rows in self.dirty.items():
            if start_ms < live_from_ms:
                continue
            keys = self.keys.encode_all(rows) if self.keys.keep else list(rows)
            data = self._encoded(list(rows.values()))
            written.update(zip(layout.names(keys, start_ms), data, strict=True))
            if layout.time_first:
                marks = (None if each is None else b"" for each in data)
                written.update(zip((layout.index(key, start_ms) for key in keys), marks, strict=True))
            clean = windows.get(start_ms)
            if clean is None:
                windows[start_ms] = rows
            else:
                clean.update(rows)
            self._count += len(rows)
        if written:
            self.engine.apply(Changes(rows=written))

    def _encoded(self, rows: list[Any]) -> list[bytes | None]:
        if not self.pairs.keep:
            return rows
        if None in rows:
            encode = self.pairs.encode
            return [None if row is None else encode(row) for row in rows]
        return list[bytes | None](self.pairs.encode_all(rows))

    def _drop_all_expired(self) -> int:
        live_from_ms = self.segments.live_from_ms
        for start_ms in [start_ms for start_ms in self._windows if start_ms < live_from_ms]:
            del self._windows[start_ms]
        self._whole = {start_ms for start_ms in self._whole if start_ms >= live_from_ms}
        return sum(map(len, self._windows.values())) + len(self._complete)

    def _drop_most(self, limit: int) -> int:
        # The newest windows are those that are asked for.
        count = sum(map(len, self._windows.values()))
        for start_ms in sorted(self._windows):
            if count <= limit:
                break
            count -= len(self._windows.pop(start_ms))
            self._whole.discard(start_ms)
        self._by_key.forget()
        self._complete.clear()
        return count

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
