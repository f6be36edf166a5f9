"""The record cache of a window store."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from headrace.durations import MAX_LONG
from headrace.state.base import HeaderPairs, Store, TaskLink
from headrace.state.cache import CacheBudget, entry_size
from headrace.state.codec import Codec, TypeGuard
from headrace.state.suppliers import WindowSupplier
from headrace.state.window_rows import ScannedRow, WindowRow, WindowRows
from headrace.windows import TimeWindow, Window, Windowed


class WindowCache:
    """Holds changes back above the rows of a window store.

    As in Kafka Streams, entries stay after they were let go, and the cache does not look at the retention: a window
    that has expired below is still found here, and whether a change is too old shows when it is let go.
    """

    __slots__ = (
        "_budget",
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
        # By key, by start: (value or its bytes or None if deleted, timestamp, headers, origin, offset, number), where
        # the number tells the order of the updates.
        self.dirty: dict[Any, dict[int, Any]] = {}
        # What was let go: by key, by start, (value or its bytes, timestamp).
        self._held: dict[Any, dict[int, Any]] = {}
        self.next_number = count().__next__
        self._dirty_bytes = 0
        self._held_bytes = 0

    def reload(self) -> None:
        """Forgets all entries."""
        self._held.clear()
        self.dirty.clear()
        self._budget.give_back(self._dirty_bytes)
        self._dirty_bytes = self._held_bytes = 0

    def getter(self) -> Callable[[Any, int], tuple[Any, int] | None]:
        """Returns the store's ``get_pair``."""
        dirty, held, below, keys, values = self.dirty, self._held, self.below.get_pair, self.below.keys, self._values
        encode_key, keep_keys, keep, decode = keys.encode, keys.keep, values.keep, values.decode

        def get_pair(key: Any, start_ms: int) -> tuple[Any, int] | None:
            name = key if keep_keys else encode_key(key)
            rows = dirty.get(name)
            entry = None if rows is None else rows.get(start_ms)
            if entry is None:
                rows = held.get(name)
                entry = None if rows is None else rows.get(start_ms)
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
            rows = dirty.get(key)
            if rows is None or start_ms not in rows:
                first(key, start_ms, entry)
            else:
                rows[start_ms] = entry

        return put_pair

    def _first(self, name: Any, start_ms: int, entry: Any) -> None:
        rows = self.dirty.get(name)
        if rows is None:
            rows = self.dirty[name] = {}
        rows[start_ms] = entry
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
        # The number comes first and no two are equal, so sorting looks at nothing else.
        pending = [(entry[5], entry, name, start) for name, rows in dirty.items() for start, entry in rows.items()]
        pending.sort()
        dirty.clear()
        self._budget.give_back(self._dirty_bytes)
        self._dirty_bytes = 0
        # All rows go down before the first is sent on: whoever is told reads the same through the store as before.
        changed = self._let_go(pending)
        if self._held_bytes > self._budget.max_bytes:
            self._held.clear()
            self._held_bytes = 0
        listener, task = store.on_flush, store.task
        if listener is None:
            return
        window_at: Callable[[int], Window] = store.window_at  # type: ignore[attr-defined]  # it is a window store
        decode_key = None if self.below.keys.keep else self.below.keys.decode
        windows: dict[int, Window] = {}
        origin, offset = task.origin, task.offset
        try:
            for entry, name, start_ms, new, old in changed:
                window = windows.get(start_ms)
                if window is None:
                    window = windows[start_ms] = window_at(start_ms)
                _, timestamp_ms, headers, task.origin, task.offset, _ = entry
                listener(
                    Windowed(name if decode_key is None else decode_key(name), window), new, old, timestamp_ms, headers
                )
        finally:
            task.origin, task.offset = origin, offset

    def _let_go(self, pending: list[tuple[int, Any, Any, int]]) -> list[tuple[Any, Any, int, Any, Any]]:
        """Writes changes to the rows below; returns those to send on, with the new value and the old one if wanted."""
        held, put, get = self._held, self.below.put_pair, self.below.get_pair
        listener, send_old = self._store.on_flush, self._store.send_old
        decode_key = None if self.below.keys.keep else self.below.keys.decode
        decode = None if self._values.keep else self._values.decode
        changed = []
        for _, entry, name, start_ms in pending:
            value, timestamp_ms = entry[0], entry[1]
            key = name if decode_key is None else decode_key(name)
            rows = held.get(name)
            if rows is None:
                rows = held[name] = {}
            if value is None:
                rows.pop(start_ms, None)
                new = None
            else:
                rows[start_ms] = (value, timestamp_ms)
                new = value if decode is None else decode(value)
            old = get(key, start_ms) if listener is not None and (new is None or send_old) else None
            if listener is None or new is not None or old is not None:
                put(key, start_ms, new, timestamp_ms)
                changed.append((entry, name, start_ms, new, old[0] if old is not None and send_old else None))
        return changed

    def _entries(self, name: Any) -> dict[int, Any]:
        """Returns what the cache has of a key, by start: (value, timestamp), or None if it is deleted."""
        entries = dict(self._held.get(name, {}))
        for start_ms, entry in self.dirty.get(name, {}).items():
            entries[start_ms] = None if entry[0] is None else entry[:2]
        if not self._values.keep:
            decode = self._values.decode
            return {start: None if pair is None else (decode(pair[0]), pair[1]) for start, pair in entries.items()}
        return entries

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
        for name in {**self._held, **self.dirty}:
            key = keys.encode(name) if keys.keep else name
            for start_ms, pair in self._entries(name).items():
                if not from_ms <= start_ms <= to_ms:
                    continue
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
