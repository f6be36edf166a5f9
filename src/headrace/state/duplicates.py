"""Rows of a window store that keeps duplicates: what stream-stream joins remember of each side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.state.base import HeaderPairs, Store
from headrace.state.codec import UNKNOWN_TIMESTAMP, Codec, TypeGuard
from headrace.state.engine import Engine
from headrace.state.segmented_rows import RestoredRow, SegmentedRows
from headrace.state.segments import Layout, Segments, load_sequence, save_sequence
from headrace.state.window_rows import ScannedRow, WindowRow

_LAST_SEQUENCE = 0x7FFFFFFF


class DuplicateRows(SegmentedRows):
    """Any number of (value, timestamp) per key and window start, in the order in which they came.

    ``_windows`` has all rows of the keys that are in it: by key, the starts in order and the rows by start. Rows of
    other keys go from ``dirty`` to the engine only.
    """

    __slots__ = (
        "_guard",
        "_saved_sequence",
        "_sequence",
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
        self._windows: dict[Any, tuple[list[int], dict[int, list[Any]]]] = {}
        # By (name, start, sequence number)
        self.dirty: dict[tuple[Any, int, int], Any]
        self.get_pair = self._get
        self.put_pair = self._put()
        self.reload()

    def reload(self) -> None:
        """Forgets what is buffered and reads the clock and the sequence number from the engine."""
        super().reload()
        self._sequence = self._saved_sequence = load_sequence(self.engine)

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Writes rows of a changelog into the engine; numbers go on after theirs."""
        self.flush()
        restored = list(rows)
        save_sequence(self.engine, max([self._sequence, *(row[2] for row in restored)]))
        super().restore(restored)

    def _forget(self) -> None:
        self._windows.clear()

    def _get(self, key: Any, start_ms: int) -> tuple[Any, int] | None:
        # As in Kafka Streams, only the row that was put last can be found without asking for a range.
        if start_ms < self.segments.visible_from_ms:
            return None
        self.flush()
        data = self.engine.get(self.layout.data(self.keys.encode(key), start_ms, sequence=self._sequence))
        pair: tuple[Any, int] | None = None if data is None else self.pairs.decode(data)
        return pair

    def _put(self) -> Callable[..., None]:
        windows, segments, dirty, guard, new_key = self._windows, self.segments, self.dirty, self._guard, self._new_key
        encode_key, keep_keys, keep_pairs, encode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.encode
        known, with_timestamp = guard.known, self._with_timestamp

        def put_pair(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if value is None:
                return None
            if type(value) not in known:
                guard.admit(value)
            sequence = self._sequence = (self._sequence + 1) & _LAST_SEQUENCE
            if (start_ms > segments.observed_ms or start_ms < segments.live_from_ms) and not segments.observe(start_ms):
                return self._store.task.drop()
            row: Any = (value, timestamp_ms if with_timestamp else UNKNOWN_TIMESTAMP)
            if not keep_keys:
                key = encode_key(key)
            if not keep_pairs:
                row = encode(row)
            dirty[key, start_ms, sequence] = row
            found = windows.get(key)
            if found is None:
                found = new_key(key)
                if found is None:
                    return None
            self._count += 1
            starts, rows = found
            if start_ms in rows:
                rows[start_ms].append(row)
            else:
                rows[start_ms] = [row]
                insort(starts, start_ms)
            return None

        return put_pair

    def _new_key(self, name: Any) -> tuple[list[int], dict[int, list[Any]]] | None:
        if not self._everything:
            return None
        found = self._windows[name] = ([], {})
        return found

    def fetch_pairs(self, key: Any, from_ms: int, to_ms: int, reverse: bool = False) -> list[WindowRow]:  # noqa: FBT001, FBT002
        """Returns (start, value, timestamp) of a key's rows from ``from_ms`` to ``to_ms``."""
        name = key if self.keys.keep else self.keys.encode(key)
        window = self._windows.get(name)
        if window is None:
            if self._everything:
                return []
            window = self._complete(name)
        starts, rows = window
        first = bisect_left(starts, max(from_ms, self.segments.visible_from_ms))
        decode = None if self.pairs.keep else self.pairs.decode
        found = []
        for start_ms in starts[first : bisect_right(starts, to_ms)]:
            for row in rows[start_ms]:
                value, timestamp_ms = row if decode is None else decode(row)
                found.append((start_ms, value, timestamp_ms))
        if reverse:
            found.reverse()
        if starts and starts[0] < self.segments.live_from_ms:
            self._drop_expired(name)
        return found

    def _complete(self, name: Any) -> tuple[list[int], dict[int, list[Any]]]:
        self.flush()
        key = self.keys.encode(name) if self.keys.keep else name
        rows: dict[int, list[Any]] = {}
        self._count += 1
        for times, data in self._read_key(key):
            rows.setdefault(times[0], []).append(self.pairs.decode(data) if self.pairs.keep else data)
            self._count += 1
        found = self._windows[name] = (sorted(rows), rows)
        return found

    def _write_dirty(self) -> None:
        engine, layout, live_from_ms = self.engine, self.layout, self.segments.live_from_ms
        encode_key, encode, keep_keys, keep_pairs = self.keys.encode, self.pairs.encode, self.keys.keep, self.pairs.keep
        for (name, start_ms, sequence), row in self.dirty.items():
            if start_ms >= live_from_ms:
                key = encode_key(name) if keep_keys else name
                engine.put(layout.data(key, start_ms, sequence=sequence), encode(row) if keep_pairs else row)
        if self._sequence != self._saved_sequence:
            save_sequence(engine, self._sequence)
            self._saved_sequence = self._sequence

    def _drop_all_expired(self) -> int:
        for name in list(self._windows):
            self._drop_expired(name)
        return sum(len(rows) for _, by_start in self._windows.values() for rows in by_start.values())

    def _drop_expired(self, name: Any) -> None:
        starts, rows = self._windows[name]
        end = bisect_left(starts, self.segments.live_from_ms)
        for start_ms in starts[:end]:
            del rows[start_ms]
        del starts[:end]
        if not starts:
            del self._windows[name]

    def scan(self, from_ms: int, to_ms: int, *, reverse: bool = False, by_key: bool = False) -> Iterator[ScannedRow]:
        """Returns the visible rows from ``from_ms`` to ``to_ms`` in the order of segment, key, start and arrival."""
        self.flush()
        low_ms = max(from_ms, self.segments.visible_from_ms)
        if to_ms < low_ms:
            return
        for key, (start_ms, *_), data in self._scan(low_ms, to_ms, reverse=reverse):
            if low_ms <= start_ms <= to_ms:
                yield key, start_ms, self.pairs.decode(data)
