"""Expiry of rows: the points at which a task deletes those whose time to live is over.

By stream time that is before each record, after it has moved the clock: what happens depends on the records alone, not
on where batches end. By the wall clock it is where wall-clock punctuations are called. Rows go in the order of their
deadlines. Few go at once, so that a long list of rows that are due costs no batch much: see ``Expiry.advance``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import SerializationError
from headrace.operators.aggregate_rows import Save
from headrace.runtime.punctuation import NEVER
from headrace.state.rows.expiry import ExpiryIndex, TimeToLive

if TYPE_CHECKING:
    from headrace.runtime.task_state import TaskState

AT_ONCE = 500
"""Rows of a store that may go at one tick of the wall clock, or before one record."""


class Expiry:
    """The rows of one store that are over, oldest first."""

    __slots__ = ("_allowed", "_get", "_index", "_save", "_send_old", "_state", "_time_of", "_ttl_ms", "node", "now_ms")

    def __init__(self, store: Any, index: ExpiryIndex, ttl: TimeToLive, state: TaskState) -> None:
        self._index = index
        self._get: Callable[[Any], tuple[Any, int] | None] = store.get_pair
        self._time_of: Callable[[Any], int | None] = store.time_of
        self._save: Save = _deleter(store)
        self._send_old = False
        self._state = state
        self._ttl_ms = ttl.duration_ms
        self._allowed = AT_ONCE
        self.node: str = store.name
        """Who sends deletions on; the store itself as long as it belongs to no table."""
        self.now_ms = -1
        """The clock, as it was when rows went last."""

    def owned_by(self, node: str, save: Save, *, send_old: bool) -> None:
        """Lets a table delete its rows itself, so that its children hear of it."""
        self.node, self._save, self._send_old = node, save, send_old

    def snapshot(self) -> tuple[int, int, int]:
        """Returns what decides which rows go next: the clock, how many may, and how many have come."""
        return self.now_ms, self._allowed, self._index.gained

    def resume(self, snapshot: tuple[int, int, int]) -> None:
        """Goes on from there."""
        self.now_ms, self._allowed, self._index.gained = snapshot

    @property
    def next_ms(self) -> int:
        """No row is over before this time."""
        return self._index.oldest_ms + self._ttl_ms

    def deadline_ms(self) -> int:
        """Returns when the oldest row is over."""
        self._index.first()
        return self.next_ms

    def advance(self, now_ms: int) -> bool:
        """Moves stream time; returns whether rows may be due.

        Five hundred may go, and then as many as others come, and one more for every millisecond: a store keeps up with
        any load, and a jump of time makes no batch long.
        """
        index = self._index
        allowed = self._allowed + index.gained + now_ms - self.now_ms
        self._allowed, self.now_ms, index.gained = allowed if allowed < AT_ONCE else AT_ONCE, now_ms, 0
        return index.oldest_ms + self._ttl_ms <= now_ms and allowed > 0

    def tick(self, now_ms: int) -> bool:
        """Moves the wall clock; returns whether rows may be due."""
        self._allowed, self.now_ms = AT_ONCE, now_ms
        return self.next_ms <= now_ms

    def delete_first(self) -> bool:
        """Deletes the oldest row; False if it is not over or as many have gone as may."""
        if self._allowed <= 0:
            return False
        first = self._index.first()
        if first is None or first[0] + self._ttl_ms > self.now_ms:
            return False
        timestamp_ms, key = first
        self._allowed -= 1
        found_ms = self._time_of(key)
        self._index.remove_first()
        if found_ms == timestamp_ms:
            self._delete(key, timestamp_ms)
        elif found_ms is not None:
            # An index that came from elsewhere than its store.
            self._index.move(key, None, found_ms)
        return True

    def settle(self, key: Any) -> None:
        """Deletes the row of a key that is used now, if it is over and has not had its turn yet."""
        if self._index.oldest_ms + self._ttl_ms > self.now_ms or key is None:
            return
        try:
            found_ms = self._time_of(key)
        except SerializationError:
            # Whoever uses the key says so.
            return
        if found_ms is not None and found_ms + self._ttl_ms <= self.now_ms:
            self._index.move(key, found_ms, None)
            with_no_record(self._state, lambda: self._delete(key, found_ms))

    def _delete(self, key: Any, timestamp_ms: int) -> None:
        row = self._get(key) if self._send_old else None
        deadline_ms = timestamp_ms + self._ttl_ms
        self._save(key, None, None if row is None else row[0], deadline_ms, deadline_ms, ())
        self._state.expired += 1
        self._state.count_at("expired", self.node)


def _deleter(store: Any) -> Save:
    put = store.put_unindexed
    return lambda key, new, old, newest_ms, timestamp_ms, headers: put(key, None, newest_ms)


class Expiries:
    """The stores of a task with a time to live, by their clocks."""

    __slots__ = ("_by_stream_time", "_by_wall_clock", "_remembered", "_state", "by_store", "follow_stream_time")

    def __init__(self, state: TaskState, remembered: Mapping[str, tuple[int, int, int]]) -> None:
        self._state = state
        self._remembered = remembered
        self._by_stream_time: list[Expiry] = []
        self._by_wall_clock: list[Expiry] = []
        self.by_store: dict[str, Expiry] = {}
        self.follow_stream_time = False
        """Whether there is something to do before each record."""

    def was_kept(self, store: str) -> bool:
        """Returns whether the task's last incarnation had this store's index, too."""
        return store in self._remembered

    def add(self, store: Any, index: ExpiryIndex, ttl: TimeToLive) -> None:
        """Watches over a store."""
        expiry = self.by_store[store.name] = Expiry(store, index, ttl, self._state)
        if store.name in self._remembered:
            expiry.resume(self._remembered[store.name])
        (self._by_stream_time if ttl.clock == "stream_time" else self._by_wall_clock).append(expiry)
        self.follow_stream_time = bool(self._by_stream_time)

    def before_record(self, stream_time_ms: int) -> None:
        """Deletes rows that are over by stream time, as many as may go now.

        How many that is depends on the rows that have come, so none may wait with the records of a batch.
        """
        self._state.run_waiting()
        due = [expiry for expiry in self._by_stream_time if expiry.advance(stream_time_ms)]
        if due:
            self._delete(due)

    def tick(self, now_ms: int) -> bool:
        """Deletes rows that are over by the wall clock, as many as may go now; returns whether there were some."""
        due = [expiry for expiry in self._by_wall_clock if expiry.tick(now_ms)]
        if due:
            self._delete(due)
            self._state.run_waiting()
        return bool(due)

    @property
    def next_wall_clock_ms(self) -> int:
        """When the next row is over by the wall clock; in the past if some are left."""
        return min((expiry.next_ms for expiry in self._by_wall_clock), default=NEVER)

    def _delete(self, due: list[Expiry]) -> None:
        with_no_record(self._state, lambda: _delete_in_order(due))

    def snapshot(self) -> dict[str, tuple[int, int, int]]:
        """Returns what decides which rows go next, by store."""
        return {name: expiry.snapshot() for name, expiry in self.by_store.items()}


def _delete_in_order(due: list[Expiry]) -> None:
    while len(due) > 1:
        # At equal times the store that was made first.
        first = min(due, key=Expiry.deadline_ms)
        if not first.delete_first():
            due.remove(first)
    while due[0].delete_first():
        pass


def with_no_record(state: TaskState, action: Callable[[], None]) -> None:
    """Calls something during which there is no record at hand."""
    at_hand = state.origin, state.offset
    state.origin, state.offset = None, -1
    try:
        action()
    finally:
        state.origin, state.offset = at_hand
