"""Builders: everything needed to make a store, as a value."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from headrace.arguments.durations import MAX_LONG
from headrace.arguments.values import topic_config
from headrace.errors import TopologyError
from headrace.serdes import Serde, Serdes
from headrace.state.engines.engine import Engine
from headrace.state.rows.cache_budget import CacheBudget
from headrace.state.rows.expiry import TimeToLive, index_name
from headrace.state.stores.migration import Migration
from headrace.state.stores.store import TaskLink
from headrace.state.stores.store_factory import make_store
from headrace.state.stores.suppliers import (
    AnySupplier,
    DiskEngine,
    InternalSupplier,
    KeyValueSupplier,
    VersionedSupplier,
    WindowSupplier,
    disk_engine_named,
)

logger = logging.getLogger(__name__)

_NEVER_CACHED = {"versioned": "a versioned store", "custom": "a store of one's own"}
_OTHER_THAN_TTL = {
    "key_value": "take Stores.timestamped_key_value_store_builder",
    "versioned": "it has a history retention instead",
    "window": "it has a retention instead",
    "timestamped_window": "it has a retention instead",
    "session": "it has a retention instead",
}
MIGRATED_KINDS = frozenset({"key_value", "timestamped_key_value", "window", "timestamped_window", "session"})
"""Stores whose changelogs have values as their serdes write them, one for a key."""
DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class StoreBuilder:
    """Describes a store completely; ``build`` makes it, once per task.

    >>> from headrace.state import KeyValueSupplier
    >>> builder = StoreBuilder("key_value", KeyValueSupplier("ages"))
    >>> builder.with_logging_disabled().logging
    False
    """

    kind: str
    """Which store it makes."""
    supplier: AnySupplier
    """How the store keeps its rows."""
    key_serde: Serde[Any] | None = None
    """Serde of the keys; None: the application's default."""
    value_serde: Serde[Any] | None = None
    """Serde of the values; None: the application's default."""
    other_serde: Serde[Any] | None = None
    """A third serde, where a store has one: of the right side's values, or of primary keys."""
    caching: bool = False
    """Whether changes are held back until a commit."""
    logging: bool = True
    """Whether the store has a changelog topic."""
    log_config: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Settings of the changelog topic that differ from the usual ones."""
    ttl: TimeToLive | None = None
    """How long rows live; None: until they are deleted."""
    migration: Migration | None = None
    """How values were written before; only a change of the application looks at it."""

    @property
    def name(self) -> str:
        """Name of the store."""
        return self.supplier.name

    @property
    def persistent(self) -> bool:
        """Whether the store is kept on disk, where the host has a disk."""
        return self.supplier.persistent

    @property
    def versioned(self) -> bool:
        """Whether the store keeps the history of its keys."""
        return self.kind == "versioned"

    @property
    def retention_ms(self) -> int | None:
        """How long rows are kept, None if for ever."""
        return self.supplier.retention_ms_or_none

    def with_caching_enabled(self) -> StoreBuilder:
        """Returns this builder for a store that holds changes back until a commit.

        >>> from headrace.state import KeyValueSupplier
        >>> StoreBuilder("key_value", KeyValueSupplier("ages")).with_caching_enabled().caching
        True
        """
        if self.kind in _NEVER_CACHED:
            what = _NEVER_CACHED[self.kind]
            message = f"store '{self.name}': {what} cannot be cached; leave caching disabled"
            raise TopologyError(message)
        return replace(self, caching=True)

    def with_caching_disabled(self) -> StoreBuilder:
        """Returns this builder for a store that lets every change go at once."""
        return replace(self, caching=False)

    def with_disk_engine(self, engine: DiskEngine) -> StoreBuilder:
        """Returns this builder for a store that is kept in another engine than the application's, if it is on disk.

        >>> from headrace.state import KeyValueSupplier
        >>> StoreBuilder("key_value", KeyValueSupplier("ages", persistent=True)).with_disk_engine("rocksdb").supplier
        KeyValueSupplier(name='ages', disk_engine='rocksdb', persistent=True, timestamped=False, max_entries=None)
        """
        return replace(
            self, supplier=replace(self.supplier, disk_engine=disk_engine_named(engine, f"store '{self.name}'"))
        )

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> StoreBuilder:
        """Returns this builder with a changelog topic, with these settings besides the usual ones."""
        settings = (
            {} if config is None else dict(topic_config(config, f"store '{self.name}': the changelog's settings"))
        )
        return replace(self, logging=True, log_config=settings)

    def with_logging_disabled(self) -> StoreBuilder:
        """Returns this builder without a changelog topic."""
        return replace(self, logging=False, log_config={})

    def with_ttl(self, ttl: timedelta, by: str = "stream_time") -> StoreBuilder:
        """Returns this builder for a store that deletes rows when their time is over.

        A row is over when stream time, or the wall clock if ``by`` is ``"wall_clock"``, has reached its timestamp plus
        ``ttl``. Only stores whose rows have timestamps can tell.

        >>> from datetime import timedelta
        >>> from headrace.state import Stores
        >>> visits = Stores.timestamped_key_value_store_builder(Stores.in_memory_key_value_store("visits"))
        >>> visits.with_ttl(timedelta(hours=1)).ttl
        TimeToLive(duration_ms=3600000, clock='stream_time')
        """
        return self.with_time_to_live(TimeToLive.of(ttl, by, f"store '{self.name}'"))

    def with_time_to_live(self, ttl: TimeToLive) -> StoreBuilder:
        """The same as ``with_ttl``, with checked arguments."""
        supplier = self.supplier
        if self.kind != "timestamped_key_value" or not isinstance(supplier, KeyValueSupplier):
            found, remedy = f"a {self.kind.replace('_', '-')} store", _OTHER_THAN_TTL.get(self.kind, "leave out ttl")
        elif not supplier.keeps_timestamps:
            found = "a store on disk without them"
            remedy = "take Stores.persistent_timestamped_key_value_store"
        elif supplier.max_entries is not None:
            found, remedy = "a store that evicts rows by their number", "limit it by time or by number, not by both"
        else:
            return replace(self, ttl=ttl)
        message = (
            f"store '{self.name}': a time to live needs a key-value store whose rows have timestamps; "
            f"found {found}; {remedy}"
        )
        raise TopologyError(message)

    def with_migration(self, migration: Migration) -> StoreBuilder:
        """Returns this builder for a store whose values were written with another serde before.

        >>> from headrace import Serdes, Stores
        >>> supplier = Stores.in_memory_key_value_store("ages")
        >>> ages = Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.long())
        >>> ages.with_migration(Migration(Serdes.integer())).migration.value_serde
        IntegerSerde()
        """
        if self.kind not in MIGRATED_KINDS:
            found = f"a {self.kind.replace('_', '-')} store"
            message = (
                f"store '{self.name}': a migration is for key-value, window and session stores; found {found}; give it "
                "another name, so that it begins anew"
            )
            raise TopologyError(message)
        return replace(self, migration=migration)

    def index(self) -> StoreBuilder:
        """Returns the builder of the index by which rows that are over are found.

        Nobody builds from it: it tells a host what the index's engine is for.
        """
        return StoreBuilder("expiry", InternalSupplier(index_name(self.name), self.persistent), logging=False)

    def changelog_topic_config(self) -> dict[str, str]:
        """Returns the settings of the changelog topic.

        Rows with a retention expire by stream time, never by the clock of a broker, to which those of a replay are old;
        so the topic keeps them until they are deleted explicitly, which brokers allow only with the policy ``delete``.

        >>> from headrace.state import KeyValueSupplier
        >>> StoreBuilder("key_value", KeyValueSupplier("ages")).changelog_topic_config()
        {'cleanup.policy': 'compact'}
        """
        config = {"cleanup.policy": "compact"}
        if self.retention_ms is not None:
            config = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}
        elif isinstance(self.supplier, VersionedSupplier):
            config["min.compaction.lag.ms"] = str(min(self.supplier.history_retention_ms + DAY_MS, MAX_LONG))
        return {**config, **self.log_config}

    def unlimited(self) -> StoreBuilder:
        """Returns this builder without a limit on entries: a copy must not evict by another order of use.

        What a limited store has evicted, its changelog deletes.
        """
        supplier = self.supplier
        if isinstance(supplier, KeyValueSupplier) and supplier.max_entries is not None:
            return replace(self, supplier=replace(supplier, max_entries=None))
        return self

    def build(
        self,
        engine: Engine,
        *,
        cache_budget: CacheBudget | None = None,
        task: TaskLink | None = None,
        default_key_serde: Serde[Any] | None = None,
        default_value_serde: Serde[Any] | None = None,
        topic: str | None = None,
    ) -> Any:
        """Makes the store above an engine.

        ``cache_budget`` is what all caches of the task share; without it nothing is cached. ``topic`` is the changelog
        topic, which serdes are told.

        >>> from headrace.state import KeyValueSupplier, MemoryEngine
        >>> StoreBuilder("key_value", KeyValueSupplier("ages")).build(MemoryEngine())
        KeyValueStore('ages')
        """
        defaults = (default_key_serde or Serdes.string(), default_value_serde or Serdes.json())
        budget = cache_budget if self.caching and cache_budget is not None and cache_budget.max_bytes > 0 else None
        if budget is not None and isinstance(self.supplier, WindowSupplier) and self.supplier.retain_duplicates:
            logger.warning("store '%s' is not cached because it retains duplicates", self.name)
            budget = None
        store = make_store(self, engine, topic or f"{self.name}-changelog", defaults, budget)
        if task is not None:
            store.init(task)
        return store
