"""Key-value stores."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

from headrace.record import KeyValue
from headrace.serdes import Serde
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine, Row, after_prefix
from headrace.state.engines.lru import LruEngine
from headrace.state.rows.codec import Codec, TypeGuard
from headrace.state.rows.row_buffer import RowBuffer
from headrace.state.stores.iterators import KeyValueIterator
from headrace.state.stores.read_only import ReadOnlyKeyValueStore
from headrace.state.stores.store import ChangelogRecord, Store, require_key
from headrace.state.stores.tabular import TabularStore

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(TabularStore, Store, Generic[K, V]):
    """Values by key. Keys are ordered by their bytes; a value of None is no row.

    >>> from headrace.state import MemoryEngine, Stores
    >>> store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages")).build(MemoryEngine())
    >>> store.put("alice", 30)
    >>> store.get("alice"), store.get("bob")
    (30, None)
    """

    __slots__ = ("_guard_key", "_guard_value", "_rows", "dirty")

    kind: ClassVar[str] = "key_value"

    def __init__(
        self, name: str, engine: Engine, keys: Codec, rows: Codec, *, persistent: bool, values: Codec | None = None
    ) -> None:
        super().__init__(name, engine, persistent=persistent)
        # The order of use decides what an LRU store keeps, so every use has to reach it.
        self._rows = RowBuffer(engine, keys, rows, write_through=isinstance(engine, LruEngine))
        self.dirty = self._rows.dirty
        self._guard_key = TypeGuard(keys)
        self._guard_value = TypeGuard(values or rows)

    def get(self, key: K) -> V | None:
        """Returns the value of a key, or None.

        >>> from headrace.state import MemoryEngine, Stores
        >>> store = Stores.key_value_store_builder(Stores.lru_map("last", 1)).build(MemoryEngine())
        >>> store.put("a", 1)
        >>> store.put("b", 2)
        >>> store.get("a"), store.get("b")
        (None, 2)
        """
        self._check(key)
        value: V | None = self._from_row(self._get_row(key))
        return value

    def put(self, key: K, value: V | None) -> None:
        """Sets the value of a key; None deletes it."""
        self._check(key)
        self._put_value(key, value)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Sets the value of a key that has none; returns the value it had, or None."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Puts each pair of key and value."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Removes a key; returns the value it had, or None."""
        old = self.get(key)
        self._put_value(key, None)
        return old

    def range(self, low: K | None = None, high: K | None = None) -> KeyValueIterator[K, V]:
        """Returns the rows from ``low`` to ``high``, both included, by key bytes; None is an open end.

        >>> from headrace.state import MemoryEngine, Stores
        >>> store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("s")).build(MemoryEngine())
        >>> store.put_all([("a", 1), ("b", 2), ("c", 3)])
        >>> [key for key, _ in store.range("b", None)]
        ['b', 'c']
        """
        return self._range(low, high, reverse=False)

    def reverse_range(self, low: K | None = None, high: K | None = None) -> KeyValueIterator[K, V]:
        """Returns the rows from ``high`` down to ``low``, both included."""
        return self._range(low, high, reverse=True)

    def all(self) -> KeyValueIterator[K, V]:
        """Returns all rows in the order of their key bytes."""
        return self._range(None, None, reverse=False)

    def reverse_all(self) -> KeyValueIterator[K, V]:
        """Returns all rows, the last key first."""
        return self._range(None, None, reverse=True)

    def prefix_scan(self, prefix: Any, serializer: Serde[Any] | Callable[[Any], bytes]) -> KeyValueIterator[K, V]:
        """Returns the rows whose key bytes begin with the bytes that ``serializer`` makes of ``prefix``.

        >>> from headrace.serdes import Serdes
        >>> from headrace.state import MemoryEngine, Stores
        >>> store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("s")).build(MemoryEngine())
        >>> store.put_all([("eu-1", 1), ("eu-2", 2), ("us-1", 3)])
        >>> [key for key, _ in store.prefix_scan("eu-", Serdes.string())]
        ['eu-1', 'eu-2']
        """
        require_key(prefix, self)
        encode = serializer if callable(serializer) else serializer.serializer("", is_key=True)
        start = encode(prefix)
        return self._iterate(start, after_prefix(start), reverse=False)

    def approximate_num_entries(self) -> int:
        """Returns how many rows there are; changes that a cache holds back are not counted."""
        self.check_open()
        self._rows.flush()
        return self.engine.count()

    def read_only(self) -> ReadOnlyKeyValueStore:
        return ReadOnlyKeyValueStore(self)

    def flush_writes(self) -> None:
        self._rows.flush()

    def forget_volatile(self) -> None:
        # The order of use decides which row is evicted next.
        if isinstance(self.engine, LruEngine):
            self.reload()

    def reload(self) -> None:
        self._rows.forget()
        if isinstance(self.engine, LruEngine):
            self.engine.reload()

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        return [(key, value, None) for key, value in changes.rows.items()]

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        self.engine.apply(Changes(rows={key: value for key, value, _ in records}))
        self._rows.forget()

    def _check(self, key: Any) -> None:
        if not self.open:
            self.refuse_closed()
        if type(key) not in self._guard_key.known:
            self._guard_key.admit(key)
        elif key is None:
            require_key(key, self)

    def _get_row(self, key: Any) -> Any:
        return self._rows.get(key)

    def _put_value(self, key: Any, value: Any) -> None:
        if type(value) not in self._guard_value.known:
            self._guard_value.admit(value)
        self._rows.put(key, value)

    def _from_row(self, row: Any) -> Any:
        return row

    def _range(self, low: Any, high: Any, *, reverse: bool) -> KeyValueIterator[K, V]:
        encode = self._rows.keys.encode
        start = None if low is None else encode(low)
        last = None if high is None else encode(high)
        if start is not None and last is not None and start > last:
            logger.warning(
                "store '%s': the range from %r to %r is empty, its first key is above its last one; are they swapped? "
                "(Keys are ordered by their bytes: negative numbers come after positive ones.)",
                self.name,
                low,
                high,
            )
            return KeyValueIterator(self, iter(()))
        return self._iterate(start, None if last is None else last + b"\0", reverse=reverse)

    def _iterate(self, start: bytes | None, stop: bytes | None, *, reverse: bool) -> KeyValueIterator[K, V]:
        self.check_open()
        self._rows.flush()
        decode, from_row = self._rows.keys.decode, self._from_row
        rows = self._scan(start, stop, reverse=reverse)
        return KeyValueIterator(self, (KeyValue(decode(key), from_row(row)) for key, row in rows))

    def _scan(self, start: bytes | None, stop: bytes | None, *, reverse: bool) -> Iterator[tuple[bytes, Any]]:
        decode = self._rows.rows.decode
        return ((key, decode(data)) for key, data in self.engine.scan(start, stop, reverse=reverse))


def merge(
    rows: Iterator[Row], above: list[tuple[bytes, Any]], decode: Callable[[bytes], Any], *, reverse: bool
) -> Iterator[tuple[bytes, Any]]:
    """Lays sorted rows of a cache (None: deleted) above the rows of a scan."""
    cached = iter(above)
    top = next(cached, None)
    for key, data in rows:
        while top is not None and (top[0] > key if reverse else top[0] < key):
            if top[1] is not None:
                yield top
            top = next(cached, None)
        if top is not None and top[0] == key:
            continue
        yield key, decode(data)
    while top is not None:
        if top[1] is not None:
            yield top
        top = next(cached, None)
