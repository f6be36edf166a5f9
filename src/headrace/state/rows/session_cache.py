"""The record cache of a session store."""

from __future__ import annotations

from typing import Any

from headrace.state.rows.cache_budget import CacheBudget, entry_size
from headrace.state.rows.row_buffer import MISSING
from headrace.state.rows.session_rows import ScannedSession, SessionRow, SessionRows
from headrace.state.stores.store import LATEST, HeaderPairs, Origin, Store
from headrace.windows import SessionWindow, Windowed

# Headers, topic and partition, and offset of the record that made a change
Context = tuple[HeaderPairs, Origin, int]


class SessionCache:
    """Holds changes back above the rows of a session store; see `WindowCache` for what it does with expired rows."""

    __slots__ = ("_budget", "_dirty_bytes", "_entries", "_held_bytes", "_store", "below", "dirty")

    def __init__(self, store: Store, below: SessionRows, budget: CacheBudget) -> None:
        self.below = below
        self._store = store
        self._budget = budget
        # By key, by (end, start): the aggregate or its bytes, None for a removed session.
        self._entries: dict[Any, dict[tuple[int, int], Any]] = {}
        # By (name, end, start), in the order of the last update
        self.dirty: dict[Any, Context] = {}
        self._dirty_bytes = 0
        self._held_bytes = 0

    def reload(self) -> None:
        self._entries.clear()
        self.dirty.clear()
        self._budget.give_back(self._dirty_bytes)
        self._dirty_bytes = self._held_bytes = 0

    def get(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """Returns the aggregate of a session, or None."""
        keys, values = self.below.keys, self.below.values
        row = self._entries.get(key if keys.keep else keys.encode(key), {}).get((end_ms, start_ms), MISSING)
        if row is MISSING:
            return self.below.get(key, start_ms, end_ms)
        return row if row is None or values.keep else values.decode(row)

    def put(self, key: Any, start_ms: int, end_ms: int, aggregate: Any, headers: HeaderPairs) -> None:
        """Sets the aggregate of a session; None removes it."""
        keys, values, task = self.below.keys, self.below.values, self._store.task
        name = key if keys.keep else keys.encode(key)
        row = aggregate if aggregate is None or values.keep else values.encode(aggregate)
        rows = self._entries.get(name)
        if rows is None:
            rows = self._entries[name] = {}
        rows[end_ms, start_ms] = row
        slot = (name, end_ms, start_ms)
        first = self.dirty.pop(slot, None) is None
        self.dirty[slot] = (headers, task.origin, task.offset)
        if first:
            size = entry_size(name, row)
            self._dirty_bytes += size
            self._held_bytes += size
            if self._budget.take(size):
                self.flush()

    def find(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[SessionRow]:
        """Returns the sessions of a key within the bounds, by end, then start."""
        found = self.below.find(key, earliest_end_ms, latest_start_ms)
        keys, values = self.below.keys, self.below.values
        entries = self._entries.get(key if keys.keep else keys.encode(key))
        if not entries:
            return found
        rows = {(end_ms, start_ms): aggregate for start_ms, end_ms, aggregate in found}
        for times, row in entries.items():
            if times[0] >= earliest_end_ms and times[1] <= latest_start_ms:
                if row is None:
                    rows.pop(times, None)
                else:
                    rows[times] = row if values.keep else values.decode(row)
        return [(times[1], times[0], rows[times]) for times in sorted(rows)]

    def scan(self, earliest_end_ms: int, latest_start_ms: int, *, reverse: bool = False) -> list[ScannedSession]:
        """Returns the sessions of all keys within the bounds, by segment of the end, key, end and start."""
        keys, values, segment = self.below.keys, self.below.values, self.below.segments.segment
        rows = {(row[0], row[2], row[1]): row[3] for row in self.below.scan(earliest_end_ms, latest_start_ms)}
        for name, sessions in self._entries.items():
            key = keys.encode(name) if keys.keep else name
            for (end_ms, start_ms), row in sessions.items():
                if end_ms < earliest_end_ms or start_ms > latest_start_ms:
                    continue
                if row is None:
                    rows.pop((key, end_ms, start_ms), None)
                else:
                    rows[key, end_ms, start_ms] = row if values.keep else values.decode(row)
        order = sorted(rows, key=lambda slot: (segment(slot[1]), *slot), reverse=reverse)
        return [(key, start_ms, end_ms, rows[key, end_ms, start_ms]) for key, end_ms, start_ms in order]

    def flush(self) -> None:
        """Lets the changes go, each session once, in the order of their last update."""
        if not self.dirty:
            return
        pending = list(self.dirty.items())
        self.dirty.clear()
        self._budget.give_back(self._dirty_bytes)
        self._dirty_bytes = 0
        # All rows go down before the first is sent on: whoever is told reads the same through the store as before.
        changed = self._let_go(pending)
        if self._held_bytes > self._budget.max_bytes:
            self._entries.clear()
            self._held_bytes = 0
        listener, task = self._store.on_flush, self._store.task
        if listener is None:
            return
        origin, offset = task.origin, task.offset
        try:
            for session, new, old, (headers, task.origin, task.offset) in changed:
                listener(session, new, old, session.window.end_ms, headers, LATEST)
        finally:
            task.origin, task.offset = origin, offset

    def _let_go(self, pending: list[tuple[Any, Context]]) -> list[tuple[Windowed[Any], Any, Any, Context]]:
        """Writes changes to the rows below; returns those to send on, with the new value and the old one if wanted."""
        entries, below, keys, values = self._entries, self.below, self.below.keys, self.below.values
        told, send_old = self._store.on_flush is not None, self._store.send_old
        changed = []
        for (name, end_ms, start_ms), context in pending:
            key, row = name if keys.keep else keys.decode(name), entries[name][end_ms, start_ms]
            if row is None:
                del entries[name][end_ms, start_ms]
            new = row if row is None or values.keep else values.decode(row)
            old = below.get(key, start_ms, end_ms) if told and (new is None or send_old) else None
            # What came and went between two flushes is neither written nor told.
            if new is not None or old is not None or not told:
                below.put(key, start_ms, end_ms, new)
                session = Windowed(key, SessionWindow(start_ms, end_ms))
                changed.append((session, new, old if send_old else None, context))
        return changed
