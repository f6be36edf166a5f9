"""Access to the stores of a test driver, by name and kind."""

from __future__ import annotations

from typing import Any

from headrace.arguments.hints import Hinting
from headrace.arguments.values import text, whole_number
from headrace.errors import UnknownStateStoreError, did_you_mean
from headrace.state import (
    KeyValueStore,
    SessionStore,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    VersionedKeyValueStore,
    WindowStore,
    values_only,
)
from headrace.testing.hosting import LocalHost


class StoreGetters(Hinting):
    """The part of the driver that gives access to stores, by name and kind."""

    _host: LocalHost

    def get_all_state_stores(self) -> dict[str, Any]:
        """Returns all stores by name, global ones included."""
        return self._host.all_stores()

    def get_state_store(self, name: str, *, partition: int | None = None) -> Any:
        """Returns a store of any kind by name; where a store has several partitions, say which one."""
        stores = self._host.stores_named(text(name, "the name of a store"))
        if partition is not None:
            whole_number(partition, f"store '{name}': partition")
        if not stores:
            known = sorted(self._host.all_stores())
            message = (
                f"the topology has no store '{name}' (it has: {', '.join(known) or 'none'}){did_you_mean(name, known)}"
            )
            raise UnknownStateStoreError(message)
        if partition is None and len(stores) > 1:
            message = (
                f"the store '{name}' has {len(stores)} partitions; say which one: partition=0 to {len(stores) - 1}"
            )
            raise UnknownStateStoreError(message)
        partition = partition or 0
        if partition not in stores:
            message = f"the store '{name}' has no partition {partition}; it has {sorted(stores)}"
            raise UnknownStateStoreError(message)
        return stores[partition]

    def get_key_value_store(self, name: str, *, partition: int | None = None) -> KeyValueStore[Any, Any]:
        """Returns a key-value store; of one with timestamps, a face without them."""
        store = self._of_kind(name, partition, "key_value", "timestamped_key_value")
        found: KeyValueStore[Any, Any] = values_only(store) if store.kind == "timestamped_key_value" else store
        return found

    def get_timestamped_key_value_store(
        self, name: str, *, partition: int | None = None
    ) -> TimestampedKeyValueStore[Any, Any]:
        """Returns a key-value store whose values carry timestamps, as the tables of the DSL have."""
        store: TimestampedKeyValueStore[Any, Any] = self._of_kind(name, partition, "timestamped_key_value")
        return store

    def get_versioned_key_value_store(
        self, name: str, *, partition: int | None = None
    ) -> VersionedKeyValueStore[Any, Any]:
        """Returns a versioned store."""
        store: VersionedKeyValueStore[Any, Any] = self._of_kind(name, partition, "versioned")
        return store

    def get_window_store(self, name: str, *, partition: int | None = None) -> WindowStore[Any, Any]:
        """Returns a window store; of one with timestamps, a face without them."""
        store = self._of_kind(name, partition, "window", "timestamped_window")
        found: WindowStore[Any, Any] = values_only(store) if store.kind == "timestamped_window" else store
        return found

    def get_timestamped_window_store(
        self, name: str, *, partition: int | None = None
    ) -> TimestampedWindowStore[Any, Any]:
        """Returns a window store whose values carry timestamps, as windowed aggregations have."""
        store: TimestampedWindowStore[Any, Any] = self._of_kind(name, partition, "timestamped_window")
        return store

    def get_session_store(self, name: str, *, partition: int | None = None) -> SessionStore[Any, Any]:
        """Returns a session store."""
        store: SessionStore[Any, Any] = self._of_kind(name, partition, "session")
        return store

    def _of_kind(self, name: str, partition: int | None, *kinds: str) -> Any:
        store = self.get_state_store(name, partition=partition)
        if store.kind not in kinds:
            message = f"the store '{name}' is of kind {store.kind}, not {' or '.join(kinds)}; ask for its own kind"
            raise UnknownStateStoreError(message)
        return store
