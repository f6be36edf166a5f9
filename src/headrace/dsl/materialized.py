"""Options that say where a table or a join keeps its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from headrace.arguments.durations import to_ms
from headrace.arguments.hints import Hinting, OptionType
from headrace.arguments.values import flag, topic_config
from headrace.dsl import hints
from headrace.dsl.argument_checks import check_serde
from headrace.dsl.naming import checked
from headrace.errors import TopologyError, describe_value
from headrace.serdes import Serde
from headrace.state import DiskEngine, Migration, StoreSupplier, TimeToLive

K = TypeVar("K")
V = TypeVar("V")
VO = TypeVar("VO")

StoreType: TypeAlias = DiskEngine | Literal["disk", "in_memory"]
_STORE_TYPES: Mapping[str, StoreType] = {
    "disk": "disk",
    "lmdb": "lmdb",
    "rocksdb": "rocksdb",
    "rocksDB": "rocksdb",
    "in_memory": "in_memory",
    "memory": "in_memory",
}


def store_type(name: str, where: str) -> StoreType:
    """Returns the kind of store that a setting names; Kafka's names are understood. ``disk`` leaves the engine open.

    >>> store_type("rocksDB", "Materialized"), store_type("memory", "Materialized")
    ('rocksdb', 'in_memory')
    """
    if not isinstance(name, str) or name not in _STORE_TYPES:
        message = (
            f"{where}: the type of a store must be 'lmdb', 'rocksdb', 'disk' (the application's) or 'in_memory'; "
            f"found {describe_value(name)}"
        )
        raise TopologyError(message)
    return _STORE_TYPES[name]


@dataclass(frozen=True)
class Materialized(Hinting, Generic[K, V], metaclass=OptionType):
    """How a table keeps its rows: in a store of a given name, or as a store supplier says.

    A table with a name can be queried. Without one it keeps rows only where an operation needs them.

    >>> from headrace import Serdes
    >>> Materialized("counts", key_serde=Serdes.string(), value_serde=Serdes.long(), caching=False).store
    'counts'
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.MATERIALIZED

    store: str | StoreSupplier | None = None
    """Name of the store, or its supplier; None: a generated name, and no queries."""
    _: KW_ONLY
    key_serde: Serde[K] | None = None
    """Serde of the keys; None: the stream's or table's, else the application's default."""
    value_serde: Serde[V] | None = None
    """Serde of the values; None: the stream's or table's if they are unchanged, else the application's default."""
    caching: bool = True
    """Whether updates of a key are held back and merged until the next commit."""
    logging: bool = True
    """Whether a changelog topic backs the store."""
    log_config: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic."""
    retention: timedelta | None = None
    """How long rows of windows are kept; at least window size and grace period; None: just that."""
    store_type: str | None = None
    """``"lmdb"``, ``"rocksdb"``, ``"disk"`` or ``"in_memory"``; None: the application's ``default_dsl_store``."""
    ttl: timedelta | None = None
    """How long a row lives after its timestamp; then it is deleted, and the table says so. None: for ever."""
    by: str = "stream_time"
    """The clock that ``ttl`` goes by: ``"stream_time"`` or ``"wall_clock"``."""
    migrate: Migration | None = None
    """The serde of the rows that are there, if it was another one before; `headrace plan-change` rewrites them."""

    def __post_init__(self) -> None:
        check_serde("Materialized", "key_serde", self.key_serde)
        check_serde("Materialized", "value_serde", self.value_serde)
        if isinstance(self.store, str):
            checked(self.store, "Materialized: store")
        elif not (self.store is None or isinstance(self.store, StoreSupplier)):
            message = f"Materialized: store must be a name or a store supplier; found {describe_value(self.store)}"
            raise TopologyError(message)
        flag(self.caching, "Materialized: caching")
        flag(self.logging, "Materialized: logging")
        topic_config(self.log_config, "Materialized: log_config")
        if self.retention is not None and to_ms(self.retention, "Materialized: retention") < 0:
            message = f"Materialized: retention must not be negative; found {self.retention}"
            raise TopologyError(message)
        if self.store_type is not None:
            store_type(self.store_type, "Materialized")
            if isinstance(self.store, StoreSupplier):
                message = "Materialized: a store supplier already says what type the store has; leave out store_type"
                raise TopologyError(message)
        if self.migrate is not None and not isinstance(self.migrate, Migration):
            message = f"Materialized: migrate must be a Migration; found {describe_value(self.migrate)}"
            raise TopologyError(message)
        if self.ttl is not None:
            TimeToLive.of(self.ttl, self.by, "Materialized")
        elif self.by != "stream_time":
            message = f"Materialized: by says which clock ttl goes by; found by={self.by!r} without a ttl; give both"
            raise TopologyError(message)

    @property
    def name(self) -> str | None:
        """Name of the store, if the user chose one.

        >>> Materialized("counts").name, Materialized().name
        ('counts', None)
        """
        return self.store if self.store is None or isinstance(self.store, str) else self.store.name

    @property
    def time_to_live(self) -> TimeToLive | None:
        """Duration and clock of ``ttl``.

        >>> Materialized(ttl=timedelta(seconds=1), by="wall_clock").time_to_live
        TimeToLive(duration_ms=1000, clock='wall_clock')
        """
        return None if self.ttl is None else TimeToLive.of(self.ttl, self.by, "Materialized")

    @property
    def supplier(self) -> StoreSupplier | None:
        """The store's supplier, if one was given.

        >>> Materialized("counts").supplier is None
        True
        """
        return self.store if isinstance(self.store, StoreSupplier) else None


@dataclass(frozen=True)
class StreamJoined(Hinting, Generic[K, V, VO], metaclass=OptionType):
    """How two streams are joined: serdes, names, and the stores that keep both sides.

    >>> StreamJoined(name="clicks-views", store_name="clicks-views").name
    'clicks-views'
    """

    _HINTS: ClassVar[Mapping[str, str]] = hints.OPTION

    key_serde: Serde[K] | None = None
    """Serde of the keys."""
    value_serde: Serde[V] | None = None
    """Serde of this stream's values."""
    other_value_serde: Serde[VO] | None = None
    """Serde of the other stream's values."""
    name: str | None = None
    """Prefix of the names of the join's nodes and repartition topics."""
    store_name: str | None = None
    """Prefix of the names of the join's stores, and of their changelog topics."""
    this_store_supplier: StoreSupplier | None = None
    """Store of this stream's records; must keep duplicates and fit the windows."""
    other_store_supplier: StoreSupplier | None = None
    """Store of the other stream's records; must keep duplicates and fit the windows."""
    logging: bool = True
    """Whether changelog topics back the stores."""
    log_config: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topics."""
    dsl_store: str | None = None
    """``"lmdb"``, ``"rocksdb"``, ``"disk"`` or ``"in_memory"``; None: the application's ``default_dsl_store``."""

    def __post_init__(self) -> None:
        for name in ("key_serde", "value_serde", "other_value_serde"):
            check_serde("StreamJoined", name, getattr(self, name))
        checked(self.name, "StreamJoined")
        checked(self.store_name, "StreamJoined: store_name")
        flag(self.logging, "StreamJoined: logging")
        topic_config(self.log_config, "StreamJoined: log_config")
        if self.dsl_store is not None:
            store_type(self.dsl_store, "StreamJoined")
        for name in ("this_store_supplier", "other_store_supplier"):
            supplier = getattr(self, name)
            if not (supplier is None or isinstance(supplier, StoreSupplier)):
                message = f"StreamJoined: {name} must be a store supplier; found {describe_value(supplier)}"
                raise TopologyError(message)
        this, other = self.this_store_supplier, self.other_store_supplier
        if this is not None and other is not None and this.name == other.name:
            message = f"StreamJoined: both store suppliers have the name '{this.name}'; give each its own"
            raise TopologyError(message)
