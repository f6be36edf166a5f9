"""Current rows of a store, restored from a part of its changelog, in memory or on the disk of the worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from headrace.errors import UnsupportedOperationError
from headrace.serdes import Serdes
from headrace.state import MemoryEngine, StoreBuilder, Stores
from headrace.state.engines.lmdb import LmdbEnvironment
from headrace.state.engines.overlay import OverlayEngine
from headrace.state.rows.codec import UNKNOWN_TIMESTAMP
from headrace.topics.log import Raw

_NAME = "rows"
_IN_MEMORY = 200_000
"""Up to so many records of a changelog the rows are kept in memory."""
_MAP_BYTES = 1 << 38
_VERSIONED = "versioned"
WINDOWED = ("window", "timestamped_window", "session")


class TableRow(NamedTuple):
    """A row as the store has it."""

    key: bytes
    value: bytes
    timestamp_ms: int | None
    """None if the store keeps none."""
    start_ms: int | None = None
    """Of the window, if keys have windows."""
    end_ms: int | None = None


@dataclass(frozen=True)
class StoreShape:
    """Properties of a store that decide how it is restored from its changelog."""

    name: str
    kind: str = "timestamped_key_value"
    window_ms: int | None = None
    retention_ms: int | None = None
    by_time: bool = False
    """Whether the store has its windows in the order of time, which moves their expiry by a millisecond."""

    @property
    def is_windowed(self) -> bool:
        return self.kind in WINDOWED

    def builder(self) -> StoreBuilder:
        """Returns the builder of a store of bytes."""
        serdes = Serdes.bytes(), Serdes.bytes()
        retention = timedelta(milliseconds=self.retention_ms or 0)
        size = timedelta(milliseconds=self.window_ms or 0)
        match self.kind:
            case "key_value":
                return Stores.key_value_store_builder(Stores.persistent_key_value_store(_NAME), *serdes)
            case "timestamped_key_value":
                plain = Stores.persistent_timestamped_key_value_store(_NAME)
                return Stores.timestamped_key_value_store_builder(plain, *serdes)
            case "versioned":
                versioned = Stores.persistent_versioned_key_value_store(_NAME, retention)
                return Stores.versioned_key_value_store_builder(versioned, *serdes)
            case "window":
                windows = replace(Stores.persistent_window_store(_NAME, retention, size), time_index=self.by_time)
                return Stores.window_store_builder(windows, *serdes)
            case "timestamped_window":
                timed = Stores.persistent_timestamped_window_store(_NAME, retention, size)
                windows = replace(timed, time_index=self.by_time)
                return Stores.timestamped_window_store_builder(windows, *serdes)
            case "session":
                sessions = replace(Stores.persistent_session_store(_NAME, retention), time_index=self.by_time)
                return Stores.session_store_builder(sessions, *serdes)
        message = (
            f"store '{self.name}' is of the kind {self.kind}, which has no rows that could be shown; read a key-value, "
            "window or session store"
        )
        raise UnsupportedOperationError(message)


@contextmanager
def restored(shape: StoreShape, changelog: Iterable[list[Raw]], records: int) -> Iterator[Iterator[TableRow]]:
    """Gives the rows that a changelog of about so many records leaves, for as long as the context lasts.

    >>> changes = [(0, 5, b"a", b"1", ()), (1, 6, b"b", b"2", ()), (2, 7, b"a", None, ())]
    >>> with restored(StoreShape("ages"), [changes], 3) as rows:
    ...     list(rows)
    [TableRow(key=b'b', value=b'2', timestamp_ms=6, start_ms=None, end_ms=None)]
    """
    builder = shape.builder()
    keys: set[bytes] = set()
    if records <= _IN_MEMORY:
        store = builder.build(MemoryEngine())
        for part in changelog:
            _restore(store, part, keys, shape)
        yield _rows(store, shape, keys)
        return
    with TemporaryDirectory(prefix="headrace-rows-") as directory:
        environment = LmdbEnvironment(directory, map_size=_MAP_BYTES)
        try:
            overlay = OverlayEngine(environment.engine(_NAME))
            store = builder.build(overlay)
            for part in changelog:
                _restore(store, part, keys, shape)
                environment.apply({_NAME: overlay.changes()})
                overlay.rollback()
            yield _rows(store, shape, keys)
        finally:
            environment.close()


# Any: stores of several kinds, which have different faces.
def _restore(store: Any, part: list[Raw], keys: set[bytes], shape: StoreShape) -> None:
    store.restore([(key, value, time_ms) for _, time_ms, key, value, _ in part if key is not None])
    if shape.kind == _VERSIONED:
        # Such a store cannot list its keys.
        keys.update(key for _, _, key, _, _ in part if key is not None)


def _rows(store: Any, shape: StoreShape, keys: set[bytes]) -> Iterator[TableRow]:
    match shape.kind:
        case "key_value":
            return (TableRow(key, value, None) for key, value in store.all())
        case "timestamped_key_value":
            return (TableRow(key, pair.value, _known_time(pair.timestamp_ms)) for key, pair in store.all())
        case "versioned":
            found = ((key, store.get(key)) for key in sorted(keys))
            return (TableRow(key, row.value, _known_time(row.timestamp_ms)) for key, row in found if row is not None)
        case "timestamped_window":
            return (
                TableRow(at.key, pair.value, _known_time(pair.timestamp_ms), at.window.start_ms, at.window.end_ms)
                for at, pair in store.all()
            )
        case "session":
            return (
                TableRow(at.key, value, None, at.window.start_ms, at.window.end_ms)
                for at, value in store.fetch_keys(None, None)
            )
    return (TableRow(at.key, value, None, at.window.start_ms, at.window.end_ms) for at, value in store.all())


def _known_time(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == UNKNOWN_TIMESTAMP else timestamp_ms
