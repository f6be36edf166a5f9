"""Iterators over stores: they close, and they can be asked for the next key."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from headrace.errors import InvalidStateStoreError
from headrace.record import KeyValue
from headrace.state.stores.store import Store

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
_NOTHING: Any = object()


class StoreIterator(Generic[T]):
    """Iterates over rows of a store; use it in a ``with`` statement, or close it.

    It holds nothing open, so forgetting it is harmless; but after ``close()``, or once its store is closed, it raises.

    >>> from headrace.state import MemoryEngine, Stores
    >>> store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("names")).build(MemoryEngine())
    >>> store.put("a", 1)
    >>> with store.all() as rows:
    ...     print(rows.peek_next_key(), list(rows))
    a [KeyValue(key='a', value=1)]
    """

    __slots__ = ("_closed", "_next", "_rows", "_store")

    def __init__(self, store: Store, rows: Iterator[T]) -> None:
        self._store = store
        self._rows = rows
        self._next: T = _NOTHING
        self._closed = False

    def __iter__(self) -> StoreIterator[T]:
        return self

    def __next__(self) -> T:
        self._check()
        if self._next is _NOTHING:
            return next(self._rows)
        row, self._next = self._next, _NOTHING
        return row

    def has_next(self) -> bool:
        """Tells whether there is another row."""
        self._check()
        if self._next is _NOTHING:
            self._next = next(self._rows, _NOTHING)
        return self._next is not _NOTHING

    def close(self) -> None:
        """Ends the iteration. May be called more than once."""
        self._closed = True
        self._rows = iter(())

    def _check(self) -> None:
        if self._closed:
            message = f"this iterator of store '{self._store.name}' is closed; get a new one from the store"
            raise InvalidStateStoreError(message)
        self._store.check_open()

    def _peek(self) -> T:
        if not self.has_next():
            message = f"this iterator of store '{self._store.name}' has no more rows"
            raise StopIteration(message)
        return self._next

    def __enter__(self) -> StoreIterator[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class KeyValueIterator(StoreIterator[KeyValue[K, V]], Generic[K, V]):
    """Iterates over pairs of key and value."""

    __slots__ = ()

    def __enter__(self) -> KeyValueIterator[K, V]:
        return self

    def peek_next_key(self) -> K:
        """Returns the key of the next row without moving on; raises ``StopIteration`` if there is none."""
        return self._peek().key
