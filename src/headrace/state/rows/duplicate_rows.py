"""Rows of a window store that keeps duplicates: what stream-stream joins remember of each side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP, Codec, TypeGuard, pair_codec
from headrace.state.rows.segmented_rows import RestoredRow, SegmentedRows
from headrace.state.rows.segments import Layout, Segments, load_sequence, save_sequence
from headrace.state.rows.window_rows import ScannedRow, WindowRow
from headrace.state.stores.store import HeaderPairs, Store

_LAST_SEQUENCE = 0x7FFFFFFF
_ALWAYS = -1
_FEW = 16
"""Rows of a key that are kept in a tuple, and looked at one after the other."""
_start_of: Callable[[Sequence[Any]], int] = itemgetter(0)

# start, value, timestamp; or start and the bytes of both
_Row: TypeAlias = tuple[int, Any, int] | tuple[int, bytes]


class DuplicateRows(SegmentedRows):
    """Any number of (value, timestamp) per key and window start, in the order in which they came.

    A row that has gone out of sight is never asked for again: a join looks as far back as its windows, and a store
    keeps segments of a minute at least. So in memory there are the visible rows of each key, by start; the others are
    let go when as many rows have come as were left the last time. Rows that come and go between two flushes are not
    written at all.

    The rows of a key are a tuple while they are few. Tuples of values that refer to nothing else are out of sight of
    Python's cyclic collector, which otherwise walks through every list of every key.

    In memory is everything that is visible and starts from ``_known_from_ms`` on; of keys in ``_complete`` also what is
    older. That time is past soon after a start, and then the engine is not read any more.
    """

    __slots__ = (
        "_by_key",
        "_complete",
        "_guard",
        "_known_from_ms",
        "_left",
        "_saved_sequence",
        "_sequence",
        "_sequence_then",
        "_values",
        "_with_timestamp",
        "fetch_pairs",
        "get_pair",
        "pairs",
        "put_pair",
    )

    get_pair: Callable[[Any, int], tuple[Any, int] | None]
    put_pair: Callable[..., None]
    fetch_pairs: Callable[..., list[WindowRow]]
    """(key, from_ms, to_ms, reverse=False): returns (start, value, timestamp) of a key's rows between two starts."""

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
        self._values = values
        self.pairs = pair_codec(values, with_timestamp=with_timestamp)
        self._guard = guard
        self._by_key: dict[Any, tuple[_Row, ...] | list[_Row]] = {}
        self._left = 0
        """How many rows were in memory when it was looked last which of them are visible."""
        self._sequence = self._sequence_then = 0
        """Numbers of the row that was put last, and of the one that had been then."""
        self._complete: set[Any] = set()
        # By segment, in the order in which they came: sequence number, key, row, and so on, without a tuple for each
        self.dirty: dict[int, list[Any]]
        self.get_pair = self._get
        self.put_pair = self._put()
        self.fetch_pairs = self._fetch()
        self.reload()

    def reload(self) -> None:
        """Forgets what is buffered and reads the clock and the sequence number from the engine."""
        super().reload()
        self._known_from_ms = self.segments.observed_ms + 1 if self.segments.has_started else _ALWAYS
        self._sequence = self._saved_sequence = self._sequence_then = load_sequence(self.engine)

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Writes rows of a changelog into the engine; numbers go on after theirs."""
        self.flush()
        restored = list(rows)
        save_sequence(self.engine, max([self._sequence, *(row[2] for row in restored)]))
        super().restore(restored)

    def _forget(self) -> None:
        self._by_key.clear()
        self._left = 0
        self._sequence_then = self._sequence
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
        segments, dirty, by_key, guard = self.segments, self.dirty, self._by_key, self._guard
        encode_key, keep_keys, keep_pairs, encode = self.keys.encode, self.keys.keep, self.pairs.keep, self.pairs.encode
        known, with_timestamp, begin = guard.known, self._with_timestamp, self._begin
        interval_ms = self.layout.interval_ms

        def put_pair(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if value is None:
                return None
            if type(value) not in known:
                guard.admit(value)
            sequence = self._sequence = (self._sequence + 1) & _LAST_SEQUENCE
            if (start_ms > segments.observed_ms or start_ms < segments.live_from_ms) and not segments.observe(start_ms):
                return self._store.task.drop()
            if start_ms < segments.visible_from_ms:
                return None
            if not with_timestamp:
                timestamp_ms = UNKNOWN_TIMESTAMP
            if not keep_keys:
                key = encode_key(key)
            row = (start_ms, value, timestamp_ms) if keep_pairs else (start_ms, encode((value, timestamp_ms)))
            waiting = dirty.get(start_ms // interval_ms)
            if waiting is None:
                waiting = begin(start_ms // interval_ms)
            waiting += sequence, key, row
            found = by_key.get(key)
            if found is None or found[-1][0] < segments.visible_from_ms:
                by_key[key] = (row,)
            elif start_ms >= found[-1][0] and len(found) < _FEW:
                by_key[key] = (*found, row)
            else:
                by_key[key] = _with_row(found, row)
            return None

        return put_pair

    def _begin(self, number: int) -> list[Any]:
        """Makes room for rows of a segment, and lets those go that are out of sight."""
        self._forget_invisible()
        return self.dirty.setdefault(number, [])

    def _forget_invisible(self) -> None:
        """Forgets what is not visible any more: of what is to be written at once, of what is in memory when it pays."""
        visible_from_ms, by_key = self.segments.visible_from_ms, self._by_key
        first = visible_from_ms // self.layout.interval_ms
        for number in [number for number in self.dirty if number < first]:
            del self.dirty[number]
        # This looks at all keys: no more than one for each row that has come since.
        if self._rows_in_memory() <= 2 * self._left + _FEW:
            return
        for name in [name for name, rows in by_key.items() if rows[0][0] < visible_from_ms]:
            rows = by_key[name]
            if rows[-1][0] < visible_from_ms:
                del by_key[name]
            else:
                left = rows[bisect_left(rows, visible_from_ms, key=_start_of) :]
                by_key[name] = tuple(left) if len(left) <= _FEW else left
        self._left = sum(map(len, by_key.values()))
        self._sequence_then = self._sequence

    def _rows_in_memory(self) -> int:
        """Returns how many rows are in memory at most: some may have gone with their key since it was counted."""
        return self._left + ((self._sequence - self._sequence_then) & _LAST_SEQUENCE)

    def _fetch(self) -> Callable[..., list[WindowRow]]:
        segments, by_key, complete = self.segments, self._by_key, self._complete
        encode_key, keep_keys = self.keys.encode, self.keys.keep
        decode = None if self.pairs.keep else self.pairs.decode

        def fetch_pairs(key: Any, from_ms: int, to_ms: int, reverse: bool = False) -> list[Any]:  # noqa: FBT001, FBT002
            name = key if keep_keys else encode_key(key)
            if from_ms < segments.visible_from_ms:
                from_ms = segments.visible_from_ms
            if from_ms < self._known_from_ms and name not in complete:
                self._read_all(name)
            rows: Any = by_key.get(name)
            found: list[Any]
            if rows is None:
                return []
            if len(rows) > _FEW:
                found = rows[bisect_left(rows, from_ms, key=_start_of) : bisect_right(rows, to_ms, key=_start_of)]
            elif rows[0][0] < from_ms or rows[-1][0] > to_ms:
                found = [row for row in rows if from_ms <= row[0] <= to_ms]
            else:
                found = [*rows]
            if decode is not None:
                found = [(start_ms, *decode(data)) for start_ms, data in found]
            return found[::-1] if reverse else found

        return fetch_pairs

    def _read_all(self, name: Any) -> None:
        """Brings all rows of a key into memory."""
        self.flush()
        key = self.keys.encode(name) if self.keys.keep else name
        decode = self.pairs.decode if self.pairs.keep else None
        rows: list[_Row] = []
        for (start_ms, *_), data in self._read_key(key):
            if start_ms >= self.segments.visible_from_ms:
                rows.append((start_ms, data) if decode is None else (start_ms, *decode(data)))
        self._left += len(rows) - len(self._by_key.pop(name, ()))
        if rows:
            self._by_key[name] = tuple(rows) if len(rows) <= _FEW else rows
        self._complete.add(name)

    @property
    def _gone_before_ms(self) -> int:
        return self.segments.visible_from_ms

    def _write_dirty(self) -> None:
        self._forget_invisible()
        visible_from_ms = self.segments.visible_from_ms
        for number, waiting in self.dirty.items():
            if number * self.layout.interval_ms < visible_from_ms:
                waiting = _only_from(visible_from_ms, waiting)
            sequences, names, rows = waiting[::3], waiting[1::3], waiting[2::3]
            keys = self.keys.encode_all(names) if self.keys.keep else names
            starts = [row[0] for row in rows]
            named = self.layout.numbered(number, keys, starts, sequences)
            self.engine.apply(Changes(rows=dict(zip(named, self._data(rows), strict=True))))
        if self._sequence != self._saved_sequence:
            save_sequence(self.engine, self._sequence)
            self._saved_sequence = self._sequence
        if visible_from_ms >= self._known_from_ms:
            # What was read from the engine is out of sight.
            self._complete.clear()
        self._count = self._rows_in_memory() + len(self._complete)

    def _data(self, rows: Sequence[Any]) -> list[bytes]:
        """Returns the bytes of rows."""
        if not self.pairs.keep:
            return [row[1] for row in rows]
        if self._with_timestamp:
            return self.pairs.encode_all([row[1:] for row in rows])
        return self._values.encode_all([row[1] for row in rows])

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


def _with_row(rows: Sequence[_Row], row: _Row) -> tuple[_Row, ...] | list[_Row]:
    """Returns rows with one more, behind those that do not start later; a list gets it itself."""
    more = rows if isinstance(rows, list) else list(rows)
    insort_right(more, row, key=_start_of)
    return more if len(more) > _FEW else tuple(more)


def _only_from(start_ms: int, waiting: Sequence[Any]) -> list[Any]:
    """Returns the sequence numbers, keys and rows of those rows that start then or later."""
    threes = zip(waiting[::3], waiting[1::3], waiting[2::3], strict=True)
    return [each for three in threes if three[2][0] >= start_ms for each in three]
