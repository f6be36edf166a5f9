"""``Stores``: every kind of store, by the names that Kafka Streams gives its factories."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.arguments.durations import to_ms
from headrace.arguments.hints import HintingType
from headrace.arguments.values import flag
from headrace.errors import TopologyError, describe_value
from headrace.serdes import Serde
from headrace.state.stores.builder import StoreBuilder
from headrace.state.stores.custom import StateStore, StateStoreContext
from headrace.state.stores.suppliers import (
    AnySupplier,
    CustomSupplier,
    DiskEngine,
    KeyValueSupplier,
    SessionSupplier,
    StoreSupplier,
    VersionedSupplier,
    WindowSupplier,
    disk_engine_named,
)

_SHORTEST_SEGMENT_MS = 60_000
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


class Stores(metaclass=HintingType):
    """Makes suppliers, which say how a store keeps its rows, and builders, which add serdes and switches.

    >>> builder = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages"))
    >>> builder.name, builder.kind
    ('ages', 'key_value')
    """

    @staticmethod
    def in_memory_key_value_store(name: str) -> KeyValueSupplier:
        """A key-value store in memory.

        >>> Stores.in_memory_key_value_store("ages").persistent
        False
        """
        return KeyValueSupplier(_checked(name))

    @staticmethod
    def persistent_key_value_store(name: str, *, disk_engine: str | None = None) -> KeyValueSupplier:
        """A key-value store on disk; below a table it forgets the timestamps of rows.

        ``disk_engine`` is ``"lmdb"`` or ``"rocksdb"``; None: the application's. So it is with all stores on disk.

        >>> Stores.persistent_key_value_store("ages").persistent
        True
        """
        return KeyValueSupplier(_checked(name), persistent=True, disk_engine=_engine(name, disk_engine))

    @staticmethod
    def persistent_timestamped_key_value_store(name: str, *, disk_engine: str | None = None) -> KeyValueSupplier:
        """A key-value store on disk with room for timestamps: what a table usually has.

        >>> Stores.persistent_timestamped_key_value_store("ages").timestamped
        True
        """
        return KeyValueSupplier(
            _checked(name), persistent=True, timestamped=True, disk_engine=_engine(name, disk_engine)
        )

    @staticmethod
    def lru_map(name: str, max_entries: int) -> KeyValueSupplier:
        """A key-value store in memory that keeps the rows used last.

        >>> Stores.lru_map("recent", 100).max_entries
        100
        """
        if not isinstance(max_entries, int) or max_entries < 0:
            message = f"store '{name}': max_entries must be a number of 0 or more, got {describe_value(max_entries)}"
            raise TopologyError(message)
        return KeyValueSupplier(_checked(name), max_entries=max_entries)

    @staticmethod
    def persistent_versioned_key_value_store(
        name: str,
        history_retention: timedelta,
        segment_interval: timedelta | None = None,
        *,
        disk_engine: str | None = None,
    ) -> VersionedSupplier:
        """A versioned key-value store, whose history is kept for ``history_retention``.

        >>> Stores.persistent_versioned_key_value_store("prices", timedelta(hours=1)).segment_interval_ms
        300000
        """
        history_ms = _duration(name, "history_retention", history_retention)
        if segment_interval is None:
            interval_ms = _segment_interval(history_ms)
        else:
            interval_ms = _duration(name, "segment_interval", segment_interval, at_least=1)
        return VersionedSupplier(_checked(name), history_ms, interval_ms, disk_engine=_engine(name, disk_engine))

    @staticmethod
    def in_memory_window_store(
        name: str, retention: timedelta, window_size: timedelta, *, retain_duplicates: bool = False
    ) -> WindowSupplier:
        """A window store in memory.

        It expires windows as the store on disk does, by segments; Kafka Streams' store in memory does it more exactly.

        >>> Stores.in_memory_window_store("visits", timedelta(hours=1), timedelta(minutes=1)).retention_ms
        3600000
        """
        return _window(name, retention, window_size, persistent=False, retain_duplicates=retain_duplicates)

    @staticmethod
    def persistent_window_store(
        name: str,
        retention: timedelta,
        window_size: timedelta,
        *,
        retain_duplicates: bool = False,
        disk_engine: str | None = None,
    ) -> WindowSupplier:
        """A window store on disk; below a table it forgets the timestamps of rows.

        >>> Stores.persistent_window_store("visits", timedelta(hours=1), timedelta(hours=2))
        Traceback (most recent call last):
        ...
        headrace.errors.TopologyError: store 'visits': the retention must not be shorter than a window, got retention 3600000 ms and window size 7200000 ms; use a longer retention
        """  # noqa: E501
        return _window(
            name,
            retention,
            window_size,
            persistent=True,
            retain_duplicates=retain_duplicates,
            disk_engine=_engine(name, disk_engine),
        )

    @staticmethod
    def persistent_timestamped_window_store(
        name: str,
        retention: timedelta,
        window_size: timedelta,
        *,
        retain_duplicates: bool = False,
        disk_engine: str | None = None,
    ) -> WindowSupplier:
        """A window store on disk with room for timestamps: what a windowed table usually has.

        >>> Stores.persistent_timestamped_window_store("visits", timedelta(hours=1), timedelta(minutes=1)).timestamped
        True
        """
        return _window(
            name,
            retention,
            window_size,
            persistent=True,
            timestamped=True,
            retain_duplicates=retain_duplicates,
            disk_engine=_engine(name, disk_engine),
        )

    @staticmethod
    def in_memory_session_store(name: str, retention: timedelta) -> SessionSupplier:
        """A session store in memory.

        >>> Stores.in_memory_session_store("visits", timedelta(hours=1)).kind
        'session'
        """
        return _session(name, retention, persistent=False)

    @staticmethod
    def persistent_session_store(name: str, retention: timedelta, *, disk_engine: str | None = None) -> SessionSupplier:
        """A session store on disk.

        >>> Stores.persistent_session_store("visits", timedelta(hours=1)).persistent
        True
        """
        return _session(name, retention, persistent=True, disk_engine=_engine(name, disk_engine))

    @staticmethod
    def key_value_store_builder(
        supplier: KeyValueSupplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Builds a `KeyValueStore`.

        >>> Stores.key_value_store_builder(Stores.lru_map("recent", 10)).kind
        'key_value'
        """
        return _builder("key_value", supplier, KeyValueSupplier, key_serde, value_serde)

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: KeyValueSupplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Builds a `TimestampedKeyValueStore`.

        >>> Stores.timestamped_key_value_store_builder(Stores.in_memory_key_value_store("counts")).kind
        'timestamped_key_value'
        """
        return _builder("timestamped_key_value", supplier, KeyValueSupplier, key_serde, value_serde)

    @staticmethod
    def versioned_key_value_store_builder(
        supplier: VersionedSupplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Builds a `VersionedKeyValueStore`.

        >>> supplier = Stores.persistent_versioned_key_value_store("prices", timedelta(hours=1))
        >>> Stores.versioned_key_value_store_builder(supplier).versioned
        True
        """
        return _builder("versioned", supplier, VersionedSupplier, key_serde, value_serde)

    @staticmethod
    def window_store_builder(
        supplier: WindowSupplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Builds a `WindowStore`.

        >>> supplier = Stores.in_memory_window_store("visits", timedelta(hours=1), timedelta(minutes=1))
        >>> Stores.window_store_builder(supplier).retention_ms
        3600000
        """
        return _builder("window", supplier, WindowSupplier, key_serde, value_serde)

    @staticmethod
    def timestamped_window_store_builder(
        supplier: WindowSupplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Builds a `TimestampedWindowStore`.

        >>> supplier = Stores.in_memory_window_store("visits", timedelta(hours=1), timedelta(minutes=1))
        >>> Stores.timestamped_window_store_builder(supplier).kind
        'timestamped_window'
        """
        return _builder("timestamped_window", supplier, WindowSupplier, key_serde, value_serde)

    @staticmethod
    def session_store_builder(
        supplier: SessionSupplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> StoreBuilder:
        """Builds a `SessionStore`.

        >>> Stores.session_store_builder(Stores.in_memory_session_store("visits", timedelta(hours=1))).kind
        'session'
        """
        return _builder("session", supplier, SessionSupplier, key_serde, value_serde)

    @staticmethod
    def custom(
        name: str,
        factory: Callable[[StateStoreContext], StateStore],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        persistent: bool = True,
        disk_engine: str | None = None,
    ) -> StoreBuilder:
        """Builds a store of your own: ``factory`` is a subclass of `StateStore`, or a function that makes one.

        It is called once per task; a topology is pickled to where it runs, so for arguments of your own rather use
        ``functools.partial`` than a lambda. The store can be logged or not, but it cannot be cached.

        >>> from headrace import StateStore
        >>> from headrace.state import MemoryEngine
        >>> class Total(StateStore):
        ...     def add(self, amount: int) -> int:
        ...         total = int(self.engine.get(b"total") or b"0") + amount
        ...         self.engine.put(b"total", str(total).encode())
        ...         return total
        >>> store = Stores.custom("total", Total).build(MemoryEngine())
        >>> store.add(2), store.add(3)
        (2, 5)
        """
        if not callable(factory):
            message = f"store '{_checked(name)}': factory must be a StateStore class, got {describe_value(factory)}"
            raise TopologyError(message)
        supplier = CustomSupplier(_checked(name), factory, persistent, disk_engine=_engine(name, disk_engine))
        return _builder("custom", supplier, CustomSupplier, key_serde, value_serde)


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not name:
        message = f"a store needs a name, got {describe_value(name)}"
        raise TopologyError(message)
    return name


def _engine(name: str, disk_engine: str | None) -> DiskEngine | None:
    return None if disk_engine is None else disk_engine_named(disk_engine, f"store '{name}'")


def _duration(name: str, what: str, duration: timedelta, *, at_least: int = 0) -> int:
    duration_ms = to_ms(duration, f"store '{name}': {what}")
    if duration_ms < at_least:
        limit = "must not be negative" if at_least == 0 else f"must be at least {at_least} ms"
        message = f"store '{name}': {what} {limit}, got {duration}"
        raise TopologyError(message)
    return duration_ms


def _window(
    name: str,
    retention: timedelta,
    window_size: timedelta,
    *,
    persistent: bool,
    retain_duplicates: bool,
    timestamped: bool = False,
    disk_engine: DiskEngine | None = None,
) -> WindowSupplier:
    retention_ms = _duration(name, "retention", retention)
    size_ms = _duration(name, "window_size", window_size)
    if size_ms > retention_ms:
        message = (
            f"store '{_checked(name)}': the retention must not be shorter than a window, got retention "
            f"{retention_ms} ms and window size {size_ms} ms; use a longer retention"
        )
        raise TopologyError(message)
    return WindowSupplier(
        _checked(name),
        persistent,
        retention_ms,
        size_ms,
        max(retention_ms // 2, _SHORTEST_SEGMENT_MS),
        flag(retain_duplicates, f"store '{name}': retain_duplicates"),
        timestamped,
        disk_engine=disk_engine,
    )


def _session(
    name: str, retention: timedelta, *, persistent: bool, disk_engine: DiskEngine | None = None
) -> SessionSupplier:
    retention_ms = _duration(name, "retention", retention)
    segment_ms = max(retention_ms // 2, _SHORTEST_SEGMENT_MS)
    return SessionSupplier(_checked(name), persistent, retention_ms, segment_ms, disk_engine=disk_engine)


def _segment_interval(history_ms: int) -> int:
    if history_ms <= _MINUTE_MS:
        return max(history_ms // 3, 2_000)
    if history_ms <= 5 * _MINUTE_MS:
        return max(history_ms // 5, 20_000)
    if history_ms <= _HOUR_MS:
        return max(history_ms // 12, 60_000)
    return max(history_ms // 24, 300_000)


def _builder(
    kind: str,
    supplier: AnySupplier,
    required: type[StoreSupplier],
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> StoreBuilder:
    if not isinstance(supplier, required):
        message = (
            f"a builder of a {kind.replace('_', ' ')} store needs a {required.__name__}, "
            f"got {describe_value(supplier)}; make one with Stores"
        )
        raise TopologyError(message)
    for what, serde in (("key_serde", key_serde), ("value_serde", value_serde)):
        if serde is not None and not hasattr(serde, "serializer"):
            message = f"store '{supplier.name}': {what} must be a serde, got {describe_value(serde)}; use Serdes"
            raise TopologyError(message)
    return StoreBuilder(kind, supplier, key_serde, value_serde)
