"""Key-value stores whose rows have a timestamp: the stores of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, ClassVar, Generic, TypeVar

from headrace.record import ValueAndTimestamp
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.engines.lru import LruEngine
from headrace.state.rows.cache_budget import CacheBudget, entry_size
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP, Codec, pack_timestamp, pair_codec, timed_rows, timestamp_of
from headrace.state.rows.expiry import ExpiryIndex, index_name
from headrace.state.stores.key_value import KeyValueStore, merge
from headrace.state.stores.store import LATEST, ChangelogRecord, HeaderPairs, TaskLink
from headrace.topics.log import Output

K = TypeVar("K")
V = TypeVar("V")

# value, or its bytes; timestamp; headers, topic and partition, and offset of the record that made the change
CacheEntry = tuple[Any, int, HeaderPairs, Any, int]


class TimestampedKeyValueStore(KeyValueStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """Values with timestamps by key.

    The methods of `KeyValueStore` take and give ``ValueAndTimestamp``. Operators use ``get_pair`` and ``put_pair``,
    which are chosen for the store's serdes when it is made.

    >>> from headrace.state import MemoryEngine, Stores
    >>> supplier = Stores.persistent_timestamped_key_value_store("counts")
    >>> store = Stores.timestamped_key_value_store_builder(supplier).build(MemoryEngine())
    >>> store.put_pair("alice", 1, 10)
    >>> store.get("alice")
    ValueAndTimestamp(value=1, timestamp_ms=10)
    """

    __slots__ = (
        "_budget",
        "_cache_bytes",
        "_index",
        "_objects",
        "_values",
        "_with_timestamp",
        "get_pair",
        "inline",
        "look",
        "put_pair",
        "put_unindexed",
        "time_of",
    )

    kind: ClassVar[str] = "timestamped_key_value"

    get_pair: Callable[[Any], tuple[Any, int] | None]
    """Returns (value, timestamp_ms) of a key, or None."""
    put_pair: Callable[..., None]
    """(key, value, timestamp_ms, headers=()): sets the row of a key; a value of None deletes it."""
    put_unindexed: Callable[..., None]
    """``put_pair`` for whoever takes the key out of the index by time himself."""
    time_of: Callable[[Any], int | None]
    """Returns the timestamp of a key's row, or None; the value is not read."""
    inline: bool
    """Whether ``dirty`` is keyed by key objects and holds value objects, so that an operator may use it directly.

    Its values are (value, timestamp_ms) or None without a cache. With a cache they are (value or None, timestamp_ms,
    headers, origin, offset), the entry updated last at the end; the first entry of a key must come from ``put_pair``.
    Operators write there themselves: a call of the store instead costs 3.5 % of a count (``benchmarks/driver.py``).
    """
    look: Callable[[Any], Any]
    """Returns the entry of a key in ``dirty``, or None."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        keys: Codec,
        values: Codec,
        *,
        persistent: bool,
        with_timestamp: bool = True,
        budget: CacheBudget | None = None,
    ) -> None:
        rows = pair_codec(values, with_timestamp=with_timestamp)
        super().__init__(name, engine, keys, rows, persistent=persistent, values=values)
        self._values = values
        self._with_timestamp = with_timestamp
        self._budget = budget
        self._cache_bytes = 0
        self.cached = budget is not None
        self._objects = keys.keep and values.keep and with_timestamp and not isinstance(engine, LruEngine)
        self.inline = self._objects
        self._index: ExpiryIndex | None = None
        if budget is None:
            self.get_pair = self._rows.get
        else:
            # What is dirty below has been let go already; what the cache holds back is this store's.
            self.dirty = {}
            self.get_pair = self._cached_get()
        self.look = self.dirty.get
        self.time_of = self._time_of()
        self.init(self.task)

    def init(self, task: TaskLink) -> None:
        super().init(task)
        self.put_unindexed = self._cached_put(task) if self.cached else self._put()
        self.put_pair = self.put_unindexed if self._index is None else self._indexed_put(self._index)

    def index_by_time(self, engine: Engine, *, kept: bool) -> ExpiryIndex:
        """Keeps an index of the rows by their timestamps from now on, and returns it.

        ``kept``: what the engine has was kept up to date with all that happened to the rows.
        """
        self._index = ExpiryIndex(index_name(self.name), engine, self._rows.keys, persistent=self.persistent)
        if not kept or engine.count() != self.engine.count():
            self._index.make(self)
        # Whoever wrote to ``dirty`` directly would go past the index.
        self.inline = False
        self.init(self.task)
        return self._index

    def flush_cache(self) -> None:
        if self._budget is None or not self.dirty:
            return
        entries = list(self.dirty.items())
        self.dirty.clear()
        self._budget.give_back(self._cache_bytes)
        self._cache_bytes = 0
        listener, task = self.on_flush, self.task
        origin, offset = task.origin, task.offset
        # All rows go down before the first is sent on: whoever is told reads the same through the store as before.
        rows = self._plain_rows(entries)
        try:
            if rows is None:
                for key, new, old, (_, timestamp_ms, headers, task.origin, task.offset) in self._let_go(entries):
                    if listener is not None:
                        listener(key, new, old, timestamp_ms, headers, LATEST)
                return
            self._rows.dirty.update(rows)
            if listener is not None:
                for key, (new, timestamp_ms, headers, task.origin, task.offset) in entries:
                    listener(key, new, None, timestamp_ms, headers, LATEST)
        finally:
            task.origin, task.offset = origin, offset

    def holds_back(self, key: Any) -> bool:
        """Tells whether the cache has a change of the row that was not let go yet."""
        return (key if self._rows.keys.keep else self._rows.keys.encode(key)) in self.dirty

    def told_pair(self, key: Any) -> tuple[Any, int] | None:
        """Returns the row below the cache, which is the one that was let go last."""
        pair: tuple[Any, int] | None = self._rows.get(key)
        return pair

    def _plain_rows(self, entries: list[tuple[Any, CacheEntry]]) -> dict[Any, tuple[Any, int]] | None:
        """Returns the new rows in the common case, in which nobody needs the old ones; None in all others."""
        if not self._objects or (self.send_old and self.on_flush is not None):
            return None
        rows = {name: entry[:2] for name, entry in entries if entry[0] is not None}
        # A deletion is told only if there was a row.
        return rows if len(rows) == len(entries) else None

    def _let_go(self, entries: list[tuple[Any, CacheEntry]]) -> list[tuple[Any, Any, Any, CacheEntry]]:
        """Writes changes to the rows below; returns those to send on, with the new value and the old one if wanted."""
        below, put, told, send_old = self._rows.get, self._rows.put, self.on_flush is not None, self.send_old
        decode_key = None if self._rows.keys.keep else self._rows.keys.decode
        decode = None if self._values.keep else self._values.decode
        changed = []
        for name, entry in entries:
            new = entry[0]
            key = name if decode_key is None else decode_key(name)
            if new is not None and decode is not None:
                new = decode(new)
            old = below(key) if told and (new is None or send_old) else None
            # What came and went between two flushes is neither written nor told.
            if new is not None or old is not None or not told:
                put(key, None if new is None else (new, entry[1]))
                changed.append((key, new, old[0] if old is not None and send_old else None, entry))
        return changed

    def reload(self) -> None:
        super().reload()
        if self._budget is not None:
            self.dirty.clear()
            self._budget.give_back(self._cache_bytes)
            self._cache_bytes = 0
        if self._index is not None:
            self._index.make(self)

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        if not self._with_timestamp:
            return super().changelog_records(changes)
        return [
            (key, None, None) if row is None else (key, row[8:], timestamp_of(row)) for key, row in changes.rows.items()
        ]

    def changelog_outputs(self, changes: Changes, partition: int, now_ms: int) -> list[Output]:
        if not self._with_timestamp:
            return super().changelog_outputs(changes, partition, now_ms)
        times, values = timed_rows(changes.rows, now_ms)
        return list(zip(repeat(partition), times, changes.rows, values, repeat(())))

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        if not self._with_timestamp:
            super().restore(records)
            return
        rows = (
            (key, None if value is None else pack_timestamp(UNKNOWN_TIMESTAMP if time is None else time) + value, None)
            for key, value, time in records
        )
        super().restore(rows)
        if self._index is not None:
            self._index.make(self)

    def _put(self) -> Callable[..., None]:
        dirty, put, guard = self.dirty, self._rows.put, self._guard_value
        known, with_timestamp = guard.known, self._with_timestamp

        def put_object(key: Any, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            dirty[key] = None if value is None else (value, timestamp_ms)

        def put_other(key: Any, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            put(key, None if value is None else (value, timestamp_ms if with_timestamp else UNKNOWN_TIMESTAMP))

        return put_object if self._objects else put_other

    def _indexed_put(self, index: ExpiryIndex) -> Callable[..., None]:
        put, time_of, move = self.put_unindexed, self.time_of, index.move

        def put_and_move(key: Any, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            old_ms = time_of(key)
            put(key, value, timestamp_ms, headers)
            new_ms = None if value is None else timestamp_ms
            if new_ms != old_ms:
                move(key, old_ms, new_ms)

        return put_and_move

    def _time_of(self) -> Callable[[Any], int | None]:
        if self._rows.rows.keep:
            get_pair = self.get_pair

            def time_of_object(key: Any) -> int | None:
                row = get_pair(key)
                return None if row is None else row[1]

            return time_of_object
        held, rows = (self.dirty if self.cached else {}), self._rows
        dirty, clean, load = rows.dirty, rows.clean, rows.load
        encode_key = None if rows.keys.keep else rows.keys.encode

        def time_of_bytes(key: Any) -> int | None:
            name = key if encode_key is None else encode_key(key)
            entry = held.get(name)
            if entry is not None:
                return None if entry[0] is None else entry[1]
            row = dirty[name] if name in dirty else clean[name] if name in clean else load(name)
            return None if row is None else timestamp_of(row)

        return time_of_bytes

    def _cached_get(self) -> Callable[[Any], tuple[Any, int] | None]:
        dirty, below, encode_key, decode = self.dirty, self._rows.get, self._rows.keys.encode, self._values.decode
        keep_keys, keep_values = self._rows.keys.keep, self._values.keep
        flushed, clean = self._rows.dirty, self._rows.clean

        def get_object(key: Any) -> tuple[Any, int] | None:
            entry = dirty.get(key)
            if entry is None:
                # What is below is looked at in place: most keys are found there.
                pair: tuple[Any, int] | None = clean.get(key)
                return pair if pair is not None and key not in flushed else below(key)
            return None if entry[0] is None else entry[:2]

        def get_other(key: Any) -> tuple[Any, int] | None:
            entry = dirty.get(key if keep_keys else encode_key(key))
            if entry is None:
                pair: tuple[Any, int] | None = below(key)
                return pair
            value = entry[0]
            return None if value is None else (value if keep_values else decode(value), entry[1])

        return get_object if keep_keys and keep_values else get_other

    def _cached_put(self, task: TaskLink) -> Callable[..., None]:
        dirty, admit, guard, encode_key, encode = (
            self.dirty,
            self._admit,
            self._guard_value,
            self._rows.keys.encode,
            self._values.encode,
        )
        known, keep_keys, keep_values = guard.known, self._rows.keys.keep, self._values.keep

        def put_object(key: Any, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            # Out and in again: the order of the entries is that of their last update.
            first = dirty.pop(key, None) is None
            dirty[key] = (value, timestamp_ms, headers, task.origin, task.offset)
            if first:
                admit(key, value)

        def put_other(key: Any, value: Any, timestamp_ms: int, headers: HeaderPairs = ()) -> None:
            if type(value) not in known:
                guard.admit(value)
            name = key if keep_keys else encode_key(key)
            kept = value if keep_values or value is None else encode(value)
            first = dirty.pop(name, None) is None
            dirty[name] = (kept, timestamp_ms, headers, task.origin, task.offset)
            if first:
                admit(name, kept)

        return put_object if keep_keys and keep_values else put_other

    def _admit(self, name: Any, value: Any) -> None:
        budget = self._budget
        assert budget is not None
        size = entry_size(name, value)
        self._cache_bytes += size
        if budget.take(size):
            self.flush_cache()

    def _get_row(self, key: Any) -> Any:
        return self.get_pair(key)

    def _from_row(self, row: Any) -> Any:
        return None if row is None else ValueAndTimestamp(*row)

    def _put_value(self, key: Any, value: Any) -> None:
        if value is None:
            return self.put_pair(key, None, UNKNOWN_TIMESTAMP)
        if not isinstance(value, tuple) or len(value) != 2:
            message = f"store '{self.name}' keeps ValueAndTimestamp(value, timestamp_ms), got {value!r}"
            raise TypeError(message)
        return self.put_pair(key, *value)

    def _scan(self, start: bytes | None, stop: bytes | None, *, reverse: bool) -> Iterator[tuple[bytes, Any]]:
        if self._budget is None:
            return super()._scan(start, stop, reverse=reverse)
        encode_key, keep_keys, get_pair = self._rows.keys.encode, self._rows.keys.keep, self.get_pair
        decode_key = self._rows.keys.decode
        above = []
        for name in self.dirty:
            key = encode_key(name) if keep_keys else name
            if (start is None or key >= start) and (stop is None or key < stop):
                above.append((key, get_pair(name if keep_keys else decode_key(name))))
        above.sort(key=lambda row: row[0], reverse=reverse)
        rows = self.engine.scan(start, stop, reverse=reverse)
        return merge(rows, above, self._rows.rows.decode, reverse=reverse)
