"""State stores: typed stores above engines of bytes, and the builders that make them.

Read from the bottom up: `Engine` is an ordered map of bytes (`MemoryEngine`, and `OverlayEngine`, which holds the
changes of a batch). Engines on disk belong to an ``Environment`` (``headrace.state.environment``), which is LMDB
(``headrace.state.disk``) or RocksDB (``headrace.state.rocksdb``). `Store` and its kinds keep objects above an engine
and write them when they are told. `Stores` makes builders, which are values, and a builder makes a store.
"""

from headrace.state.base import ChangelogRecord, FlushListener, Store, TaskLink
from headrace.state.builder import StoreBuilder
from headrace.state.cache import CacheBudget
from headrace.state.changes import Changes
from headrace.state.engine import Engine
from headrace.state.expiry import TimeToLive
from headrace.state.faces import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
)
from headrace.state.internal import (
    subscription_store_builder,
    suppress_buffer_builder,
    time_ordered_buffer_builder,
    unmatched_store_builder,
)
from headrace.state.iterators import KeyValueIterator, StoreIterator
from headrace.state.key_value import KeyValueStore
from headrace.state.lru import LruEngine
from headrace.state.memory import MemoryEngine
from headrace.state.migration import Migration
from headrace.state.overlay import OverlayEngine
from headrace.state.own import StateStore, StateStoreContext
from headrace.state.plain_faces import values_only
from headrace.state.session import SessionStore
from headrace.state.stores import Stores
from headrace.state.subscription import SubscriptionStore
from headrace.state.suppliers import (
    AnySupplier,
    CustomSupplier,
    DiskEngine,
    InternalSupplier,
    KeyValueSupplier,
    SessionSupplier,
    StoreSupplier,
    VersionedSupplier,
    WindowSupplier,
)
from headrace.state.suppress import SuppressBuffer
from headrace.state.time_ordered import TimeOrderedBuffer, Waiting
from headrace.state.timestamped import TimestampedKeyValueStore
from headrace.state.unmatched import UnmatchedStore
from headrace.state.versioned import PUT_RETURN_CODE_NOT_PUT, VALID_TO_UNDEFINED, VersionedKeyValueStore
from headrace.state.window import TimestampedWindowStore, WindowStore

__all__ = [
    "PUT_RETURN_CODE_NOT_PUT",
    "VALID_TO_UNDEFINED",
    "AnySupplier",
    "CacheBudget",
    "ChangelogRecord",
    "Changes",
    "CustomSupplier",
    "DiskEngine",
    "Engine",
    "FlushListener",
    "InternalSupplier",
    "KeyValueIterator",
    "KeyValueStore",
    "KeyValueSupplier",
    "LruEngine",
    "MemoryEngine",
    "Migration",
    "OverlayEngine",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyStore",
    "ReadOnlyVersionedStore",
    "ReadOnlyWindowStore",
    "SessionStore",
    "SessionSupplier",
    "StateStore",
    "StateStoreContext",
    "Store",
    "StoreBuilder",
    "StoreIterator",
    "StoreSupplier",
    "Stores",
    "SubscriptionStore",
    "SuppressBuffer",
    "TaskLink",
    "TimeOrderedBuffer",
    "TimeToLive",
    "TimestampedKeyValueStore",
    "TimestampedWindowStore",
    "UnmatchedStore",
    "VersionedKeyValueStore",
    "VersionedSupplier",
    "Waiting",
    "WindowStore",
    "WindowSupplier",
    "subscription_store_builder",
    "suppress_buffer_builder",
    "time_ordered_buffer_builder",
    "unmatched_store_builder",
    "values_only",
]
