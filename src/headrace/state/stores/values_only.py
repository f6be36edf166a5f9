"""Interfaces of timestamped stores that hide the timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.record import KeyValue, ValueAndTimestamp
from headrace.serdes import Serde
from headrace.state.stores.iterators import KeyValueIterator
from headrace.state.stores.read_only import LIFE_CYCLE, ReadOnlyKeyValueStore, ReadOnlyWindowStore
from headrace.state.stores.times import Time

_UNKNOWN_TIMESTAMP = -1


class ValuesOnlyKeyValueStore(ReadOnlyKeyValueStore):
    """A timestamped store as a plain one: reads hide the timestamps, writes have none (-1)."""

    __slots__ = ()

    _refused = LIFE_CYCLE

    def get(self, key: Any) -> Any:
        return _value(self._store.get(key))

    def put(self, key: Any, value: Any) -> None:
        self._store.put(key, _pair(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        return _value(self._store.put_if_absent(key, _pair(value)))

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        return _value(self._store.delete(key))

    def range(self, low: Any = None, high: Any = None) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.range(low, high))

    def reverse_range(self, low: Any = None, high: Any = None) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.reverse_range(low, high))

    def all(self) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.all())

    def reverse_all(self) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.reverse_all())

    def prefix_scan(self, prefix: Any, serializer: Serde[Any] | Callable[[Any], bytes]) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.prefix_scan(prefix, serializer))

    def _values(self, rows: KeyValueIterator[Any, Any]) -> KeyValueIterator[Any, Any]:
        return KeyValueIterator(self._store, _values(rows))


class ValuesOnlyWindowStore(ReadOnlyWindowStore):
    """A timestamped window store as a plain one: reads hide the timestamps, writes have none (-1)."""

    __slots__ = ()

    _refused = LIFE_CYCLE

    def put(self, key: Any, value: Any, window_start_ms: int) -> None:
        self._store.put(key, _pair(value), window_start_ms)

    def fetch(self, key: Any, start_ms: Time) -> Any:
        return _value(self._store.fetch(key, start_ms))

    def fetch_range(self, key: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.fetch_range(key, from_ms, to_ms))

    def backward_fetch_range(self, key: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.backward_fetch_range(key, from_ms, to_ms))

    def fetch_keys(self, low: Any, high: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.fetch_keys(low, high, from_ms, to_ms))

    def backward_fetch_keys(self, low: Any, high: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.backward_fetch_keys(low, high, from_ms, to_ms))

    def fetch_all(self, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.fetch_all(from_ms, to_ms))

    def backward_fetch_all(self, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.backward_fetch_all(from_ms, to_ms))

    def all(self) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.all())

    def backward_all(self) -> KeyValueIterator[Any, Any]:
        return self._values(self._store.backward_all())

    def _values(self, rows: KeyValueIterator[Any, Any]) -> KeyValueIterator[Any, Any]:
        return KeyValueIterator(self._store, _values(rows))


def values_only(store: Any) -> Any:
    """Returns a timestamped store as a plain one; any other store as it is.

    >>> from headrace.state import MemoryEngine, Stores
    >>> supplier = Stores.in_memory_key_value_store("counts")
    >>> store = Stores.timestamped_key_value_store_builder(supplier).build(MemoryEngine())
    >>> store.put_pair("a", 1, 10)
    >>> values_only(store).get("a")
    1
    """
    if store.kind == "timestamped_key_value":
        return ValuesOnlyKeyValueStore(store)
    if store.kind == "timestamped_window":
        return ValuesOnlyWindowStore(store)
    return store


def _value(pair: Any) -> Any:
    return None if pair is None else pair[0]


def _pair(value: Any) -> ValueAndTimestamp[Any] | None:
    return None if value is None else ValueAndTimestamp(value, _UNKNOWN_TIMESTAMP)


def _values(rows: Iterator[KeyValue[Any, Any]]) -> Iterator[KeyValue[Any, Any]]:
    return (KeyValue(key, pair[0]) for key, pair in rows)
