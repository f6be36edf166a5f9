"""Window stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from struct import Struct
from typing import Any, ClassVar, Generic, TypeVar

from headrace.arguments.durations import MAX_LONG
from headrace.record import KeyValue, ValueAndTimestamp
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.cache_budget import CacheBudget
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP, Codec, pack_timestamp, timed_rows, timestamp_of
from headrace.state.rows.duplicate_rows import DuplicateRows
from headrace.state.rows.segmented_rows import RestoredRow
from headrace.state.rows.segments import CLOCK_ROWS, DATA, Layout, Segments
from headrace.state.rows.window_cache import WindowCache, windows_of
from headrace.state.rows.window_rows import ScannedRow, WindowRow, WindowRows
from headrace.state.stores.iterators import KeyValueIterator
from headrace.state.stores.read_only import ReadOnlyWindowStore
from headrace.state.stores.segmented import SegmentedStore
from headrace.state.stores.store import ChangelogRecord, TaskLink
from headrace.state.stores.suppliers import WindowSupplier
from headrace.state.stores.tabular import TabularStore
from headrace.state.stores.times import Time, as_ms
from headrace.topics.log import Output
from headrace.windows import Window, Windowed

K = TypeVar("K")
V = TypeVar("V")

_CHANGELOG_TAIL = Struct(">qI")


class WindowStore(TabularStore, SegmentedStore, Generic[K, V]):
    """Values by key and window start, for as long as the retention.

    Operators use ``get_pair``, ``put_pair``, ``fetch_pairs`` and ``fetch_closed``, which are chosen for the store's
    serdes when it is made; a plain window store's timestamps are -1 there.

    >>> from datetime import timedelta
    >>> from headrace.state import MemoryEngine, Stores
    >>> supplier = Stores.in_memory_window_store("visits", timedelta(hours=1), timedelta(minutes=1))
    >>> store = Stores.window_store_builder(supplier).build(MemoryEngine())
    >>> store.put("alice", 3, 60_000)
    >>> store.fetch("alice", 60_000)
    3
    >>> list(store.fetch_range("alice", 0, 120_000))
    [KeyValue(key=60000, value=3)]
    """

    __slots__ = (
        "_scan",
        "_timestamps",
        "fetch_pairs",
        "get_pair",
        "inline",
        "next_number",
        "put_pair",
        "window_at",
        "window_size_ms",
    )

    kind: ClassVar[str] = "window"

    supplier: WindowSupplier
    _rows: WindowRows | DuplicateRows
    _cache: WindowCache | None
    get_pair: Callable[[Any, int], tuple[Any, int] | None]
    """(key, start_ms): returns (value, timestamp_ms), or None."""
    put_pair: Callable[..., None]
    """(key, start_ms, value, timestamp_ms, headers=()): sets a row; a value of None deletes it."""
    fetch_pairs: Callable[..., list[WindowRow]]
    """(key, from_ms, to_ms, reverse=False): returns (start_ms, value, timestamp_ms) by start."""
    window_at: Callable[[int], Window]
    """(start_ms): returns the window that starts then."""
    inline: bool
    """Whether the store is cached and keeps objects, so that an operator may replace a row of ``dirty`` by itself.

    Then ``dirty[start_ms][key]`` is (value or None, timestamp_ms, headers, origin, offset, number);
    the first entry of a key and start must come from ``put_pair``, and the number is ``next_number()``.
    """
    next_number: Callable[[], int]

    def __init__(
        self,
        supplier: WindowSupplier,
        engine: Engine,
        keys: Codec,
        values: Codec,
        *,
        with_timestamp: bool = False,
        budget: CacheBudget | None = None,
    ) -> None:
        super().__init__(supplier, engine, keys, values)
        self.window_size_ms = supplier.window_size_ms
        self.window_at = windows_of(supplier)
        self._timestamps = with_timestamp
        time_first = supplier.time_index and not supplier.retain_duplicates
        interval_ms = supplier.segment_interval_ms
        if supplier.retain_duplicates:
            # What a join remembers is out of sight long before a segment of a minute is over.
            interval_ms = min(interval_ms, max(1, supplier.retention_ms // 2))
        layout = Layout(interval_ms=interval_ms, time_first=time_first, numbered=supplier.retain_duplicates)
        segments = Segments(
            retention_ms=supplier.retention_ms, interval_ms=supplier.segment_interval_ms, inclusive=time_first
        )
        kind = DuplicateRows if supplier.retain_duplicates else WindowRows
        self._rows = kind(self, engine, keys, values, self._guard, layout, segments, with_timestamp=with_timestamp)
        self._cache = None
        if budget is not None and isinstance(self._rows, WindowRows):
            self._cache = WindowCache(self, self._rows, values, budget)
        self.cached = self._cache is not None
        self.inline = self._cache is not None and keys.keep and values.keep
        if self._cache is not None:
            self.next_number = self._cache.next_number
        above = self._cache or self._rows
        self.dirty: dict[Any, Any] = above.dirty
        self.fetch_pairs = above.fetch_pairs
        self._scan: Callable[..., Iterable[ScannedRow]] = above.scan
        self.get_pair = self._rows.get_pair if self._cache is None else self._cache.getter()
        self.init(self.task)

    def init(self, task: TaskLink) -> None:
        super().init(task)
        self.put_pair = self._rows.put_pair if self._cache is None else self._cache.putter(task, self._guard)

    def holds_back(self, key: Any, start_ms: int) -> bool:
        """Tells whether the cache has a change of the row that was not let go yet."""
        keys = self._rows.keys
        return (key if keys.keep else keys.encode(key)) in self.dirty.get(start_ms, ())

    def told_pair(self, key: Any, start_ms: int) -> tuple[Any, int] | None:
        """Returns the row below the cache, which is the one that was let go last."""
        return self._rows.get_pair(key, start_ms)

    def fetch_closed(self, from_ms: int, to_ms: int) -> list[tuple[int, Any, Any, int]]:
        """Returns (start_ms, key, value, timestamp_ms) of the windows that start from ``from_ms`` to ``to_ms``."""
        decode = self._rows.keys.decode
        return [(start_ms, decode(key), *pair) for key, start_ms, pair in self._scan(from_ms, to_ms)]

    def put(self, key: K, value: V | None, window_start_ms: int) -> None:
        """Sets the value of a key in the window that starts then; None deletes it.

        A window that starts too long before the newest one is not taken, and counted as dropped. A store that retains
        duplicates adds the value instead, and ignores None.
        """
        self._check(key)
        if window_start_ms < 0:
            message = f"store '{self.name}': a window cannot start before 0, got start {window_start_ms}"
            raise ValueError(message)
        self.put_pair(key, window_start_ms, *self._to_pair(value))

    def fetch(self, key: K, start_ms: Time) -> V | None:
        """Returns the value of a key in the window that starts then, or None."""
        self._check(key)
        value: V | None = self._from_pair(self.get_pair(key, as_ms(start_ms)))
        return value

    def fetch_range(self, key: K, from_ms: Time, to_ms: Time) -> KeyValueIterator[int, V]:
        """Returns the values of a key by window start, from ``from_ms`` to ``to_ms``, both included."""
        return self._fetch(key, from_ms, to_ms, reverse=False)

    def backward_fetch_range(self, key: K, from_ms: Time, to_ms: Time) -> KeyValueIterator[int, V]:
        """Returns the values of a key by window start, the latest first."""
        return self._fetch(key, from_ms, to_ms, reverse=True)

    def fetch_keys(self, low: K | None, high: K | None, from_ms: Time, to_ms: Time) -> KeyValueIterator[Windowed[K], V]:
        """Returns the windows from ``from_ms`` to ``to_ms`` of the keys from ``low`` to ``high`` (None: open end).

        >>> from datetime import timedelta
        >>> from headrace.state import MemoryEngine, Stores
        >>> supplier = Stores.in_memory_window_store("visits", timedelta(hours=1), timedelta(milliseconds=5))
        >>> store = Stores.window_store_builder(supplier).build(MemoryEngine())
        >>> for key in "abc":
        ...     store.put(key, 1, 10)
        >>> list(store.fetch_keys("b", None, 0, 20))
        [KeyValue(key=[b@10/15], value=1), KeyValue(key=[c@10/15], value=1)]
        """
        return self._fetch_keys(low, high, from_ms, to_ms, reverse=False)

    def backward_fetch_keys(
        self, low: K | None, high: K | None, from_ms: Time, to_ms: Time
    ) -> KeyValueIterator[Windowed[K], V]:
        """Returns the rows of ``fetch_keys`` in the opposite order."""
        return self._fetch_keys(low, high, from_ms, to_ms, reverse=True)

    def fetch_all(self, from_ms: Time, to_ms: Time) -> KeyValueIterator[Windowed[K], V]:
        """Returns the windows of all keys that start from ``from_ms`` to ``to_ms``, both included."""
        return self._windows(self._scan(as_ms(from_ms), as_ms(to_ms)))

    def backward_fetch_all(self, from_ms: Time, to_ms: Time) -> KeyValueIterator[Windowed[K], V]:
        """Returns the rows of ``fetch_all`` in the opposite order."""
        return self._windows(self._scan(as_ms(from_ms), as_ms(to_ms), reverse=True))

    def all(self) -> KeyValueIterator[Windowed[K], V]:
        """Returns all windows of all keys."""
        return self.fetch_all(0, MAX_LONG)

    def backward_all(self) -> KeyValueIterator[Windowed[K], V]:
        """Returns the rows of ``all`` in the opposite order."""
        return self.backward_fetch_all(0, MAX_LONG)

    def read_only(self) -> ReadOnlyWindowStore:
        return ReadOnlyWindowStore(self)

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        rows = self._data_rows(changes)
        keys = self._rows.layout.changelog_keys(rows)
        if not self._timestamps:
            return list(zip(keys, rows.values(), repeat(None)))
        return [
            (key, None, None) if row is None else (key, row[8:], timestamp_of(row))
            for key, row in zip(keys, rows.values(), strict=True)
        ]

    def changelog_outputs(self, changes: Changes, partition: int, now_ms: int) -> list[Output]:
        rows = self._data_rows(changes)
        keys = self._rows.layout.changelog_keys(rows)
        times: Iterable[int] = repeat(now_ms)
        values: Iterable[bytes | None] = rows.values()
        if self._timestamps:
            times, values = timed_rows(rows, now_ms)
        return list(zip(repeat(partition), times, keys, values, repeat(())))

    def _data_rows(self, changes: Changes) -> dict[bytes, bytes | None]:
        """Returns the changes of rows, without those of the index and of the clock."""
        if self._rows.layout.time_first:
            return {name: row for name, row in changes.rows.items() if name.startswith(DATA)}
        rows = dict(changes.rows)
        for name in CLOCK_ROWS:
            rows.pop(name, None)
        return rows

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        self._rows.restore(map(self._restored, records))
        self.reload()

    def _restored(self, record: ChangelogRecord) -> RestoredRow:
        changelog_key, value, time = record
        start_ms, sequence = _CHANGELOG_TAIL.unpack(changelog_key[-12:])
        if value is not None and self._timestamps:
            value = pack_timestamp(UNKNOWN_TIMESTAMP if time is None else time) + value
        return changelog_key[:-12], (start_ms,), sequence, value

    def _to_pair(self, value: Any) -> tuple[Any, int]:
        return value, UNKNOWN_TIMESTAMP

    def _from_pair(self, pair: tuple[Any, int] | None) -> Any:
        return None if pair is None else pair[0]

    def _fetch(self, key: Any, from_ms: Time, to_ms: Time, *, reverse: bool) -> KeyValueIterator[int, V]:
        self._check(key)
        rows = self.fetch_pairs(key, as_ms(from_ms), as_ms(to_ms), reverse)
        return KeyValueIterator(self, (KeyValue(row[0], self._from_pair(row[1:])) for row in rows))

    def _fetch_keys(
        self, low: Any, high: Any, from_ms: Time, to_ms: Time, *, reverse: bool
    ) -> KeyValueIterator[Windowed[K], V]:
        first, last = self._bounds(low, high)
        rows = self._scan(as_ms(from_ms), as_ms(to_ms), reverse=reverse, by_key=True)
        return self._windows(
            row for row in rows if (first is None or row[0] >= first) and (last is None or row[0] <= last)
        )

    def _windows(self, rows: Iterable[ScannedRow]) -> KeyValueIterator[Windowed[K], V]:
        self.check_open()
        return KeyValueIterator(self, self._with_windows(iter(rows)))

    def _with_windows(self, rows: Iterator[ScannedRow]) -> Iterator[KeyValue[Windowed[K], V]]:
        decode, window_at, from_pair = self._rows.keys.decode, self.window_at, self._from_pair
        for key, start_ms, pair in rows:
            yield KeyValue(Windowed(decode(key), window_at(start_ms)), from_pair(pair))


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """A window store whose rows have a timestamp: values are ``ValueAndTimestamp``.

    >>> from datetime import timedelta
    >>> from headrace.state import MemoryEngine, Stores
    >>> supplier = Stores.persistent_timestamped_window_store("visits", timedelta(hours=1), timedelta(minutes=1))
    >>> store = Stores.timestamped_window_store_builder(supplier).build(MemoryEngine())
    >>> store.put_pair("alice", 60_000, 3, 61_000)
    >>> store.fetch("alice", 60_000)
    ValueAndTimestamp(value=3, timestamp_ms=61000)
    """

    __slots__ = ()

    kind: ClassVar[str] = "timestamped_window"

    def _to_pair(self, value: Any) -> tuple[Any, int]:
        if value is None:
            return None, UNKNOWN_TIMESTAMP
        if not isinstance(value, tuple) or len(value) != 2:
            message = f"store '{self.name}' keeps ValueAndTimestamp(value, timestamp_ms), got {value!r}"
            raise TypeError(message)
        return value

    def _from_pair(self, pair: tuple[Any, int] | None) -> Any:
        return None if pair is None else ValueAndTimestamp(*pair)
