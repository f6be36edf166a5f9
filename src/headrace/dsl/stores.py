"""The stores that DSL operations bring along: what is known of them before the configuration is.

A spec becomes a store builder when the topology is built, because the application's ``default_dsl_store`` may decide
its type. Two specs are the same store only if they are the same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from headrace.arguments.durations import to_ms
from headrace.dsl.materialized import Materialized, StoreType, StreamJoined, store_type
from headrace.dsl.suppressed import BufferConfig
from headrace.errors import TopologyError
from headrace.serdes import Serde, Serdes
from headrace.state import (
    KeyValueSupplier,
    Migration,
    SessionSupplier,
    StoreBuilder,
    Stores,
    StoreSupplier,
    TimeToLive,
    VersionedSupplier,
    WindowSupplier,
    subscription_store_builder,
    suppress_buffer_builder,
    time_ordered_buffer_builder,
    unmatched_store_builder,
)
from headrace.topology.wire import SubscriptionSerde
from headrace.windows import EmitStrategy, JoinWindows, SessionWindows, SlidingWindows, Windows, custom_windows

Kind: TypeAlias = Literal[
    "key_value", "window", "session", "join_window", "distinct", "unmatched", "suppress", "buffer", "subscription"
]
_MIN_SEGMENT_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreSpec:
    """A store that comes with an operation."""

    kind: Kind
    name: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    other_value_serde: Serde[Any] | None = None
    """Values of the right side, when a store keeps both sides of a join."""
    queryable: bool = False
    """Whether the user named it."""
    supplier: StoreSupplier | None = None
    store_type: StoreType | None = None
    caching: bool = False
    logging: bool = True
    log_config: Mapping[str, str] = field(default_factory=dict)
    retention_ms: int = 0
    window_size_ms: int = 0
    windows: Windows | None = None
    """Windows of one's own, which know their ends."""
    time_index: bool = False
    """Whether rows are also found by time, to emit them when their windows close."""
    ttl: TimeToLive | None = None
    migration: Migration | None = None

    @property
    def kept(self) -> bool:
        """Whether a table has the store although no operation looks its rows up."""
        return self.queryable or self.ttl is not None

    @property
    def versioned(self) -> bool:
        """Whether it keeps older versions of its rows."""
        return isinstance(self.supplier, VersionedSupplier)

    def builder(self, default: StoreType) -> StoreBuilder:
        """Returns the builder of the store; ``default`` is its type if nobody chose one."""
        builder = self._plain_builder(persistent=(self.store_type or default) != "in_memory")
        if self.supplier is None and (self.store_type == "lmdb" or self.store_type == "rocksdb"):
            builder = builder.with_disk_engine(self.store_type)
        if self.ttl is not None:
            builder = builder.with_time_to_live(self.ttl)
        if self.migration is not None:
            builder = builder.with_migration(self.migration)
        if self.caching and not self.versioned:
            builder = builder.with_caching_enabled()
        return builder.with_logging_enabled(self.log_config) if self.logging else builder.with_logging_disabled()

    def _plain_builder(self, *, persistent: bool) -> StoreBuilder:
        name, key_serde, value_serde = self.name, self.key_serde, self.value_serde
        match self.kind:
            case "key_value":
                if isinstance(self.supplier, VersionedSupplier):
                    return Stores.versioned_key_value_store_builder(self.supplier, key_serde, value_serde)
                given = self.supplier if isinstance(self.supplier, KeyValueSupplier) else None
                rows = given or KeyValueSupplier(name, persistent=persistent, timestamped=True)
                return Stores.timestamped_key_value_store_builder(rows, key_serde, value_serde)
            case "window":
                windows = self._window_supplier(persistent=persistent)
                return Stores.timestamped_window_store_builder(windows, key_serde, value_serde)
            case "join_window" | "distinct":
                windows = self._window_supplier(persistent=persistent)
                return Stores.window_store_builder(windows, key_serde, value_serde)
            case "session":
                sessions = self._session_supplier(persistent=persistent)
                return Stores.session_store_builder(sessions, key_serde, value_serde)
            case "unmatched":
                return unmatched_store_builder(
                    name, key_serde, value_serde, self.other_value_serde, persistent=persistent
                )
            case "suppress":
                return suppress_buffer_builder(name, key_serde, value_serde)
            case "buffer":
                return time_ordered_buffer_builder(name, key_serde, value_serde, grace_ms=self.retention_ms)
            case "subscription":
                return subscription_store_builder(name, key_serde, value_serde, SubscriptionSerde(value_serde))

    def _window_supplier(self, *, persistent: bool) -> WindowSupplier:
        if isinstance(self.supplier, WindowSupplier):
            return self.supplier if self.windows is None else replace(self.supplier, windows=self.windows)
        is_join = self.kind == "join_window"
        return WindowSupplier(
            self.name,
            persistent=persistent,
            retention_ms=self.retention_ms,
            window_size_ms=self.window_size_ms,
            segment_interval_ms=self._segment_ms,
            retain_duplicates=is_join,
            timestamped=self.kind == "window",
            time_index=self.time_index,
            windows=self.windows,
        )

    def _session_supplier(self, *, persistent: bool) -> SessionSupplier:
        if isinstance(self.supplier, SessionSupplier):
            return self.supplier
        return SessionSupplier(
            self.name,
            persistent=persistent,
            retention_ms=self.retention_ms,
            segment_interval_ms=self._segment_ms,
            time_index=self.time_index,
        )

    @property
    def _segment_ms(self) -> int:
        return max(self.retention_ms // 2, _MIN_SEGMENT_MS)


def _materialized(
    kind: Kind,
    name: str,
    materialized: Materialized[Any, Any],
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    **content: Any,
) -> StoreSpec:
    _check_supplier(kind, name, materialized.supplier)
    chosen = materialized.store_type
    return StoreSpec(
        kind=kind,
        name=name,
        key_serde=materialized.key_serde or key_serde,
        value_serde=materialized.value_serde or value_serde,
        queryable=materialized.name is not None,
        supplier=materialized.supplier,
        store_type=None if chosen is None else store_type(chosen, f"store '{name}'"),
        logging=materialized.logging,
        log_config=materialized.log_config,
        migration=materialized.migrate,
        **content,
    )


def _check_supplier(kind: Kind, name: str, supplier: StoreSupplier | None) -> None:
    if supplier is None:
        return
    accepted = {
        "key_value": (KeyValueSupplier, VersionedSupplier),
        "window": (WindowSupplier,),
        "session": (SessionSupplier,),
    }[kind]
    if not isinstance(supplier, accepted):
        wanted = kind.replace("_", "-")
        message = (
            f"store '{name}': this operation needs the supplier of a {wanted} store; "
            f"found one of a {supplier.kind.replace('_', '-')} store; use the matching factory of Stores"
        )
        raise TopologyError(message)


def check_lasting(where: str, materialized: Materialized[Any, Any], what: str, remedy: str) -> None:
    """Raises if rows that cannot have a time to live are given one."""
    if materialized.ttl is not None:
        message = f"{where}: {what} cannot have a time to live; found ttl={materialized.ttl!r}; {remedy}"
        raise TopologyError(message)


def key_value_store(
    name: str,
    materialized: Materialized[Any, Any],
    *,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> StoreSpec:
    """Returns the store of a table's rows."""
    ttl = materialized.time_to_live
    return _materialized("key_value", name, materialized, key_serde, value_serde, caching=materialized.caching, ttl=ttl)


def window_store(
    name: str,
    materialized: Materialized[Any, Any],
    windows: Windows | SlidingWindows | SessionWindows,
    emit: EmitStrategy,
    *,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> StoreSpec:
    """Returns the store of a windowed aggregation's rows."""
    check_lasting(f"store '{name}'", materialized, "windows", "Materialized(retention=…) says how long they are kept")
    on_close = emit is EmitStrategy.ON_WINDOW_CLOSE
    kind: Kind = "window"
    # Kafka Streams caches the store of time windows that emit on close, but not those of the other windows.
    caching, size_ms, own_windows = materialized.caching and not on_close, 0, None
    if isinstance(windows, SessionWindows):
        kind, needed_ms, what = "session", windows.gap_ms + windows.grace_ms, "the inactivity gap plus the grace period"
    elif isinstance(windows, SlidingWindows):
        size_ms, needed_ms = windows.difference_ms, 2 * windows.difference_ms + windows.grace_ms
        what = "twice the time difference plus the grace period"
    else:
        size_ms, needed_ms, own_windows = windows.size_ms, windows.size_ms + windows.grace_ms, custom_windows(windows)
        caching, what = materialized.caching, "the window size plus the grace period"
    asked = materialized.retention
    retention_ms = needed_ms if asked is None else to_ms(asked, "Materialized: retention")
    if retention_ms < needed_ms:
        message = (
            f"store '{name}': the retention must be at least {what}, {needed_ms} ms; found {retention_ms} ms; "
            "raise Materialized(retention=…) or leave it out"
        )
        raise TopologyError(message)
    return _materialized(
        kind,
        name,
        materialized,
        key_serde,
        value_serde,
        caching=caching,
        retention_ms=retention_ms,
        window_size_ms=size_ms,
        windows=own_windows,
        time_index=on_close,
    )


def join_window_store(
    base: str,
    joined: StreamJoined[Any, Any, Any],
    windows: JoinWindows,
    supplier: StoreSupplier | None,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> StoreSpec:
    """Returns the store of one side of a join of two streams."""
    retention_ms = windows.size_ms + windows.grace_ms
    if supplier is not None:
        _check_join_supplier(supplier, windows)
    return StoreSpec(
        kind="join_window",
        name=f"{base}-store" if supplier is None else supplier.name,
        key_serde=key_serde,
        value_serde=value_serde,
        supplier=supplier,
        store_type=_join_type(joined),
        logging=joined.logging,
        # Duplicates cannot be compacted.
        log_config={**joined.log_config, "cleanup.policy": "delete"} if supplier is None else {},
        retention_ms=retention_ms,
        window_size_ms=windows.size_ms,
    )


def distinct_store(name: str, within_ms: int, key_serde: Serde[Any] | None) -> StoreSpec:
    """Returns the store of the identities that a deduplication has seen."""
    return StoreSpec(
        kind="distinct",
        name=name,
        key_serde=key_serde,
        value_serde=Serdes.boolean(),
        # A row is found until it is as old as the retention, that moment not included.
        retention_ms=within_ms + 1,
        window_size_ms=within_ms + 1,
    )


def _join_type(joined: StreamJoined[Any, Any, Any]) -> StoreType | None:
    return None if joined.dsl_store is None else store_type(joined.dsl_store, "StreamJoined")


def _check_join_supplier(supplier: StoreSupplier, windows: JoinWindows) -> None:
    where = f"store '{supplier.name}'"
    if not isinstance(supplier, WindowSupplier):
        message = f"{where}: a join of two streams needs the supplier of a window store; found {supplier.kind}"
        raise TopologyError(message)
    if not supplier.retain_duplicates:
        message = f"{where}: a join must keep duplicates; found retain_duplicates=False; set it to True"
        raise TopologyError(message)
    needed = (windows.size_ms + windows.grace_ms, windows.size_ms)
    if (supplier.retention_ms, supplier.window_size_ms) != needed:
        message = (
            f"{where}: retention and window size must be those of the join windows, {needed[0]} ms and {needed[1]} ms; "
            f"found {supplier.retention_ms} ms and {supplier.window_size_ms} ms"
        )
        raise TopologyError(message)


def unmatched_store(
    name: str,
    joined: StreamJoined[Any, Any, Any],
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    other_value_serde: Serde[Any] | None,
) -> StoreSpec:
    """Returns the store of the records that have not found a partner yet, of both sides."""
    chosen = _join_type(joined)
    if chosen is None and isinstance(joined.this_store_supplier, WindowSupplier):
        given = joined.this_store_supplier
        chosen = (given.disk_engine or "disk") if given.persistent else "in_memory"
    return StoreSpec(
        kind="unmatched",
        name=name,
        key_serde=key_serde,
        value_serde=value_serde,
        other_value_serde=other_value_serde,
        store_type=chosen,
        logging=joined.logging,
        log_config=joined.log_config,
    )


def suppress_store(
    name: str, buffer: BufferConfig, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
) -> StoreSpec:
    """Returns the buffer of a suppression."""
    return StoreSpec(
        kind="suppress",
        name=name,
        key_serde=key_serde,
        value_serde=value_serde,
        logging=buffer.logging,
        log_config=buffer.log_config,
    )


def grace_buffer(name: str, grace_ms: int, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None) -> StoreSpec:
    """Returns the buffer of stream records that wait for a versioned table."""
    return StoreSpec(kind="buffer", name=name, key_serde=key_serde, value_serde=value_serde, retention_ms=grace_ms)


def subscription_store(
    name: str, foreign_key_serde: Serde[Any] | None, primary_key_serde: Serde[Any] | None
) -> StoreSpec:
    """Returns the store of a foreign-key join's subscriptions."""
    return StoreSpec(kind="subscription", name=name, key_serde=foreign_key_serde, value_serde=primary_key_serde)
