"""Store suppliers: kind, name and retention of the stores that a topology asks for, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from headrace.errors import TopologyError, describe_value
from headrace.state.stores.custom import StateStore, StateStoreContext
from headrace.windows import Windows

DiskEngine: TypeAlias = Literal["lmdb", "rocksdb"]
"""The engines that keep stores on disk."""
_DISK_ENGINES: Mapping[str, DiskEngine] = {"lmdb": "lmdb", "rocksdb": "rocksdb", "rocksDB": "rocksdb"}


@dataclass(frozen=True, slots=True)
class StoreSupplier:
    """Names a store and says how it keeps its rows. `Stores` makes them."""

    name: str
    """Name of the store; its changelog topic is named after it."""
    disk_engine: DiskEngine | None = field(default=None, kw_only=True)
    """The engine of a store on disk; None: the application's."""

    kind: ClassVar[str] = ""

    @property
    def retention_ms_or_none(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class KeyValueSupplier(StoreSupplier):
    """A key-value store."""

    persistent: bool = False
    """Whether it is kept on disk, where the host has a disk."""
    timestamped: bool = False
    """Whether its rows have room for a timestamp on disk; a store in memory always has."""
    max_entries: int | None = None
    """How many rows it keeps, those used last; None: all."""

    kind: ClassVar[str] = "key_value"

    @property
    def keeps_timestamps(self) -> bool:
        """Whether a timestamped store can be built on it without losing the timestamps."""
        return self.timestamped or not self.persistent


@dataclass(frozen=True, slots=True)
class VersionedSupplier(StoreSupplier):
    """A versioned key-value store."""

    history_retention_ms: int
    """How long replaced versions are kept, and how late a version may come."""
    segment_interval_ms: int
    """Kafka Streams' unit of deletion. Accepted so that code can be moved; it changes nothing here."""
    persistent: bool = True
    """Whether it is kept on disk, where the host has a disk."""

    kind: ClassVar[str] = "versioned"


@dataclass(frozen=True, slots=True)
class WindowSupplier(StoreSupplier):
    """A window store."""

    persistent: bool
    """Whether it is kept on disk, where the host has a disk."""
    retention_ms: int
    """How long a window can be found after a later one has started."""
    window_size_ms: int
    """Length of a window."""
    segment_interval_ms: int
    """Length of the segments in which windows expire."""
    retain_duplicates: bool = False
    """Whether a key can have several values in a window."""
    timestamped: bool = False
    """Whether its rows have room for a timestamp on disk; a store in memory always has."""
    time_index: bool = False
    """Whether rows lie in the order of time, for windows that emit when they close."""
    windows: Windows | None = None
    """Windows of one's own, which know where each of them ends; None: all have the same length."""

    kind: ClassVar[str] = "window"

    @property
    def keeps_timestamps(self) -> bool:
        """Whether a timestamped store can be built on it without losing the timestamps."""
        return self.timestamped or not self.persistent

    @property
    def retention_ms_or_none(self) -> int | None:
        return self.retention_ms


@dataclass(frozen=True, slots=True)
class SessionSupplier(StoreSupplier):
    """A session store."""

    persistent: bool
    """Whether it is kept on disk, where the host has a disk."""
    retention_ms: int
    """How long a session can be found after a later one has ended."""
    segment_interval_ms: int
    """Length of the segments in which sessions expire."""
    time_index: bool = False
    """Whether rows lie in the order of time, for windows that emit when they close."""

    kind: ClassVar[str] = "session"

    @property
    def retention_ms_or_none(self) -> int | None:
        return self.retention_ms


@dataclass(frozen=True, slots=True)
class InternalSupplier(StoreSupplier):
    """A store that the DSL needs for itself: buffers, unmatched records, subscriptions."""

    persistent: bool = True
    """Whether it is kept on disk, where the host has a disk."""
    grace_ms: int = 0
    """How long records wait in a buffer."""

    kind: ClassVar[str] = "internal"


@dataclass(frozen=True, slots=True)
class CustomSupplier(StoreSupplier):
    """A store of one's own."""

    factory: Callable[[StateStoreContext], StateStore]
    """Makes the store, once per task."""
    persistent: bool = True
    """Whether it is kept on disk, where the host has a disk."""

    kind: ClassVar[str] = "custom"


def disk_engine_named(name: str, where: str) -> DiskEngine:
    """Returns the engine of that name, or raises.

    >>> disk_engine_named("rocksDB", "store 'ages'")
    'rocksdb'
    """
    if isinstance(name, str) and name in _DISK_ENGINES:
        return _DISK_ENGINES[name]
    message = f"{where}: the engine on disk must be 'lmdb' or 'rocksdb'; found {describe_value(name)}"
    raise TopologyError(message)


AnySupplier = (
    KeyValueSupplier | VersionedSupplier | WindowSupplier | SessionSupplier | InternalSupplier | CustomSupplier
)
