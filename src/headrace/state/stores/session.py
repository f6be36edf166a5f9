"""Session stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Any, ClassVar, Generic, TypeVar

from headrace.arguments.durations import MAX_LONG
from headrace.record import KeyValue
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.cache_budget import CacheBudget
from headrace.state.rows.codec import Codec
from headrace.state.rows.segments import DATA, Layout, Segments
from headrace.state.rows.session_cache import SessionCache
from headrace.state.rows.session_rows import ScannedSession, SessionRow, SessionRows
from headrace.state.stores.iterators import KeyValueIterator
from headrace.state.stores.read_only import ReadOnlySessionStore
from headrace.state.stores.segmented import SegmentedStore
from headrace.state.stores.store import ChangelogRecord, HeaderPairs
from headrace.state.stores.suppliers import SessionSupplier
from headrace.state.stores.tabular import TabularSessions
from headrace.state.stores.times import Time, as_ms
from headrace.windows import SessionWindow, Windowed

K = TypeVar("K")
V = TypeVar("V")

_TIMES = Struct(">qq")


class SessionStore(TabularSessions, SegmentedStore, Generic[K, V]):
    """Aggregates by key and session, for as long as the retention.

    Operators use ``find``, ``put_session``, ``remove_session`` and ``find_closed``.

    >>> from datetime import timedelta
    >>> from headrace.state import MemoryEngine, Stores
    >>> supplier = Stores.in_memory_session_store("visits", timedelta(hours=1))
    >>> store = Stores.session_store_builder(supplier).build(MemoryEngine())
    >>> store.put(Windowed("alice", SessionWindow(10, 20)), 3)
    >>> list(store.find_sessions("alice", 0, 15))
    [KeyValue(key=[alice@10/20], value=3)]
    """

    __slots__ = ("_scan", "find", "get_session")

    kind: ClassVar[str] = "session"

    supplier: SessionSupplier
    _rows: SessionRows
    _cache: SessionCache | None
    find: Callable[[Any, int, int], list[SessionRow]]
    """(key, earliest_end_ms, latest_start_ms): returns (start_ms, end_ms, aggregate) by end, then start."""
    get_session: Callable[[Any, int, int], Any]
    """(key, start_ms, end_ms): returns the aggregate of a session, or None."""

    def __init__(
        self,
        supplier: SessionSupplier,
        engine: Engine,
        keys: Codec,
        values: Codec,
        *,
        budget: CacheBudget | None = None,
    ) -> None:
        super().__init__(supplier, engine, keys, values)
        layout = Layout(interval_ms=supplier.segment_interval_ms, time_first=supplier.time_index, width=2)
        segments = Segments(retention_ms=supplier.retention_ms, interval_ms=supplier.segment_interval_ms)
        self._rows = SessionRows(self, engine, keys, values, layout, segments)
        self._cache = None if budget is None else SessionCache(self, self._rows, budget)
        self.cached = self._cache is not None
        above = self._cache or self._rows
        self.dirty: dict[Any, Any] = above.dirty
        self.find = above.find
        self.get_session = above.get
        self._scan: Callable[..., Iterable[ScannedSession]] = above.scan

    def holds_back(self, key: Any, start_ms: int, end_ms: int) -> bool:
        """Tells whether the cache has a change of the session that was not let go yet."""
        keys = self._rows.keys
        return (key if keys.keep else keys.encode(key), end_ms, start_ms) in self.dirty

    def told_session(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """Returns the aggregate below the cache, which is the one that was let go last."""
        return self._rows.get(key, start_ms, end_ms)

    def put_session(self, key: Any, start_ms: int, end_ms: int, aggregate: Any, headers: HeaderPairs = ()) -> None:
        """Sets the aggregate of a session; None deletes it."""
        if type(aggregate) not in self._guard.known:
            self._guard.admit(aggregate)
        if self._cache is None:
            self._rows.put(key, start_ms, end_ms, aggregate)
        else:
            self._cache.put(key, start_ms, end_ms, aggregate, headers)

    def remove_session(self, key: Any, start_ms: int, end_ms: int, headers: HeaderPairs = ()) -> None:
        """Deletes a session."""
        if self._cache is None:
            self._rows.remove(key, start_ms, end_ms)
        else:
            self._cache.put(key, start_ms, end_ms, None, headers)

    def find_closed(self, earliest_end_ms: int, latest_end_ms: int) -> list[tuple[int, int, Any, Any]]:
        """Returns (start_ms, end_ms, key, aggregate) of sessions that end within the bounds, by end, start and key."""
        if self._cache is not None and self.dirty:
            self.unsupported("sessions cannot be found by their end while a cache holds changes back; disable caching")
        decode = self._rows.keys.decode
        rows = self._rows.scan_closed(earliest_end_ms, latest_end_ms)
        return [(start_ms, end_ms, decode(key), aggregate) for key, start_ms, end_ms, aggregate in rows]

    def put(self, session: Windowed[K], aggregate: V | None) -> None:
        """Sets the aggregate of a session; None deletes it.

        A session that ends too long before the newest one is not taken, and counted as dropped.
        """
        self._check(session.key)
        self.put_session(session.key, session.window.start_ms, session.window.end_ms, aggregate)

    def remove(self, session: Windowed[K]) -> None:
        """Deletes a session.

        >>> from datetime import timedelta
        >>> from headrace.state import MemoryEngine, Stores
        >>> supplier = Stores.in_memory_session_store("visits", timedelta(hours=1))
        >>> store = Stores.session_store_builder(supplier).build(MemoryEngine())
        >>> session = Windowed("alice", SessionWindow(10, 20))
        >>> store.put(session, 3)
        >>> store.remove(session)
        >>> list(store.fetch("alice"))
        []
        """
        self._check(session.key)
        self.remove_session(session.key, session.window.start_ms, session.window.end_ms)

    def find_sessions(self, key: K, earliest_end_ms: Time, latest_start_ms: Time) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of a key that end at ``earliest_end_ms`` or later and start at ``latest_start_ms`` or
        earlier, by end, then start.
        """
        return self._find(key, earliest_end_ms, latest_start_ms, reverse=False)

    def backward_find_sessions(
        self, key: K, earliest_end_ms: Time, latest_start_ms: Time
    ) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of ``find_sessions`` in the opposite order."""
        return self._find(key, earliest_end_ms, latest_start_ms, reverse=True)

    def find_sessions_keys(
        self, low: K | None, high: K | None, earliest_end_ms: Time, latest_start_ms: Time
    ) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of the keys from ``low`` to ``high``, both included; None is an open end."""
        return self._find_keys(low, high, earliest_end_ms, latest_start_ms, reverse=False)

    def backward_find_sessions_keys(
        self, low: K | None, high: K | None, earliest_end_ms: Time, latest_start_ms: Time
    ) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of ``find_sessions_keys`` in the opposite order."""
        return self._find_keys(low, high, earliest_end_ms, latest_start_ms, reverse=True)

    def find_sessions_in(self, earliest_end_ms: Time, latest_end_ms: Time) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of all keys that end within the bounds, both included, in the order of time."""
        self.check_open()
        rows = self.find_closed(as_ms(earliest_end_ms), as_ms(latest_end_ms))
        return KeyValueIterator(
            self,
            (
                KeyValue(Windowed(key, SessionWindow(start_ms, end_ms)), aggregate)
                for start_ms, end_ms, key, aggregate in rows
            ),
        )

    def fetch(self, key: K) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of a key, the oldest first."""
        return self._find(key, 0, MAX_LONG, reverse=False)

    def backward_fetch(self, key: K) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of a key, the newest first."""
        return self._find(key, 0, MAX_LONG, reverse=True)

    def fetch_keys(self, low: K | None, high: K | None) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of the keys from ``low`` to ``high``, both included; None is an open end."""
        return self._find_keys(low, high, 0, MAX_LONG, reverse=False)

    def backward_fetch_keys(self, low: K | None, high: K | None) -> KeyValueIterator[Windowed[K], V]:
        """Returns the sessions of ``fetch_keys`` in the opposite order."""
        return self._find_keys(low, high, 0, MAX_LONG, reverse=True)

    def fetch_session(self, key: K, start_ms: Time, end_ms: Time) -> V | None:
        """Returns the aggregate of one session, or None."""
        self._check(key)
        aggregate: V | None = self.get_session(key, as_ms(start_ms), as_ms(end_ms))
        return aggregate

    def read_only(self) -> ReadOnlySessionStore:
        return ReadOnlySessionStore(self)

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        records: list[ChangelogRecord] = []
        for name, data in changes.rows.items():
            if name.startswith(DATA):
                key, times, _ = self._rows.layout.split(name)
                records.append((key + _TIMES.pack(*times), data, None))
        return records

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        self._rows.restore((key[:-16], _TIMES.unpack(key[-16:]), 0, value) for key, value, _ in records)
        self.reload()

    def _find(
        self, key: Any, earliest_end_ms: Time, latest_start_ms: Time, *, reverse: bool
    ) -> KeyValueIterator[Windowed[K], V]:
        self._check(key)
        found = self.find(key, as_ms(earliest_end_ms), as_ms(latest_start_ms))
        if reverse:
            found.reverse()
        return KeyValueIterator(
            self, (KeyValue(Windowed(key, SessionWindow(start_ms, end_ms)), value) for start_ms, end_ms, value in found)
        )

    def _find_keys(
        self, low: Any, high: Any, earliest_end_ms: Time, latest_start_ms: Time, *, reverse: bool
    ) -> KeyValueIterator[Windowed[K], V]:
        self.check_open()
        first, last = self._bounds(low, high)
        rows = self._scan(as_ms(earliest_end_ms), as_ms(latest_start_ms), reverse=reverse)
        return KeyValueIterator(self, self._with_sessions(iter(rows), first, last))

    def _with_sessions(
        self, rows: Iterator[ScannedSession], first: bytes | None, last: bytes | None
    ) -> Iterator[KeyValue[Windowed[K], V]]:
        decode = self._rows.keys.decode
        for key, start_ms, end_ms, aggregate in rows:
            if (first is None or key >= first) and (last is None or key <= last):
                yield KeyValue(Windowed(decode(key), SessionWindow(start_ms, end_ms)), aggregate)
