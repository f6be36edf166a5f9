"""The buffer in which stream records wait for a table: joins with a grace period."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, ClassVar, NamedTuple

from headrace.arguments.durations import MAX_LONG
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.buffered_records import Buffered, pack, unpack
from headrace.state.rows.codec import Codec
from headrace.state.rows.segments import CLOCK_ROWS, DATA, ENTRY_BOUNDS, Layout, Segments, load_sequence, save_sequence
from headrace.state.stores.store import ChangelogRecord, HeaderPairs, Origin, Store

_TIME_FIRST = b"\0"
_CHANGELOG_HEAD, _SEQUENCE = Struct(">q"), Struct(">I")
_NO_BUFFER_TIME = bytes(8)
_LAST_SEQUENCE = 0x7FFFFFFF


class Waiting(NamedTuple):
    """A record that has waited long enough."""

    key: Any
    value: Any
    timestamp_ms: int
    headers: HeaderPairs
    origin: Origin
    offset: int


class TimeOrderedBuffer(Store):
    """Records that wait until the stream is a grace period further; ordered by timestamp, key bytes and arrival.

    >>> from headrace.state import MemoryEngine, time_ordered_buffer_builder
    >>> buffer = time_ordered_buffer_builder("wait", None, None, grace_ms=10).build(MemoryEngine())
    >>> buffer.put("a", 1, 5, ()), buffer.put("a", 2, 20, ()), buffer.put("a", 3, 9, ())
    (True, True, False)
    >>> [(waiting.value, waiting.timestamp_ms) for waiting in buffer.evict()]
    [(1, 5)]
    """

    __slots__ = ("_grace_ms", "_keys", "_layout", "_min_ms", "_saved", "_segments", "_sequence", "_values", "dirty")

    kind: ClassVar[str] = "buffer"
    unlogged_rows: ClassVar[tuple[bytes, ...]] = CLOCK_ROWS
    entry_bounds: ClassVar[tuple[bytes, bytes] | None] = ENTRY_BOUNDS

    def __init__(
        self, name: str, engine: Engine, keys: Codec, values: Codec, *, persistent: bool, grace_ms: int
    ) -> None:
        super().__init__(name, engine, persistent=persistent)
        self._keys = keys
        self._values = values
        self._grace_ms = grace_ms
        self._layout = Layout(interval_ms=MAX_LONG, time_first=True, numbered=True)
        self._segments = Segments(retention_ms=MAX_LONG, interval_ms=MAX_LONG)
        self.dirty: dict[Any, Any] = {}
        self._sequence = self._min_ms = 0
        self._saved = (-1, 0)
        self.reload()

    @property
    def observed_stream_time_ms(self) -> int:
        """Largest timestamp that was put; -1 before the first."""
        return self._segments.observed_ms

    def put(self, key: Any, value: Any, timestamp_ms: int, headers: HeaderPairs) -> bool:
        """Lets a record wait. False: it is older than the grace period and is not taken."""
        if self._segments.observed_ms - self._grace_ms > timestamp_ms:
            return False
        self._sequence = (self._sequence + 1) & _LAST_SEQUENCE
        entry = Buffered(timestamp_ms, headers, self.task.origin, self.task.offset, self._values.encode(value))
        name = self._layout.data(self._keys.encode(key), timestamp_ms, sequence=self._sequence)
        self.engine.put(name, pack(entry))
        self._segments.observe(timestamp_ms)
        self._min_ms = min(self._min_ms, timestamp_ms)
        return True

    def evict(self) -> Iterator[Waiting]:
        """Returns the records that have waited long enough; one is removed when the next is asked for."""
        last_ms = self._segments.observed_ms - self._grace_ms
        if self._min_ms > last_ms:
            return
        for name, data in self.engine.scan(*self._layout.between(self._min_ms, last_ms)):
            entry = unpack(data)[0]
            assert entry.new is not None, "only records with a value wait"
            key, value = self._keys.decode(self._layout.split(name)[0]), self._values.decode(entry.new)
            yield Waiting(key, value, entry.timestamp_ms, entry.headers, entry.origin, entry.offset)
            self.engine.delete(name)
        self._min_ms = last_ms + 1

    def flush_writes(self) -> None:
        now = (self._segments.observed_ms, self._sequence)
        if now != self._saved:
            self._segments.save(self.engine)
            save_sequence(self.engine, self._sequence)
            self._saved = now

    def reload(self) -> None:
        self._segments.load(self.engine)
        self._sequence = load_sequence(self.engine)
        self._saved = (self._segments.observed_ms, self._sequence)
        self._min_ms = 0

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        records: list[ChangelogRecord] = []
        for name, data in changes.rows.items():
            if name.startswith(DATA):
                key, (timestamp_ms,), sequence = self._layout.split(name)
                changelog_key = _TIME_FIRST + _CHANGELOG_HEAD.pack(timestamp_ms) + key + _SEQUENCE.pack(sequence)
                records.append((changelog_key, None if data is None else data + _NO_BUFFER_TIME, None))
        return records

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for changelog_key, value, _ in records:
            (timestamp_ms,) = _CHANGELOG_HEAD.unpack_from(changelog_key, 1)
            (sequence,) = _SEQUENCE.unpack(changelog_key[-4:])
            name = self._layout.data(changelog_key[9:-4], timestamp_ms, sequence=sequence)
            if value is None:
                self.engine.delete(name)
            else:
                self.engine.put(name, value[: -len(_NO_BUFFER_TIME)])
            self._segments.observe(timestamp_ms)
            self._sequence = max(self._sequence, sequence)
        self.flush_writes()
        self.reload()
