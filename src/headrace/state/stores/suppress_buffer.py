"""The buffer of ``suppress``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, ClassVar

from headrace.arguments.durations import MAX_LONG
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.buffered_records import Buffered, pack, size_of, unpack
from headrace.state.rows.codec import Codec, pack_timestamp, timestamp_of
from headrace.state.stores.store import ChangelogRecord, HeaderPairs, Store

# (key, new, old, timestamp_ms, headers)
Emit = Callable[[Any, Any, Any, int, HeaderPairs], None]


class SuppressBuffer(Store):
    """Changes of a table that wait to be emitted: one per key, ordered by the time of the first, then by key bytes.

    A later change of a waiting key replaces the value, but keeps the place in the queue.

    >>> from headrace.state import MemoryEngine, suppress_buffer_builder
    >>> buffer = suppress_buffer_builder("wait", None, None).build(MemoryEngine())
    >>> buffer.put(10, "a", 1, None, 10, ())
    >>> buffer.put(20, "a", 2, 1, 20, ())
    >>> buffer.num_records, buffer.min_time_ms
    (1, 10)
    >>> buffer.evict_while(lambda: buffer.min_time_ms <= 15, print)
    a 2 1 20 ()
    1
    """

    __slots__ = ("_entries", "_keys", "_queue", "_values", "dirty", "size_bytes")

    kind: ClassVar[str] = "suppress"
    changelog_headers: ClassVar[HeaderPairs] = (("v", b"\x03"),)
    """Kafka Streams tells the formats of its buffers apart by this header."""

    def __init__(self, name: str, engine: Engine, keys: Codec, values: Codec) -> None:
        super().__init__(name, engine, persistent=False)
        self._keys = keys
        self._values = values
        # Key bytes -> time of the first change, and the last one
        self._entries: dict[bytes, tuple[int, Buffered]] = {}
        self._queue: list[tuple[int, bytes]] = []
        self.dirty: dict[Any, Any] = {}
        self.size_bytes = 0
        """How many bytes are buffered, as Kafka Streams counts them."""
        self.reload()

    @property
    def num_records(self) -> int:
        """How many changes are buffered."""
        return len(self._entries)

    @property
    def min_time_ms(self) -> int:
        """Time of the oldest change; the end of time if there is none."""
        return self._queue[0][0] if self._queue else MAX_LONG

    def put(self, buffer_time_ms: int, key: Any, new: Any, old: Any, timestamp_ms: int, headers: HeaderPairs) -> None:
        """Buffers a change; the time counts only if the key is not waiting already."""
        name, encode = self._keys.encode(key), self._values.encode
        # What a serde does not take must be found before anything is changed.
        new_data, old_data = None if new is None else encode(new), None if old is None else encode(old)
        waiting = self._entries.get(name)
        if waiting is None:
            time_ms, prior = buffer_time_ms, old_data
            heappush(self._queue, (time_ms, name))
        else:
            time_ms, prior = waiting[0], waiting[1].prior
            self.size_bytes -= self._size(name, waiting[1])
        entry = Buffered(timestamp_ms, headers, self.task.origin, self.task.offset, new_data, old_data, prior)
        self._entries[name] = (time_ms, entry)
        self.size_bytes += self._size(name, entry)
        self.dirty[name] = None

    def evict_while(self, predicate: Callable[[], bool], emit: Emit) -> int:
        """Emits changes, the oldest first, as long as there are some and ``predicate()`` holds; returns how many.

        While one is emitted, the task is at the record that made it.
        """
        task, decode, count = self.task, self._values.decode, 0
        origin, offset = task.origin, task.offset
        try:
            while self._queue and predicate():
                name = self._queue[0][1]
                entry = self._entries[name][1]
                task.origin, task.offset = entry.origin, entry.offset
                new = None if entry.new is None else decode(entry.new)
                old = None if entry.old is None else decode(entry.old)
                emit(self._keys.decode(name), new, old, entry.timestamp_ms, entry.headers)
                heappop(self._queue)
                del self._entries[name]
                self.size_bytes -= self._size(name, entry)
                self.dirty[name] = None
                count += 1
        finally:
            task.origin, task.offset = origin, offset
        return count

    def prior_pair(self, key: Any) -> tuple[bool, tuple[Any, int] | None]:
        """Tells whether a key is waiting, and with which (value, -1) the table was seen before it was, if with any."""
        waiting = self._entries.get(self._keys.encode(key))
        if waiting is None:
            return False, None
        prior = waiting[1].prior
        return True, None if prior is None else (self._values.decode(prior), -1)

    def flush_writes(self) -> None:
        for name in self.dirty:
            waiting = self._entries.get(name)
            if waiting is None:
                self.engine.delete(name)
            else:
                self.engine.put(name, pack(waiting[1]) + pack_timestamp(waiting[0]))
        self.dirty.clear()

    def reload(self) -> None:
        self.dirty.clear()
        self._entries.clear()
        for name, data in self.engine.scan():
            entry, end = unpack(data)
            self._entries[name] = (timestamp_of(data[end:]), entry)
        self._queue = sorted((time_ms, name) for name, (time_ms, _) in self._entries.items())
        self.size_bytes = sum(self._size(name, entry) for name, (_, entry) in self._entries.items())

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        return [(key, value, None) for key, value in changes.rows.items()]

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        self.engine.apply(Changes(rows={key: value for key, value, _ in records}))
        self.reload()

    def _size(self, name: bytes, entry: Buffered) -> int:
        return 8 + len(name) + size_of(entry)
