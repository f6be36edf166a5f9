"""Queries to stores, as values: by key, by range, by window, by version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from headrace.state.stores.times import Time, as_ms

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", covariant=True)
"""What a query gives."""


class ResultOrder(Enum):
    """The order of rows within a partition; between partitions there is none."""

    ANY = "ANY"
    ASCENDING = "ASCENDING"
    DESCENDING = "DESCENDING"


class Query(Generic[R]):
    """A query to a store. Type parameters tell type checkers what the answer is: ``KeyQuery[str, int]("a")``."""

    __slots__ = ()


@dataclass(frozen=True)
class KeyQuery(Query[V], Generic[K, V]):
    """The value of a key in a key-value store.

    >>> KeyQuery.with_key("alice")
    KeyQuery(key='alice', is_skip_cache=False)
    """

    key: K
    is_skip_cache: bool = False
    """Whether to skip the record cache. Views have none: they have committed rows only."""

    @classmethod
    def with_key(cls, key: K) -> KeyQuery[K, Any]:
        """Asks for a key."""
        return cls(key)

    def skip_cache(self) -> KeyQuery[K, V]:
        """Leaves a cache out; views have none."""
        return replace(self, is_skip_cache=True)


@dataclass(frozen=True)
class TimestampedKeyQuery(Query[V], Generic[K, V]):
    """The value of a key with its timestamp, in a key-value store with timestamps.

    >>> TimestampedKeyQuery.with_key("alice").key
    'alice'
    """

    key: K
    is_skip_cache: bool = False
    """Whether to skip the record cache. Views have none: they have committed rows only."""

    @classmethod
    def with_key(cls, key: K) -> TimestampedKeyQuery[K, Any]:
        """Asks for a key."""
        return cls(key)

    def skip_cache(self) -> TimestampedKeyQuery[K, V]:
        """Leaves a cache out; views have none."""
        return replace(self, is_skip_cache=True)


@dataclass(frozen=True)
class _Ranging(Query[V], Generic[K, V]):
    lower_bound: K | None = None
    """First key; None is an open end."""
    upper_bound: K | None = None
    """Last key; None is an open end."""
    result_order: ResultOrder = ResultOrder.ANY
    """The order of the keys' bytes."""


@dataclass(frozen=True)
class RangeQuery(_Ranging[K, V]):
    """The keys of a key-value store from one to another, both included, by the order of their bytes.

    >>> RangeQuery.with_lower_bound("b").with_descending_keys().result_order
    <ResultOrder.DESCENDING: 'DESCENDING'>
    """

    @classmethod
    def with_range(cls, lower: K | None, upper: K | None) -> RangeQuery[K, Any]:
        """Asks for the keys between two, both included; None is an open end."""
        return cls(lower, upper)

    @classmethod
    def with_lower_bound(cls, lower: K) -> RangeQuery[K, Any]:
        """Asks for a key and all larger ones."""
        return cls(lower, None)

    @classmethod
    def with_upper_bound(cls, upper: K) -> RangeQuery[K, Any]:
        """Asks for a key and all smaller ones."""
        return cls(None, upper)

    @classmethod
    def with_no_bounds(cls) -> RangeQuery[K, Any]:
        """Asks for all keys."""
        return cls()

    def with_descending_keys(self) -> RangeQuery[K, V]:
        """Asks for the largest key first."""
        return replace(self, result_order=ResultOrder.DESCENDING)

    def with_ascending_keys(self) -> RangeQuery[K, V]:
        """Asks for the smallest key first."""
        return replace(self, result_order=ResultOrder.ASCENDING)


@dataclass(frozen=True)
class TimestampedRangeQuery(_Ranging[K, V]):
    """The keys of a key-value store with timestamps from one to another, values with their timestamps.

    >>> TimestampedRangeQuery.with_range("a", "c").upper_bound
    'c'
    """

    @classmethod
    def with_range(cls, lower: K | None, upper: K | None) -> TimestampedRangeQuery[K, Any]:
        """Asks for the keys between two, both included; None is an open end."""
        return cls(lower, upper)

    @classmethod
    def with_lower_bound(cls, lower: K) -> TimestampedRangeQuery[K, Any]:
        """Asks for a key and all larger ones."""
        return cls(lower, None)

    @classmethod
    def with_upper_bound(cls, upper: K) -> TimestampedRangeQuery[K, Any]:
        """Asks for a key and all smaller ones."""
        return cls(None, upper)

    @classmethod
    def with_no_bounds(cls) -> TimestampedRangeQuery[K, Any]:
        """Asks for all keys."""
        return cls()

    def with_descending_keys(self) -> TimestampedRangeQuery[K, V]:
        """Asks for the largest key first."""
        return replace(self, result_order=ResultOrder.DESCENDING)

    def with_ascending_keys(self) -> TimestampedRangeQuery[K, V]:
        """Asks for the smallest key first."""
        return replace(self, result_order=ResultOrder.ASCENDING)


@dataclass(frozen=True)
class WindowKeyQuery(Query[V], Generic[K, V]):
    """The windows of a key that start within bounds, both included: pairs of window start and value.

    >>> WindowKeyQuery.with_key_and_window_start_range("alice", 0, 60_000).time_to_ms
    60000
    """

    key: K
    time_from_ms: int
    time_to_ms: int

    @classmethod
    def with_key_and_window_start_range(cls, key: K, time_from: Time, time_to: Time) -> WindowKeyQuery[K, Any]:
        """Asks for the windows of a key that start within bounds, both included."""
        return cls(key, as_ms(time_from), as_ms(time_to))


@dataclass(frozen=True)
class WindowRangeQuery(Query[V], Generic[K, V]):
    """All windows of all keys that start within bounds; or, of a session store, all sessions of a key.

    >>> WindowRangeQuery.with_key("alice").key
    'alice'
    """

    key: K | None = None
    time_from_ms: int | None = None
    time_to_ms: int | None = None

    @classmethod
    def with_key(cls, key: K) -> WindowRangeQuery[K, Any]:
        """Asks for a key."""
        return cls(key)

    @classmethod
    def with_window_start_range(cls, time_from: Time, time_to: Time) -> WindowRangeQuery[K, Any]:
        """Asks for the windows of all keys that start within bounds, both included."""
        return cls(None, as_ms(time_from), as_ms(time_to))


@dataclass(frozen=True)
class VersionedKeyQuery(Query[V], Generic[K, V]):
    """The latest version of a key in a versioned store, or the one that was valid at a time.

    >>> VersionedKeyQuery.with_key("alice").as_of(1000).as_of_timestamp_ms
    1000
    """

    key: K
    as_of_timestamp_ms: int | None = None

    @classmethod
    def with_key(cls, key: K) -> VersionedKeyQuery[K, Any]:
        """Asks for a key."""
        return cls(key)

    def as_of(self, timestamp: Time) -> VersionedKeyQuery[K, V]:
        """Asks for the version that was valid at a time."""
        return replace(self, as_of_timestamp_ms=as_ms(timestamp))


@dataclass(frozen=True)
class MultiVersionedKeyQuery(Query[V], Generic[K, V]):
    """The versions of a key that were valid at some time within bounds, both included; the newest first by default.

    >>> MultiVersionedKeyQuery.with_key("alice").from_time(1000).from_time_ms
    1000
    """

    key: K
    from_time_ms: int | None = None
    to_time_ms: int | None = None
    result_order: ResultOrder = ResultOrder.ANY

    @classmethod
    def with_key(cls, key: K) -> MultiVersionedKeyQuery[K, Any]:
        """Asks for a key."""
        return cls(key)

    def from_time(self, time: Time | None) -> MultiVersionedKeyQuery[K, V]:
        """Asks for versions that were valid at this time or later."""
        return replace(self, from_time_ms=None if time is None else as_ms(time))

    def to_time(self, time: Time | None) -> MultiVersionedKeyQuery[K, V]:
        """Asks for versions that were valid at this time or before."""
        return replace(self, to_time_ms=None if time is None else as_ms(time))

    def with_descending_timestamps(self) -> MultiVersionedKeyQuery[K, V]:
        """Asks for the newest version first."""
        return replace(self, result_order=ResultOrder.DESCENDING)

    def with_ascending_timestamps(self) -> MultiVersionedKeyQuery[K, V]:
        """Asks for the oldest version first."""
        return replace(self, result_order=ResultOrder.ASCENDING)


# Any: what a query gives is known to whoever makes it.
AnyQuery = Query[Any]
