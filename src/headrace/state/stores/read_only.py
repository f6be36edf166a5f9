"""Read-only interfaces of stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from headrace.errors import UnsupportedOperationError
from headrace.record import VersionedRecord
from headrace.serdes import Serde
from headrace.state.stores.iterators import KeyValueIterator, StoreIterator
from headrace.state.stores.tabular import TabularSessions, TabularStore
from headrace.state.stores.times import Time

if TYPE_CHECKING:
    from headrace.state.stores.key_value import KeyValueStore
    from headrace.state.stores.session import SessionStore
    from headrace.state.stores.versioned import VersionedKeyValueStore
    from headrace.state.stores.window import WindowStore


class ReadOnlyStore:
    """A face of a store that only reads.

    >>> from headrace.state import MemoryEngine, Stores
    >>> store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("ages")).build(MemoryEngine())
    >>> store.read_only().put("alice", 30)
    Traceback (most recent call last):
    ...
    headrace.errors.UnsupportedOperationError: store 'ages' is read-only here: put() is not allowed; only processors to which the store is connected may write to it
    """  # noqa: E501

    __slots__ = ("_store",)

    _refused: ClassVar[frozenset[str]] = frozenset()
    _store: Any

    def __init__(self, store: Any) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return str(self._store.name)

    @property
    def kind(self) -> str:
        return str(self._store.kind)

    @property
    def open(self) -> bool:
        return bool(self._store.open)

    @property
    def persistent(self) -> bool:
        return bool(self._store.persistent)

    @property
    def position(self) -> dict[tuple[str, int], int]:
        return dict(self._store.position)

    def read_only(self) -> Any:
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name in self._refused:
            message = (
                f"store '{self._store.name}' is read-only here: {name}() is not allowed; "
                "only processors to which the store is connected may write to it"
            )
            raise UnsupportedOperationError(message)
        message = f"'{type(self).__name__}' has no attribute '{name}'"
        raise AttributeError(message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r})"


LIFE_CYCLE = frozenset({"init", "flush_cache", "flush_writes", "close", "reload", "restore"})


class ReadOnlyKeyValueStore(TabularStore, ReadOnlyStore):
    """Reads a key-value store: see `KeyValueStore`."""

    __slots__ = ()

    _refused = LIFE_CYCLE | {"put", "put_if_absent", "put_all", "delete", "put_pair"}
    _store: KeyValueStore[Any, Any]

    def get(self, key: Any) -> Any:
        return self._store.get(key)

    def get_pair(self, key: Any) -> tuple[Any, int] | None:
        pair: tuple[Any, int] | None = self._store.get_pair(key)  # type: ignore[attr-defined]  # timestamped stores only
        return pair

    def range(self, low: Any = None, high: Any = None) -> KeyValueIterator[Any, Any]:
        return self._store.range(low, high)

    def reverse_range(self, low: Any = None, high: Any = None) -> KeyValueIterator[Any, Any]:
        return self._store.reverse_range(low, high)

    def all(self) -> KeyValueIterator[Any, Any]:
        return self._store.all()

    def reverse_all(self) -> KeyValueIterator[Any, Any]:
        return self._store.reverse_all()

    def prefix_scan(self, prefix: Any, serializer: Serde[Any] | Callable[[Any], bytes]) -> KeyValueIterator[Any, Any]:
        return self._store.prefix_scan(prefix, serializer)

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()


class ReadOnlyVersionedStore(ReadOnlyStore):
    """Reads a versioned store: see `VersionedKeyValueStore`."""

    __slots__ = ()

    _refused = LIFE_CYCLE | {"put", "delete"}
    _store: VersionedKeyValueStore[Any, Any]

    def get(self, key: Any, as_of_ms: int | None = None) -> VersionedRecord[Any] | None:
        return self._store.get(key, as_of_ms)

    def history(
        self, key: Any, from_ms: int | None = None, to_ms: int | None = None, *, reverse: bool = False
    ) -> StoreIterator[VersionedRecord[Any]]:
        return self._store.history(key, from_ms, to_ms, reverse=reverse)


class ReadOnlyWindowStore(TabularStore, ReadOnlyStore):
    """Reads a window store: see `WindowStore`."""

    __slots__ = ()

    _refused = LIFE_CYCLE | {"put", "put_pair"}
    _store: WindowStore[Any, Any]

    def fetch(self, key: Any, start_ms: Time) -> Any:
        return self._store.fetch(key, start_ms)

    def fetch_range(self, key: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.fetch_range(key, from_ms, to_ms)

    def backward_fetch_range(self, key: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.backward_fetch_range(key, from_ms, to_ms)

    def fetch_keys(self, low: Any, high: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.fetch_keys(low, high, from_ms, to_ms)

    def backward_fetch_keys(self, low: Any, high: Any, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.backward_fetch_keys(low, high, from_ms, to_ms)

    def fetch_all(self, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.fetch_all(from_ms, to_ms)

    def backward_fetch_all(self, from_ms: Time, to_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.backward_fetch_all(from_ms, to_ms)

    def all(self) -> KeyValueIterator[Any, Any]:
        return self._store.all()

    def backward_all(self) -> KeyValueIterator[Any, Any]:
        return self._store.backward_all()


class ReadOnlySessionStore(TabularSessions, ReadOnlyStore):
    """Reads a session store: see `SessionStore`."""

    __slots__ = ()

    _refused = LIFE_CYCLE | {"put", "remove", "put_session", "remove_session"}
    _store: SessionStore[Any, Any]

    def find_sessions(self, key: Any, earliest_end_ms: Time, latest_start_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.find_sessions(key, earliest_end_ms, latest_start_ms)

    def backward_find_sessions(
        self, key: Any, earliest_end_ms: Time, latest_start_ms: Time
    ) -> KeyValueIterator[Any, Any]:
        return self._store.backward_find_sessions(key, earliest_end_ms, latest_start_ms)

    def find_sessions_keys(
        self, low: Any, high: Any, earliest_end_ms: Time, latest_start_ms: Time
    ) -> KeyValueIterator[Any, Any]:
        return self._store.find_sessions_keys(low, high, earliest_end_ms, latest_start_ms)

    def backward_find_sessions_keys(
        self, low: Any, high: Any, earliest_end_ms: Time, latest_start_ms: Time
    ) -> KeyValueIterator[Any, Any]:
        return self._store.backward_find_sessions_keys(low, high, earliest_end_ms, latest_start_ms)

    def find_sessions_in(self, earliest_end_ms: Time, latest_end_ms: Time) -> KeyValueIterator[Any, Any]:
        return self._store.find_sessions_in(earliest_end_ms, latest_end_ms)

    def fetch(self, key: Any) -> KeyValueIterator[Any, Any]:
        return self._store.fetch(key)

    def backward_fetch(self, key: Any) -> KeyValueIterator[Any, Any]:
        return self._store.backward_fetch(key)

    def fetch_keys(self, low: Any, high: Any) -> KeyValueIterator[Any, Any]:
        return self._store.fetch_keys(low, high)

    def backward_fetch_keys(self, low: Any, high: Any) -> KeyValueIterator[Any, Any]:
        return self._store.backward_fetch_keys(low, high)

    def fetch_session(self, key: Any, start_ms: Time, end_ms: Time) -> Any:
        return self._store.fetch_session(key, start_ms, end_ms)
