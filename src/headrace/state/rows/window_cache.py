"""The record cache of a window store."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from headrace.arguments.durations import MAX_LONG
from headrace.state.rows.cache_budget import CacheBudget, entry_size
from headrace.state.rows.codec import Codec, TypeGuard
from headrace.state.rows.row_buffer import MISSING
from headrace.state.rows.window_rows import NO_ROWS, ScannedRow, WindowRow, WindowRows
from headrace.state.rows.window_starts import StartsByKey
from headrace.state.stores.store import LATEST, HeaderPairs, Store, TaskLink
from headrace.state.stores.suppliers import WindowSupplier
from headrace.windows import TimeWindow, Window, Windowed

# value, timestamp, headers, origin, offset, number
Entry = tuple[Any, int, HeaderPairs, Any, int, int]

_EVER = -1


class WindowCache:
    """Holds changes back above the rows of a window store.

    As in Kafka Streams, entries stay after they were let go, and the cache does not look at the retention: a window
    that has expired below is still found here, and whether a change is too old shows when it is let go.
    """

    __slots__ = (
        "_budget",
        "_by_key",
        "_dirty_bytes",
        "_held",
        "_held_bytes",
        "_store",
        "_values",
        "below",
        "dirty",
        "next_number",
    )

    def __init__(self, store: Store, below: WindowRows, values: Codec, budget: CacheBudget) -> None:
        self.below = below
        self._store = store
        self._values = values
        self._budget = budget
        # By start, by key: (value or its bytes or None if deleted, timestamp, headers, origin, offset, number), where
        # the number tells the order of the updates.
        self.dirty: dict[int, dict[Any, Entry]] = {}
        # What was let go: by start, by key, (value or its bytes, timestamp).
        self._held: dict[int, dict[Any, Any]] = {}
        self._by_key = StartsByKey()
        self.next_number = count().__next__
        self._dirty_bytes = 0
        self._held_bytes = 0

    def reload(self) -> None:
        """Forgets all entries."""
        self._forget_held()
        self.dirty.clear()
        self._budget.give_back(self._dirty_bytes)
        self._dirty_bytes = 0

    def _forget_held(self) -> None:
        self._held.clear()
        self._held_bytes = 0
        self._by_key.forget()

    def getter(self) -> Callable[[Any, int], tuple[Any, int] | None]:
        """Returns the store's ``get_pair``."""
        dirty, held, below, keys, values = self.dirty, self._held, self.below.get_pair, self.below.keys, self._values
        encode_key, keep_keys, keep, decode = keys.encode, keys.keep, values.keep, values.decode

        def get_pair(key: Any, start_ms: int) -> tuple[Any, int] | None:
            name = key if keep_keys else encode_key(key)
            rows = dirty.get(start_ms)
            entry = None if rows is None else rows.get(name)
            if entry is None:
                rows = held.get(start_ms)
                entry = None if rows is None else rows.get(name)
                if entry is None:
                    return below(key, start_ms)
            value = entry[0]
            return None if value is None else (value if keep else decode(value), entry[1])

        return get_pair

    def putter(self, task: TaskLink, guard: TypeGuard) -> Callable[..., None]:
        """Returns the store's ``put_pair``."""
        dirty, first, known, number = self.dirty, self._first, guard.known, self.next_number
        keys, values = self.below.keys, self._values
        encode_key, keep_keys, keep, encode = keys.encode, keys.keep, values.keep, values.encode

        def put_pair(key: Any, start_ms: int, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            if not keep_keys:
                key = encode_key(key)
            kept = value if keep or value is None else encode(value)
            entry = (kept, timestamp_ms, headers, task.origin, task.offset, number())
            rows = dirty.get(start_ms)
            if rows is None or key not in rows:
                first(key, start_ms, entry)
            else:
                rows[key] = entry

        return put_pair

    def _first(self, name: Any, start_ms: int, entry: Entry) -> None:
        rows = self.dirty.get(start_ms)
        if rows is None:
            rows = self.dirty[start_ms] = {}
        rows[name] = entry
        if self._by_key.is_kept:
            self._by_key.add(name, start_ms)
        size = entry_size(name, entry[0])
        self._dirty_bytes += size
        self._held_bytes += size
        if self._budget.take(size):
            self.flush()

    def flush(self) -> None:
        """Lets the changes go, each key and window once, in the order of their last update."""
        dirty, store = self.dirty, self._store
        if not dirty:
            return
        windows = dirty.copy()
        dirty.clear()
        self._budget.give_back(self._dirty_bytes)
        self._dirty_bytes = 0
        listener, task = store.on_flush, store.task
        # All rows go down before the first is sent on: whoever is told reads the same through the store as before.
        is_plain = self._let_plain_go(windows)
        # The number comes first and no two are equal, so sorting looks at nothing else.
        pending = [(entry[5], entry, name, start) for start, rows in windows.items() for name, entry in rows.items()]
        pending.sort()
        changed = None if is_plain else self._let_go(pending)
        if self._held_bytes > self._budget.max_bytes:
            self._forget_held()
        if listener is None:
            return
        window_at: Callable[[int], Window] = store.window_at  # type: ignore[attr-defined]  # it is a window store
        spans = {start_ms: window_at(start_ms) for start_ms in windows}
        decode_key = None if self.below.keys.keep else self.below.keys.decode
        origin, offset = task.origin, task.offset
        try:
            if changed is None:
                for _, (new, timestamp_ms, headers, task.origin, task.offset, _), key, start_ms in pending:
                    listener(Windowed(key, spans[start_ms]), new, None, timestamp_ms, headers, LATEST)
                return
            for entry, name, start_ms, new, old in changed:
                _, timestamp_ms, headers, task.origin, task.offset, _ = entry
                key = name if decode_key is None else decode_key(name)
                listener(Windowed(key, spans[start_ms]), new, old, timestamp_ms, headers, LATEST)
        finally:
            task.origin, task.offset = origin, offset

    def _let_plain_go(self, windows: dict[int, dict[Any, Entry]]) -> bool:
        """Writes changes to the rows below in the common case: all are taken, and nobody needs to look at old rows."""
        if not (self.below.keys.keep and self._values.keep) or (
            self._store.on_flush is not None and self._store.send_old
        ):
            return False
        rows = {
            start_ms: {name: entry[:2] for name, entry in entries.items() if entry[0] is not None}
            for start_ms, entries in windows.items()
        }
        if any(len(rows[start_ms]) < len(entries) for start_ms, entries in windows.items()):
            return False
        copies = {start_ms: each.copy() for start_ms, each in rows.items()}
        if not self.below.put_all(rows):
            return False
        for start_ms, each in copies.items():
            held = self._held.get(start_ms)
            if held is None:
                self._held[start_ms] = each
            else:
                held.update(each)
        return True

    def _let_go(self, pending: list[tuple[int, Entry, Any, int]]) -> list[tuple[Entry, Any, int, Any, Any]]:
        """Writes changes to the rows below; returns those to send on, with the new value and the old one if wanted."""
        held, put, get = self._held, self.below.put_pair, self.below.get_pair
        listener, send_old = self._store.on_flush, self._store.send_old
        decode_key = None if self.below.keys.keep else self.below.keys.decode
        decode = None if self._values.keep else self._values.decode
        changed = []
        for _, entry, name, start_ms in pending:
            value, timestamp_ms = entry[0], entry[1]
            key = name if decode_key is None else decode_key(name)
            rows = held.get(start_ms)
            if rows is None:
                rows = held[start_ms] = {}
            if value is None:
                rows.pop(name, None)
                new = None
            else:
                rows[name] = (value, timestamp_ms)
                new = value if decode is None else decode(value)
            old = get(key, start_ms) if listener is not None and (new is None or send_old) else None
            if listener is None or new is not None or old is not None:
                put(key, start_ms, new, timestamp_ms)
                changed.append((entry, name, start_ms, new, old[0] if old is not None and send_old else None))
        return changed

    def _entries(self, name: Any) -> dict[int, Any]:
        """Returns what the cache has of a key, by start: (value, timestamp), or None if it is deleted."""
        if not self._by_key.is_kept:
            self._by_key.collect(self._held, self.dirty)
        entries: dict[int, Any] = {}
        for start_ms in self._by_key.starts(name, _EVER):
            pair = self._entry(name, start_ms)
            if pair is not MISSING:
                entries[start_ms] = pair
        return entries

    def _entry(self, name: Any, start_ms: int) -> Any:
        """Returns (value, timestamp), None if the row is deleted, MISSING if the cache does not know it."""
        entry = self.dirty.get(start_ms, NO_ROWS).get(name)
        if entry is None:
            entry = self._held.get(start_ms, NO_ROWS).get(name, MISSING)
            if entry is MISSING:
                return MISSING
        elif entry[0] is None:
            return None
        return entry[:2] if self._values.keep else (self._values.decode(entry[0]), entry[1])

    def fetch_pairs(self, key: Any, from_ms: int, to_ms: int, reverse: bool = False) -> list[WindowRow]:  # noqa: FBT001, FBT002
        """Returns (start, value, timestamp) of a key's windows that start from ``from_ms`` to ``to_ms``."""
        found = self.below.fetch_pairs(key, from_ms, to_ms, reverse)
        entries = self._entries(key if self.below.keys.keep else self.below.keys.encode(key))
        if not entries:
            return found
        rows = {row[0]: row for row in found}
        for start_ms, pair in entries.items():
            if from_ms <= start_ms <= to_ms:
                if pair is None:
                    rows.pop(start_ms, None)
                else:
                    rows[start_ms] = (start_ms, *pair)
        return [rows[start_ms] for start_ms in sorted(rows, reverse=reverse)]

    def scan(self, from_ms: int, to_ms: int, *, reverse: bool = False, by_key: bool = False) -> list[ScannedRow]:
        """Returns the rows of all keys, in the order in which they lie below."""
        rows = {(key, start_ms): pair for key, start_ms, pair in self.below.scan(from_ms, to_ms, by_key=by_key)}
        keys = self.below.keys
        for start_ms in {**self._held, **self.dirty}:
            if not from_ms <= start_ms <= to_ms:
                continue
            for name in {**self._held.get(start_ms, NO_ROWS), **self.dirty.get(start_ms, NO_ROWS)}:
                key, pair = keys.encode(name) if keys.keep else name, self._entry(name, start_ms)
                if pair is None:
                    rows.pop((key, start_ms), None)
                else:
                    rows[key, start_ms] = pair
        interval_ms = self.below.segments.interval_ms

        def by_time(slot: tuple[bytes, int]) -> Any:
            return slot[1], slot[0]

        def by_segment(slot: tuple[bytes, int]) -> Any:
            return slot[1] // interval_ms, slot[0], slot[1]

        order = by_time if self.below.layout.time_first and not by_key else by_segment
        return [(*slot, rows[slot]) for slot in sorted(rows, key=order, reverse=reverse)]


def windows_of(supplier: WindowSupplier) -> Callable[[int], Window]:
    """Returns what makes the window that starts at a time; it ends at the end of time at the latest.

    >>> windows_of(WindowSupplier("visits", False, 20, 10, 60_000))(5)
    TimeWindow(start_ms=5, end_ms=15)
    """
    if supplier.windows is not None:
        return supplier.windows.window_at
    size_ms = supplier.window_size_ms
    return lambda start_ms: TimeWindow(start_ms, min(start_ms + size_ms, MAX_LONG))
