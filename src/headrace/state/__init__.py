"""State stores: typed stores above engines of bytes, and the builders that make them.

Read from the bottom up: `Engine` is an ordered map of bytes (`MemoryEngine`, and `OverlayEngine`, which holds the
changes of a batch). Engines on disk belong to an ``Environment``, which is LMDB or RocksDB: all of them are in
``engines``. `Store` and its kinds, in ``stores``, keep objects above an engine (``rows``) and write them when they are
told. `Stores` makes builders, which are values, and a builder makes a store.
"""

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.engines.lru import LruEngine
from headrace.state.engines.memory import MemoryEngine
from headrace.state.engines.overlay import OverlayEngine
from headrace.state.rows.cache_budget import CacheBudget
from headrace.state.rows.expiry import TimeToLive
from headrace.state.stores.builder import StoreBuilder
from headrace.state.stores.custom import StateStore, StateStoreContext
from headrace.state.stores.factories import Stores
from headrace.state.stores.internal_builders import (
    subscription_store_builder,
    suppress_buffer_builder,
    time_ordered_buffer_builder,
    unmatched_store_builder,
)
from headrace.state.stores.iterators import KeyValueIterator, StoreIterator
from headrace.state.stores.key_value import KeyValueStore
from headrace.state.stores.migration import Migration
from headrace.state.stores.read_only import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
)
from headrace.state.stores.session import SessionStore
from headrace.state.stores.store import ChangelogRecord, FlushListener, Store, TaskLink
from headrace.state.stores.subscription import SubscriptionStore
from headrace.state.stores.suppliers import (
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
from headrace.state.stores.suppress_buffer import SuppressBuffer
from headrace.state.stores.time_ordered_buffer import TimeOrderedBuffer, Waiting
from headrace.state.stores.timestamped import TimestampedKeyValueStore
from headrace.state.stores.unmatched import UnmatchedStore
from headrace.state.stores.values_only import values_only
from headrace.state.stores.versioned import PUT_RETURN_CODE_NOT_PUT, VALID_TO_UNDEFINED, VersionedKeyValueStore
from headrace.state.stores.window import TimestampedWindowStore, WindowStore

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
