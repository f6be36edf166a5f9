"""Stores as tables: their rows for notebooks and data frames."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from headrace.arguments.durations import MAX_LONG
from headrace.tabular import Row, Tabular

if TYPE_CHECKING:
    from headrace.state.stores.iterators import KeyValueIterator


class TabularStore(Tabular):
    """A store, or a face of one, that can list all its rows.

    >>> from headrace.state import MemoryEngine, Stores
    >>> store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages")).build(MemoryEngine())
    >>> store.put("alice", 30)
    >>> store.to_pandas()
         key  value
    0  alice     30
    """

    __slots__ = ()

    def _all_rows(self) -> KeyValueIterator[Any, Any]:
        rows: KeyValueIterator[Any, Any] = self.all()  # type: ignore[attr-defined]  # the store's own method
        return rows

    def _read_rows(self, count: int | None) -> list[Row]:
        with self._all_rows() as rows:
            return [Row(key, value) for key, value in islice(rows, count)]


class TabularSessions(TabularStore):
    """The same for sessions, which are listed by time."""

    __slots__ = ()

    def _all_rows(self) -> KeyValueIterator[Any, Any]:
        rows: KeyValueIterator[Any, Any] = self.find_sessions_in(0, MAX_LONG)  # type: ignore[attr-defined]  # as above
        return rows
