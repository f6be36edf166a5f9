"""Base of window and session stores: rows with a retention, and an optional record cache."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec, TypeGuard
from headrace.state.rows.segmented_rows import SegmentedRows
from headrace.state.rows.segments import CLOCK_ROWS, ENTRY_BOUNDS
from headrace.state.stores.store import Store, require_key
from headrace.state.stores.suppliers import SessionSupplier, WindowSupplier


class Cache(Protocol):
    """Protocol of a cache that holds changes back above the rows."""

    def flush(self) -> None: ...
    def reload(self) -> None: ...


class SegmentedStore(Store):
    """A store whose rows have a time and expire by segments.

    Its kinds make their rows and their cache, and put the methods of the upper one of both into their own slots.
    """

    __slots__ = ("_cache", "_guard", "_guard_key", "_rows", "dirty", "supplier")

    unlogged_rows: ClassVar[tuple[bytes, ...]] = CLOCK_ROWS
    entry_bounds: ClassVar[tuple[bytes, bytes] | None] = ENTRY_BOUNDS
    supplier: WindowSupplier | SessionSupplier
    _rows: SegmentedRows
    _cache: Cache | None

    def __init__(self, supplier: WindowSupplier | SessionSupplier, engine: Engine, keys: Codec, values: Codec) -> None:
        super().__init__(supplier.name, engine, persistent=supplier.persistent)
        self.supplier = supplier
        self._guard, self._guard_key = TypeGuard(values), TypeGuard(keys)

    @property
    def retention_ms(self) -> int:
        """How long a row can be found after a later one: windows count by their start, sessions by their end."""
        return self.supplier.retention_ms

    @property
    def observed_stream_time_ms(self) -> int:
        """Largest start of a window, or end of a session, that has been put; -1 before the first."""
        return self._rows.segments.observed_ms

    @property
    def live_from_ms(self) -> int:
        """Rows of an earlier time are never found again."""
        return self._rows.segments.live_from_ms

    def flush_cache(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def flush_writes(self) -> None:
        self._rows.flush()

    def forget_volatile(self) -> None:
        # A cache keeps rows that were flushed, and scans see them before those of the engine.
        if self._cache is not None:
            self._cache.reload()
            self._rows.reload_clock()

    def reload(self) -> None:
        self._rows.reload()
        if self._cache is not None:
            self._cache.reload()

    def _check(self, key: Any) -> None:
        self.check_open()
        require_key(key, self)
        if type(key) not in self._guard_key.known:
            self._guard_key.admit(key)

    def _bounds(self, low: Any, high: Any) -> tuple[bytes | None, bytes | None]:
        """Returns the bytes of the first and the last key of a range; None is an open end."""
        encode = self._rows.keys.encode
        return None if low is None else encode(low), None if high is None else encode(high)
