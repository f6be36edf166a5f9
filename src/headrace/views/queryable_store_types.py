"""Queryable store types: the read-only interface under which a store is asked for, and the request parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from headrace.arguments.values import text, whole_number
from headrace.state import values_only
from headrace.state.stores.read_only import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
)

F = TypeVar("F", bound=ReadOnlyStore)


def _as_it_is(store: Any) -> Any:
    return store


@dataclass(frozen=True)
class QueryableStoreType(Generic[F]):
    """Type of a queryable store: the kinds of stores that it fits, and the read-only interface that it gives them."""

    name: str
    kinds: frozenset[str]
    """Kinds of stores that can be seen in this way."""
    interface: type[F]
    """The class of the interface; it reads all partitions that are here."""
    seen: Callable[[Any], Any] = _as_it_is
    """Function that returns the view of one partition."""

    def accepts(self, store: Any) -> bool:
        """Tells whether a store, or the builder of one, can be seen in this way."""
        return store.kind in self.kinds

    def create(self, across: Any) -> F:
        """Returns the interface of a store; ``across`` reads its partitions."""
        return self.interface(across)


class QueryableStoreTypes:
    """The types of stores that can be asked for.

    >>> QueryableStoreTypes.key_value_store().kinds == {"key_value", "timestamped_key_value"}
    True
    """

    @staticmethod
    def key_value_store() -> QueryableStoreType[ReadOnlyKeyValueStore]:
        """Values by key; the timestamps of a store that has them are hidden."""
        kinds = frozenset({"key_value", "timestamped_key_value"})
        return QueryableStoreType("key_value_store", kinds, ReadOnlyKeyValueStore, values_only)

    @staticmethod
    def timestamped_key_value_store() -> QueryableStoreType[ReadOnlyKeyValueStore]:
        """Values with timestamps by key."""
        kinds = frozenset({"timestamped_key_value"})
        return QueryableStoreType("timestamped_key_value_store", kinds, ReadOnlyKeyValueStore)

    @staticmethod
    def versioned_key_value_store() -> QueryableStoreType[ReadOnlyVersionedStore]:
        """Histories of values by key; Kafka Streams has no such type."""
        return QueryableStoreType("versioned_key_value_store", frozenset({"versioned"}), ReadOnlyVersionedStore)

    @staticmethod
    def window_store() -> QueryableStoreType[ReadOnlyWindowStore]:
        """Values by key and window; the timestamps of a store that has them are hidden."""
        kinds = frozenset({"window", "timestamped_window"})
        return QueryableStoreType("window_store", kinds, ReadOnlyWindowStore, values_only)

    @staticmethod
    def timestamped_window_store() -> QueryableStoreType[ReadOnlyWindowStore]:
        """Values with timestamps by key and window."""
        return QueryableStoreType("timestamped_window_store", frozenset({"timestamped_window"}), ReadOnlyWindowStore)

    @staticmethod
    def session_store() -> QueryableStoreType[ReadOnlySessionStore]:
        """Values by key and session."""
        return QueryableStoreType("session_store", frozenset({"session"}), ReadOnlySessionStore)


@dataclass(frozen=True)
class StoreQueryParameters(Generic[F]):
    """Parameters of a request for a store: its name, its type, and one partition or all.

    >>> StoreQueryParameters.from_name_and_type("counts", QueryableStoreTypes.key_value_store()).store_name
    'counts'
    """

    store_name: str
    queryable_store_type: QueryableStoreType[F]
    partition: int | None = None
    """The one partition to read; None: all that are here."""
    stale_stores_enabled: bool = False
    """Whether standbys, and partitions that are still catching up, may answer."""

    @classmethod
    def from_name_and_type(cls, name: str, store_type: QueryableStoreType[F]) -> StoreQueryParameters[F]:
        """Asks for a store as a whole."""
        if not isinstance(store_type, QueryableStoreType):
            message = f"store '{name}': its type must be one of QueryableStoreTypes, got {store_type!r}"
            raise TypeError(message)
        return cls(text(name, "the name of a store"), store_type)

    def with_partition(self, partition: int) -> StoreQueryParameters[F]:
        """Asks for one partition of it."""
        return replace(self, partition=whole_number(partition, f"store '{self.store_name}': partition"))

    def enable_stale_stores(self) -> StoreQueryParameters[F]:
        """Takes answers of standbys, too."""
        return replace(self, stale_stores_enabled=True)
