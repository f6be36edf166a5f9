"""Versioned key-value stores: each key has a history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeVar

from headrace.arguments.durations import MAX_LONG
from headrace.record import VersionedRecord
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec
from headrace.state.rows.versioned_rows import CLOCK_ROWS, ENTRY_BOUNDS, Versions
from headrace.state.stores.iterators import StoreIterator
from headrace.state.stores.read_only import ReadOnlyVersionedStore
from headrace.state.stores.store import ChangelogRecord, Store, require_key

K = TypeVar("K")
V = TypeVar("V")

VALID_TO_UNDEFINED = -1
"""What ``put`` returns for a version that is the latest of its key."""
PUT_RETURN_CODE_NOT_PUT = -(2**63)
"""What ``put`` returns for a version that is too old to be kept."""


class VersionedKeyValueStore(Store, Generic[K, V]):
    """Values by key and time: a put replaces the value from its timestamp until the next version's.

    Versions older than ``history_retention_ms`` before the newest timestamp seen are not taken; what was replaced
    before then is forgotten.

    >>> from datetime import timedelta
    >>> from headrace.state import MemoryEngine, Stores
    >>> supplier = Stores.persistent_versioned_key_value_store("prices", timedelta(hours=1))
    >>> store = Stores.versioned_key_value_store_builder(supplier).build(MemoryEngine())
    >>> store.put("apple", 2, 1000), store.put("apple", 3, 2000), store.put("apple", 1, 500)
    (-1, -1, 1000)
    >>> store.get("apple"), store.get("apple", as_of_ms=1500).value
    (VersionedRecord(value=3, timestamp_ms=2000, valid_to_ms=None), 2)
    """

    __slots__ = ("_keys", "_values", "_versions", "dirty")

    kind: ClassVar[str] = "versioned"
    unlogged_rows: ClassVar[tuple[bytes, ...]] = CLOCK_ROWS
    entry_bounds: ClassVar[tuple[bytes, bytes] | None] = ENTRY_BOUNDS

    def __init__(
        self, name: str, engine: Engine, keys: Codec, values: Codec, *, persistent: bool, history_retention_ms: int
    ) -> None:
        super().__init__(name, engine, persistent=persistent)
        self._keys = keys
        self._values = values
        # Versions are written to the engine at once.
        self.dirty: dict[Any, Any] = {}
        self._versions = Versions(engine, retention_ms=history_retention_ms)

    @property
    def history_retention_ms(self) -> int:
        """How long replaced versions are kept, and how late a version may come."""
        return self._versions.retention_ms

    @property
    def observed_stream_time_ms(self) -> int:
        """Largest timestamp that was put; -1 before the first."""
        return self._versions.observed_ms

    def put(self, key: K, value: V | None, timestamp_ms: int) -> int:
        """Adds a version, None for a deletion. Returns until when it is valid: the next version's time,
        ``VALID_TO_UNDEFINED`` for the latest, ``PUT_RETURN_CODE_NOT_PUT`` if it is too old and was dropped.
        """
        name = self._name(key)
        data = None if value is None else self._values.encode(value)
        if timestamp_ms < self._versions.horizon_ms:
            self.task.drop()
            return PUT_RETURN_CODE_NOT_PUT
        valid_to_ms = self._versions.put(name, data, timestamp_ms)
        return VALID_TO_UNDEFINED if valid_to_ms is None else valid_to_ms

    def delete(self, key: K, timestamp_ms: int) -> VersionedRecord[V] | None:
        """Ends the version that is valid at a time, from then on; returns it, or None if there was none.

        >>> from datetime import timedelta
        >>> from headrace.state import MemoryEngine, Stores
        >>> supplier = Stores.persistent_versioned_key_value_store("prices", timedelta(hours=1))
        >>> store = Stores.versioned_key_value_store_builder(supplier).build(MemoryEngine())
        >>> _ = store.put("apple", 2, 1000)
        >>> store.delete("apple", 1500).value, store.get("apple"), store.get("apple", 1200).value
        (2, None, 2)
        """
        name = self._name(key)
        if timestamp_ms < self._versions.horizon_ms:
            self.task.drop()
            return None
        existing = self.get(key, timestamp_ms)
        self._versions.put(name, None, timestamp_ms)
        return existing

    def get(self, key: K, as_of_ms: int | None = None) -> VersionedRecord[V] | None:
        """Returns the latest version of a key, or the one that was valid at a time; None if there is none, or if the
        time is before the history, unless the latest version was valid then already.
        """
        name, versions, decode = self._name(key), self._versions, self._values.decode
        latest = versions.latest(name)
        if latest is not None and (as_of_ms is None or latest.timestamp_ms <= as_of_ms):
            return None if latest.data is None else VersionedRecord(decode(latest.data), latest.timestamp_ms)
        if as_of_ms is None or as_of_ms < versions.horizon_ms:
            return None
        version = next(versions.newest_first(name, as_of_ms), None)
        if version is None or version.data is None:
            return None
        from_ms = version.timestamp_ms
        return VersionedRecord(decode(version.data), from_ms, versions.next_ms(name, from_ms))

    def get_pair(self, key: Any) -> tuple[Any, int] | None:
        """Returns the latest (value, timestamp_ms) of a key, or None."""
        latest = self._versions.latest(self._name(key))
        return (
            None if latest is None or latest.data is None else (self._values.decode(latest.data), latest.timestamp_ms)
        )

    def get_pair_as_of(self, key: Any, timestamp_ms: int) -> tuple[Any, int] | None:
        """Returns the (value, timestamp_ms) of a key that was valid at a time, or None."""
        version = self.get(key, timestamp_ms)
        return None if version is None else (version.value, version.timestamp_ms)

    def history(
        self, key: K, from_ms: int | None = None, to_ms: int | None = None, *, reverse: bool = False
    ) -> StoreIterator[VersionedRecord[V]]:
        """Returns the versions of a key that were valid at some time from ``from_ms`` to ``to_ms``, oldest first.

        >>> from datetime import timedelta
        >>> from headrace.state import MemoryEngine, Stores
        >>> supplier = Stores.persistent_versioned_key_value_store("prices", timedelta(hours=1))
        >>> store = Stores.versioned_key_value_store_builder(supplier).build(MemoryEngine())
        >>> _ = store.put("apple", 2, 1000), store.put("apple", 3, 2000)
        >>> [version.value for version in store.history("apple", to_ms=1500)]
        [2]
        """
        name = self._name(key)
        start_ms, last_ms = 0 if from_ms is None else from_ms, MAX_LONG if to_ms is None else to_ms
        found, valid_to_ms = [], None
        expired = last_ms < self._versions.horizon_ms
        for valid_from_ms, data in self._versions.newest_first(name):
            if valid_to_ms is not None and (valid_to_ms <= start_ms or expired):
                break
            if valid_from_ms <= last_ms and data is not None:
                found.append(VersionedRecord(self._values.decode(data), valid_from_ms, valid_to_ms))
            valid_to_ms = valid_from_ms
        return StoreIterator(self, iter(found if reverse else found[::-1]))

    def read_only(self) -> ReadOnlyVersionedStore:
        return ReadOnlyVersionedStore(self)

    def flush_writes(self) -> None:
        self._versions.save()

    def reload(self) -> None:
        self._versions.reload()

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        return self._versions.changelog_records(changes)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        versions = self._versions
        # Not the time that the store has seen in the end: by that, the only version of a key may be older than all
        # history, and stays all the same.
        restored_ms = versions.restored_ms
        for key, value, time in records:
            time_ms = -1 if time is None else time
            # Kafka Streams logs what its store has refused as too old, too, and skips it here.
            if time_ms >= restored_ms - versions.retention_ms:
                restored_ms = max(restored_ms, time_ms)
                versions.put(versions.name_of(key), value, time_ms)
        versions.restored_ms = restored_ms
        versions.save()
        versions.reload()

    def _name(self, key: Any) -> bytes:
        self.check_open()
        require_key(key, self)
        return self._versions.name_of(self._keys.encode(key))
