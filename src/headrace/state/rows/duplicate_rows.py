"""Rows of a window store that keeps duplicates: what stream-stream joins remember of each side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP, Codec, TypeGuard
from headrace.state.rows.segmented_rows import RestoredRow, SegmentedRows
from headrace.state.rows.segments import Layout, Segments, load_sequence, save_sequence
from headrace.state.rows.window_rows import ScannedRow, WindowRow
from headrace.state.stores.store import HeaderPairs, Store

_LAST_SEQUENCE = 0x7FFFFFFF
_ALWAYS = -1
_FEW = 16
"""Rows of a key in one segment that are kept in a tuple, and looked at one after the other."""
_start_of: Callable[[Sequence[Any]], int] = itemgetter(0)

# start, value, timestamp; or start and the bytes of both
_Row: TypeAlias = tuple[int, Any, int] | tuple[int, bytes]


class _Segment:
    """Rows of one span of time by key, in the order of their starts.

    Tuples of values that refer to nothing else are out of sight of Python's cyclic collector, which otherwise walks
    through every list of every key, once per batch: most keys have few rows.
    """

    __slots__ = ("count", "rows")

    def __init__(self) -> None:
        self.rows: dict[Any, tuple[_Row, ...] | list[_Row]] = {}
        self.count = 0

    def add(self, name: Any, row: _Row) -> None:
        self.count += 1
        found = self.rows.get(name)
        if found is None:
            self.rows[name] = (row,)
        elif row[0] < found[-1][0]:
            rows = list(found)
            rows.insert(bisect_right(rows, row[0], key=_start_of), row)
            self.rows[name] = tuple(rows) if len(rows) <= _FEW else rows
        elif len(found) < _FEW:
            self.rows[name] = (*found, row)
        elif isinstance(found, list):
            found.append(row)
        else:
            self.rows[name] = [*found, row]

    def between(self, name: Any, from_ms: int, to_ms: int) -> Sequence[_Row]:
        """Returns the rows of a key that start from ``from_ms`` to ``to_ms``."""
        found = self.rows.get(name, ())
        if len(found) > _FEW:
            return found[bisect_left(found, from_ms, key=_start_of) : bisect_right(found, to_ms, key=_start_of)]
        return [row for row in found if from_ms <= row[0] <= to_ms]


class DuplicateRows(SegmentedRows):
    """Any number of (value, timestamp) per key and window start, in the order in which they came.

    A row that has gone out of sight is never asked for again: a join looks as far back as its windows, and a store
    keeps segments of a minute at least. So in memory there are segments of the length of what is visible, which go as
    soon as nothing of them is visible any more; rows that come and go between two flushes are not written at all.

    The segments in memory have everything that is visible and starts from ``_known_from_ms`` on; of keys in
    ``_complete`` also what is older. That time is past soon after a start, and then the engine is not read any more.
    """

    __slots__ = (
        "_complete",
        "_guard",
        "_known_from_ms",
        "_saved_sequence",
        "_segments",
        "_sequence",
        "_span_ms",
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
        self._span_ms = max(1, segments.retention_ms)
        self._segments: dict[int, _Segment] = {}
        self._complete: set[Any] = set()
        # By segment in memory, in the order in which they came: (sequence number, name, row)
        self.dirty: dict[int, list[tuple[int, Any, _Row]]]
        self.get_pair = self._get
        self.put_pair = self._put()
        self.reload()

    def reload(self) -> None:
        """Forgets what is buffered and reads the clock and the sequence number from the engine."""
        super().reload()
        self._known_from_ms = self.segments.observed_ms + 1 if self.segments.has_started else _ALWAYS
        self._sequence = self._saved_sequence = load_sequence(self.engine)

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Writes rows of a changelog into the engine; numbers go on after theirs."""
        self.flush()
        restored = list(rows)
        save_sequence(self.engine, max([self._sequence, *(row[2] for row in restored)]))
        super().restore(restored)

    def _forget(self) -> None:
        self._segments.clear()
        self._complete.clear()

    def _get(self, key: Any, start_ms: int) -> tuple[Any, int] | None:
        # As in Kafka Streams, only the row that was put last can be found without asking for a range.
        if start_ms < self.segments.visible_from_ms:
            return None
        self.flush()
        data = self.engine.get(self.layout.data(self.keys.encode(key), start_ms, sequence=self._sequence))
        pair: tuple[Any, int] | None = None if data is None else self.pairs.decode(data)
        return pair

    def _put(self) -> Callable[..., None]:
        in_memory, span_ms, segments, dirty, guard = (
            self._segments,
            self._span_ms,
            self.segments,
            self.dirty,
            self._guard,
        )
        encode_key, keep_keys, keep_pairs, encode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.encode
        known, with_timestamp, begin = guard.known, self._with_timestamp, self._begin

        def put_pair(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if value is None:
                return None
            if type(value) not in known:
                guard.admit(value)
            sequence = self._sequence = (self._sequence + 1) & _LAST_SEQUENCE
            if (start_ms > segments.observed_ms or start_ms < segments.live_from_ms) and not segments.observe(start_ms):
                return self._store.task.drop()
            if not with_timestamp:
                timestamp_ms = UNKNOWN_TIMESTAMP
            if not keep_keys:
                key = encode_key(key)
            row = (start_ms, value, timestamp_ms) if keep_pairs else (start_ms, encode((value, timestamp_ms)))
            number = start_ms // span_ms
            waiting = dirty.get(number)
            if waiting is None:
                waiting = begin(number)
            waiting.append((sequence, key, row))
            in_memory[number].add(key, row)
            return None

        return put_pair

    def _begin(self, number: int) -> list[tuple[int, Any, _Row]]:
        """Makes room for rows of a segment, and lets those go that are out of sight."""
        first = self.segments.visible_from_ms // self._span_ms
        for rows in (self._segments, self.dirty):
            for old in [each for each in rows if each < first]:
                del rows[old]
        if number not in self._segments:
            self._segments[number] = _Segment()
        return self.dirty.setdefault(number, [])

    def fetch_pairs(self, key: Any, from_ms: int, to_ms: int, reverse: bool = False) -> list[WindowRow]:  # noqa: FBT001, FBT002
        """Returns (start, value, timestamp) of a key's rows from ``from_ms`` to ``to_ms``."""
        name = key if self.keys.keep else self.keys.encode(key)
        segments, span_ms = self.segments, self._span_ms
        if from_ms < segments.visible_from_ms:
            from_ms = segments.visible_from_ms
        if to_ms > segments.observed_ms:
            to_ms = segments.observed_ms
        if from_ms < self._known_from_ms and name not in self._complete:
            self._read_all(name)
        found: list[Any] = []
        for number in range(from_ms // span_ms, to_ms // span_ms + 1):
            segment = self._segments.get(number)
            if segment is not None and name in segment.rows:
                found += segment.between(name, from_ms, to_ms)
        if not self.pairs.keep:
            decode = self.pairs.decode
            found = [(start_ms, *decode(data)) for start_ms, data in found]
        if reverse:
            found.reverse()
        return found

    def _read_all(self, name: Any) -> None:
        """Brings all rows of a key into memory."""
        self.flush()
        key = self.keys.encode(name) if self.keys.keep else name
        decode = self.pairs.decode if self.pairs.keep else None
        for segment in self._segments.values():
            segment.count -= len(segment.rows.pop(name, ()))
        for (start_ms, *_), data in self._read_key(key):
            number = start_ms // self._span_ms
            if number not in self._segments:
                self._segments[number] = _Segment()
            self._segments[number].add(name, (start_ms, data) if decode is None else (start_ms, *decode(data)))
        self._complete.add(name)

    @property
    def _gone_before_ms(self) -> int:
        return self.segments.visible_from_ms

    def _write_dirty(self) -> None:
        visible_from_ms = self.segments.visible_from_ms
        waiting = [each for rows in self.dirty.values() for each in rows if each[2][0] >= visible_from_ms]
        if waiting:
            numbers, names, rows = zip(*waiting, strict=True)
            keys = self.keys.encode_all(names) if self.keys.keep else names
            data = self.pairs.encode_all([row[1:] for row in rows]) if self.pairs.keep else [row[1] for row in rows]
            starts = [row[0] for row in rows]
            self.engine.apply(Changes(rows=dict(zip(self.layout.numbered(keys, starts, numbers), data, strict=True))))
        if self._sequence != self._saved_sequence:
            save_sequence(self.engine, self._sequence)
            self._saved_sequence = self._sequence
        if visible_from_ms >= self._known_from_ms:
            # What was read from the engine is out of sight.
            self._complete.clear()
        self._count = sum(segment.count for segment in self._segments.values()) + len(self._complete)

    def _trim(self) -> None:
        # All of it is visible, and may be asked for. If it is too much for the memory, the engine is read key by key.
        self._forget()
        self._count = 0
        self._known_from_ms = self.segments.observed_ms + 1

    def scan(self, from_ms: int, to_ms: int, *, reverse: bool = False, by_key: bool = False) -> Iterator[ScannedRow]:
        """Returns the visible rows from ``from_ms`` to ``to_ms`` in the order of segment, key, start and arrival."""
        self.flush()
        low_ms, segment = max(from_ms, self.segments.visible_from_ms), self.segments.segment
        if to_ms < low_ms:
            return
        found = []
        for name, data in self.engine.scan(*self.layout.between(low_ms, to_ms)):
            key, (start_ms, *_), sequence = self.layout.split(name)
            if low_ms <= start_ms <= to_ms:
                found.append((segment(start_ms), key, start_ms, sequence, data))
        found.sort(reverse=reverse)
        for _, key, start_ms, _, data in found:
            yield key, start_ms, self.pairs.decode(data)
