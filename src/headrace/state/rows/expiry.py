"""Time to live of rows, and the index that finds those that are over."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from heapq import heappop, heappush, nsmallest
from itertools import islice
from struct import Struct
from typing import Any, ClassVar, Literal

from headrace.arguments.durations import MAX_LONG, to_ms
from headrace.errors import TopologyError, describe_value
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.rows.codec import Codec, timestamp_of
from headrace.state.stores.store import ChangelogRecord, Store

logger = logging.getLogger(__name__)

Clock = Literal["stream_time", "wall_clock"]
_CLOCKS = ("stream_time", "wall_clock")
_TIME = Struct(">Q")
# Rows without a time of their own have -1, which must come first.
_SHIFT = 1 << 63
_AHEAD = 1024
_THERE = b""


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """Time to live of a row after its timestamp, and its clock.

    >>> TimeToLive.of(timedelta(days=7), "stream_time", "Materialized")
    TimeToLive(duration_ms=604800000, clock='stream_time')
    """

    duration_ms: int
    """A row is over when the clock has reached its timestamp plus this."""
    clock: Clock
    """The stream time of the task, or the wall clock."""

    @classmethod
    def of(cls, ttl: timedelta, by: str, where: str) -> TimeToLive:
        """Returns what the arguments ``ttl`` and ``by`` say; ``where`` names their owner in errors."""
        duration_ms = to_ms(ttl, f"{where}: ttl")
        if duration_ms <= 0:
            message = f"{where}: ttl must be longer than 0; found {ttl}; leave it out to keep rows for ever"
            raise TopologyError(message)
        if by not in _CLOCKS:
            message = f"{where}: by must be 'stream_time' or 'wall_clock'; found {describe_value(by)}"
            raise TopologyError(message)
        return cls(duration_ms, "stream_time" if by == "stream_time" else "wall_clock")


def index_name(store: str) -> str:
    """Returns the name of a store's index; no store of a topology can have it.

    >>> index_name("users")
    'users:expiry'
    """
    return f"{store}:expiry"


class ExpiryIndex(Store):
    """Keys of a store by the timestamps of their rows: one entry for each row.

    It can be made anew from the rows, so it has no changelog. The entries that come first are also in memory, up to a
    horizon that is pushed on when they are used up: the next one is found without a scan.

    >>> from headrace.serdes import Serdes
    >>> from headrace.serdes.base import StoreTopic
    >>> from headrace.state import MemoryEngine
    >>> from headrace.state.rows.codec import key_codec
    >>> keys = key_codec(Serdes.string(), StoreTopic("users", "users"))
    >>> index = ExpiryIndex(index_name("users"), MemoryEngine(), keys, persistent=False)
    >>> index.move("a", None, 10)
    >>> index.move("b", None, 5)
    >>> index.move("b", 5, 20)
    >>> index.first(), index.oldest_ms, index.gained
    ((10, 'a'), 10, 2)
    """

    __slots__ = ("_gone", "_horizon", "_keys", "_near", "dirty", "gained", "oldest_ms")

    kind: ClassVar[str] = "expiry"

    def __init__(self, name: str, engine: Engine, keys: Codec, *, persistent: bool) -> None:
        super().__init__(name, engine, persistent=persistent)
        self._keys = keys
        # Entries that the engine lacks (True) or has too many (False).
        self.dirty: dict[bytes, bool] = {}
        # A heap of all entries before the horizon, and those among them that are gone; None: there are no others.
        self._near: list[bytes] = []
        self._gone: set[bytes] = set()
        self._horizon: bytes | None = b""
        self.gained = 0
        """Entries of keys that had none before, since somebody has set this to 0."""
        self.oldest_ms = MAX_LONG
        """No row is older. There may be none of this time, until ``first`` has looked."""
        self.reload()

    def move(self, key: Any, old_ms: int | None, new_ms: int | None) -> None:
        """Notes that the row of a key has another timestamp; None: there is no row."""
        name, dirty, horizon = self._keys.encode(key), self.dirty, self._horizon
        if old_ms is not None:
            entry = _TIME.pack(old_ms + _SHIFT) + name
            if dirty.pop(entry, None) is None:
                dirty[entry] = False
            if horizon is None or entry < horizon:
                self._gone.add(entry)
        if new_ms is None:
            return
        entry = _TIME.pack(new_ms + _SHIFT) + name
        if dirty.pop(entry, None) is None:
            dirty[entry] = True
        if old_ms is None:
            self.gained += 1
        if horizon is None or entry < horizon:
            if entry in self._gone:
                self._gone.remove(entry)
            else:
                heappush(self._near, entry)
                if len(self._near) > 2 * _AHEAD:
                    self._pull_horizon()
            if new_ms < self.oldest_ms:
                self.oldest_ms = new_ms

    def first(self) -> tuple[int, Any] | None:
        """Returns timestamp and key of the oldest row, at equal times the one whose key bytes come first."""
        near, gone = self._near, self._gone
        while True:
            while gone and near and near[0] in gone:
                gone.remove(heappop(near))
            if near:
                entry = near[0]
                self.oldest_ms = _TIME.unpack_from(entry)[0] - _SHIFT
                return self.oldest_ms, self._keys.decode(entry[8:])
            if self._horizon is None:
                self.oldest_ms = MAX_LONG
                return None
            self._push_horizon()

    def remove_first(self) -> None:
        """Removes what ``first`` has just returned."""
        entry = heappop(self._near)
        if self.dirty.pop(entry, None) is None:
            self.dirty[entry] = False

    def _push_horizon(self) -> None:
        start, dirty = self._horizon, self.dirty
        assert start is not None, "there are entries behind it"
        scanned = [entry for entry, _ in islice(self.engine.scan(start), _AHEAD + 1)]
        end = self._horizon = scanned.pop() if len(scanned) > _AHEAD else None
        # What is not written yet is not flushed for this: the engine would have to put all of it in order.
        live = [entry for entry in scanned if dirty.get(entry, True)]
        live += [entry for entry, there in dirty.items() if there and start <= entry and (end is None or entry < end)]
        # What is sorted is a heap.
        self._near[:] = sorted(live)
        self._gone.clear()
        if len(live) > 2 * _AHEAD:
            self._pull_horizon()

    def _pull_horizon(self) -> None:
        live = [entry for entry in self._near if entry not in self._gone]
        self._gone.clear()
        self._near[:] = nsmallest(_AHEAD, live)
        if len(live) > _AHEAD:
            self._horizon = nsmallest(_AHEAD + 1, live)[-1]

    def make(self, store: Store) -> None:
        """Makes the index anew from the rows of its store."""
        rows = store.engine.count()
        if rows == self.engine.count() == 0:
            return
        logger.info("store '%s': its %d rows get an index by time", store.name, rows)
        self.engine.clear()
        entries: dict[bytes, bytes | None] = {
            _TIME.pack(timestamp_of(data) + _SHIFT) + name: _THERE for name, data in store.engine.scan()
        }
        self.engine.apply(Changes(rows=entries))
        self.reload()

    def flush_writes(self) -> None:
        if self.dirty:
            rows = {entry: _THERE if there else None for entry, there in self.dirty.items()}
            self.engine.apply(Changes(rows=rows))
            self.dirty.clear()

    def reload(self) -> None:
        self.dirty.clear()
        self._near.clear()
        self._gone.clear()
        self._horizon = b""
        self.first()

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        return []

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        self.unsupported("an index is made from the rows of its store, it has no changelog")
