"""Global tables: a whole topic on every task, for lookups by any key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from headrace.dsl import hints
from headrace.dsl.handle import Handle

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GlobalKTable(Handle[K, V]):
    """A table of which every task has all rows, made by `StreamsBuilder.global_table`.

    Streams join it by any key they can compute, without being repartitioned.
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.GLOBAL_TABLE

    _store: str
    _queryable: bool

    @property
    def queryable_store_name(self) -> str | None:
        """Name of the store with its rows, or None if it has none that can be queried.

        >>> from headrace import Materialized, StreamsBuilder
        >>> StreamsBuilder().global_table("users", materialized=Materialized("users-store")).queryable_store_name
        'users-store'
        """
        return self._store if self._queryable else None
