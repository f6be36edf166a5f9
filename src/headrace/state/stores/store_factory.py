"""Construction of stores: the class and the codecs for each kind of store builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from headrace.errors import TopologyError, describe_value
from headrace.serdes import Serde
from headrace.serdes.base import StoreTopic, resolved
from headrace.state.engines.engine import Engine
from headrace.state.engines.lru import LruEngine
from headrace.state.rows.cache_budget import CacheBudget
from headrace.state.rows.codec import Codec, key_codec, value_codec
from headrace.state.stores.custom import StateStore, StateStoreContext
from headrace.state.stores.key_value import KeyValueStore
from headrace.state.stores.session import SessionStore
from headrace.state.stores.store import Store
from headrace.state.stores.subscription import SubscriptionStore
from headrace.state.stores.suppliers import (
    CustomSupplier,
    InternalSupplier,
    KeyValueSupplier,
    SessionSupplier,
    VersionedSupplier,
    WindowSupplier,
)
from headrace.state.stores.suppress_buffer import SuppressBuffer
from headrace.state.stores.time_ordered_buffer import TimeOrderedBuffer
from headrace.state.stores.timestamped import TimestampedKeyValueStore
from headrace.state.stores.unmatched import UnmatchedStore
from headrace.state.stores.versioned import VersionedKeyValueStore
from headrace.state.stores.window import TimestampedWindowStore, WindowStore

if TYPE_CHECKING:
    from headrace.state.stores.builder import StoreBuilder

S = TypeVar("S")


def make_store(
    builder: StoreBuilder,
    engine: Engine,
    topic: str,
    defaults: tuple[Serde[Any], Serde[Any]],
    budget: CacheBudget | None,
) -> Store:
    """Returns the store that a builder describes; ``defaults`` are the serdes of keys and values for those without."""
    return _MAKERS[builder.kind](builder, engine, _Codecs(builder, topic, *defaults), budget)


class _Codecs:
    """The serdes of a builder, with defaults in place of what is missing."""

    def __init__(self, builder: StoreBuilder, topic: str, default_key: Serde[Any], default_value: Serde[Any]) -> None:
        self._topic = StoreTopic(topic, builder.name)
        self._defaults = (default_key, default_value)
        self._builder = builder

    def keys(self) -> Codec:
        return key_codec(self._resolved(self._builder.key_serde, is_key=True), self._topic)

    def values(self) -> Codec:
        return value_codec(self._resolved(self._builder.value_serde, is_key=False), self._topic)

    def other_keys(self) -> Codec:
        return key_codec(self._resolved(self._builder.other_serde, is_key=True), self._topic)

    def other_values(self) -> Codec:
        return value_codec(self._resolved(self._builder.other_serde, is_key=False), self._topic)

    def context(self, engine: Engine) -> StateStoreContext:
        builder = self._builder
        keys = self._resolved(builder.key_serde, is_key=True)
        values = self._resolved(builder.value_serde, is_key=False)
        return StateStoreContext(builder.name, engine, builder.persistent, keys, values, self._topic)

    def _resolved(self, serde: Serde[Any] | None, *, is_key: bool) -> Serde[Any]:
        default_key, default_value = self._defaults
        wants_key: bool = getattr(serde, "inner_is_key", is_key)
        return resolved(serde, default_key if wants_key else default_value)


_Maker: TypeAlias = "Callable[[StoreBuilder, Engine, _Codecs, CacheBudget | None], Store]"


def _supplier(builder: StoreBuilder, kind: type[S]) -> S:
    supplier = builder.supplier
    if not isinstance(supplier, kind):
        message = f"store '{builder.name}': a {builder.kind} store cannot be built from {supplier!r}"
        raise TopologyError(message)
    return supplier


def _limited(supplier: KeyValueSupplier, engine: Engine) -> Engine:
    return engine if supplier.max_entries is None else LruEngine(engine, max_entries=supplier.max_entries)


def _key_value(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    supplier = _supplier(builder, KeyValueSupplier)
    return KeyValueStore(
        builder.name, _limited(supplier, engine), codecs.keys(), codecs.values(), persistent=supplier.persistent
    )


def _timestamped(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    supplier = _supplier(builder, KeyValueSupplier)
    return TimestampedKeyValueStore(
        builder.name,
        _limited(supplier, engine),
        codecs.keys(),
        codecs.values(),
        persistent=supplier.persistent,
        with_timestamp=supplier.keeps_timestamps,
        budget=budget,
    )


def _versioned(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    supplier = _supplier(builder, VersionedSupplier)
    return VersionedKeyValueStore(
        builder.name,
        engine,
        codecs.keys(),
        codecs.values(),
        persistent=supplier.persistent,
        history_retention_ms=supplier.history_retention_ms,
    )


def _window(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    return WindowStore(_supplier(builder, WindowSupplier), engine, codecs.keys(), codecs.values(), budget=budget)


def _timestamped_window(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    supplier = _supplier(builder, WindowSupplier)
    return TimestampedWindowStore(
        supplier, engine, codecs.keys(), codecs.values(), with_timestamp=supplier.keeps_timestamps, budget=budget
    )


def _session(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    return SessionStore(_supplier(builder, SessionSupplier), engine, codecs.keys(), codecs.values(), budget=budget)


def _suppress(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    return SuppressBuffer(builder.name, engine, codecs.keys(), codecs.values())


def _buffer(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    supplier = _supplier(builder, InternalSupplier)
    return TimeOrderedBuffer(
        builder.name,
        engine,
        codecs.keys(),
        codecs.values(),
        persistent=supplier.persistent,
        grace_ms=supplier.grace_ms,
    )


def _unmatched(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    return UnmatchedStore(
        builder.name,
        engine,
        codecs.keys(),
        codecs.values(),
        codecs.other_values(),
        persistent=builder.persistent,
    )


def _subscription(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    return SubscriptionStore(
        builder.name, engine, codecs.keys(), codecs.other_keys(), codecs.values(), persistent=builder.persistent
    )


def _custom(builder: StoreBuilder, engine: Engine, codecs: _Codecs, budget: CacheBudget | None) -> Store:
    store: Any = _supplier(builder, CustomSupplier).factory(codecs.context(engine))
    if not isinstance(store, StateStore):
        message = f"store '{builder.name}': its factory must return a StateStore; found {describe_value(store)}"
        raise TopologyError(message)
    return store


_MAKERS: dict[str, _Maker] = {
    "key_value": _key_value,
    "timestamped_key_value": _timestamped,
    "versioned": _versioned,
    "window": _window,
    "timestamped_window": _timestamped_window,
    "session": _session,
    "suppress": _suppress,
    "buffer": _buffer,
    "unmatched": _unmatched,
    "subscription": _subscription,
    "custom": _custom,
}
