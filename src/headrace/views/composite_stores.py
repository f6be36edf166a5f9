"""Store over all its local partitions, read as one, below the interface that is asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol

from headrace.state.stores.iterators import KeyValueIterator, StoreIterator
from headrace.views.execution import Rows
from headrace.views.queryable_store_types import QueryableStoreType
from headrace.views.replica import Reader
from headrace.views.viewed_stores import Part, ViewedStore

# Methods that look for one row: the first partition that has it answers. All others give rows, partition by partition.
_ONE: Mapping[str, frozenset[str]] = {
    "key_value": frozenset({"get", "get_pair"}),
    "timestamped_key_value": frozenset({"get", "get_pair"}),
    "versioned": frozenset({"get"}),
    "window": frozenset({"fetch"}),
    "timestamped_window": frozenset({"fetch"}),
    "session": frozenset({"fetch_session"}),
}
_HISTORY = frozenset({"history"})
_NUMBER = frozenset({"approximate_num_entries"})


class Source(Protocol):
    """Source of readers, with the parts that they may read."""

    def reading_parts(self, name: str, partition: int | None, *, stale: bool) -> tuple[Reader, list[Part]]:
        """Returns a reader, and the parts of a store that are here; raises if there are none."""
        ...

    @property
    def is_closed(self) -> bool: ...


class CompositeStore:
    """Reads the partitions of a store that are here, as one. Handles stay valid while partitions come and go.

    Its methods are those of the store's kind; the read-only interfaces call them by name.
    """

    def __init__(
        self,
        source: Source,
        store: ViewedStore,
        store_type: QueryableStoreType[Any],
        *,
        partition: int | None = None,
        stale: bool = False,
    ) -> None:
        self._source = source
        self._store = store
        self._type = store_type
        self._partition = partition
        self._stale = stale
        self.name = store.name
        self.kind = store.kind
        self.persistent = True

    @property
    def open(self) -> bool:
        return not self._source.is_closed

    @property
    def position(self) -> dict[tuple[str, int], int]:
        reader, _ = self._read()
        try:
            return dict(reader.state.position)
        finally:
            reader.release()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _ONE[self.kind]:
            return lambda *arguments, **options: self._call_first(name, arguments, options)
        if name in _NUMBER:
            return lambda: self._sum(name)
        return lambda *arguments, **options: self._rows(name, arguments, options)

    def _read(self) -> tuple[Reader, list[Part]]:
        return self._source.reading_parts(self.name, self._partition, stale=self._stale)

    def _queryable_store(self, reader: Reader, part: Part) -> Any:
        return self._type.seen(reader.store(part))

    def _call_first(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        reader, parts = self._read()
        try:
            for part in parts:
                found = getattr(self._queryable_store(reader, part), name)(*arguments, **options)
                if found is not None:
                    return found
            return None
        finally:
            reader.release()

    def _sum(self, name: str) -> int:
        reader, parts = self._read()
        try:
            return sum(getattr(self._queryable_store(reader, part), name)() for part in parts)
        finally:
            reader.release()

    def _rows(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> StoreIterator[Any]:
        reader, parts = self._read()
        try:
            # All of them now, so that a wrong argument is told to who has given it.
            several: list[Iterator[Any]] = [
                getattr(self._queryable_store(reader, part), name)(*arguments, **options) for part in parts
            ]
            kind = StoreIterator if name in _HISTORY else KeyValueIterator
            return kind(reader.store(parts[0]), Rows(chain.from_iterable(several), reader.keep()))
        finally:
            reader.release()

    def check_open(self) -> None:
        """Raises if the view is closed."""
        if self._source.is_closed:
            self._read()[0].release()

    def __repr__(self) -> str:
        return f"CompositeStore('{self.name}')"
