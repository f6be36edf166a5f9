"""Expiry of what a view shows: windows by the retention of their aggregation, rows by the TTL of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from struct import Struct
from typing import Literal

from headrace.sql.catalog import Catalog, SourceDefinition, TimestampColumn
from headrace.sql.planning.plan import GroupedAggregate, GroupWindow, Step
from headrace.topics.log import Raw

_TIME = Struct(">q")
_MILLISECOND = timedelta(milliseconds=1)


RecordTime = Callable[[int, Raw], int]
"""Returns the time of a record of a partition, for topics whose records have it in a column; -1: there is none."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """Age at which rows expire, and its clock."""

    retention_ms: int
    of: Literal["windows", "sessions", "rows"]
    """The time of a window is its start, that of a session its end, that of a row its ROWTIME."""
    clock: Literal["stream_time", "wall_clock"] = "stream_time"
    """Stream time is the latest time in the partition."""
    column: TimestampColumn | None = None
    """What ROWTIME is taken from; None: from the record."""

    def time_of(self, key: bytes, timestamp_ms: int) -> int:
        """Returns the time of a row, or that of the window that its key has in its last bytes.

        >>> key = b"a" + _TIME.pack(2000) + _TIME.pack(1000)
        >>> [Expiry(5, of).time_of(key, 1500) for of in ("windows", "sessions", "rows")]
        [1000, 2000, 1500]
        """
        if self.of == "rows":
            return timestamp_ms
        data = key[-16:-8] if self.of == "sessions" else key[-8:]
        # Whoever else writes to the topic may write keys without windows: they are as good as gone.
        time_ms: int = _TIME.unpack(data)[0] if len(data) == _TIME.size else -1
        return time_ms

    @property
    def name(self) -> str:
        """A name for files, which no other expiry has.

        >>> Expiry(5, "windows").name, Expiry(5, "rows", "wall_clock", TimestampColumn("AT", None)).name
        ('windows-5', 'rows-5-wall_clock-AT')
        """
        parts = [self.of if self.of == "rows" else "windows", self.retention_ms]
        if self.of == "rows":
            parts.append(self.clock)
        if self.column is not None:
            parts += [each for each in (self.column.column, self.column.format) if each is not None]
        return "-".join(str(each) for each in parts)


def expiry_of(table: SourceDefinition, catalog: Catalog) -> Expiry | None:
    """Returns how long rows or windows of a table are kept; None if they are kept for ever."""
    lifetime = table.lifetime
    if lifetime is not None:
        clock: Literal["stream_time", "wall_clock"] = "wall_clock" if lifetime.clock == "wall_clock" else "stream_time"
        return Expiry(lifetime.duration // _MILLISECOND, "rows", clock, table.timestamp)
    query = None if table.created_by is None else catalog.queries.get(table.created_by)
    if table.window is None or query is None:
        return None
    window = next(_windows(query.plan.root), None)
    if window is None:
        return None
    # What comes later than the grace period allows changes no window any more.
    kept = window.size + window.grace if window.retention is None else window.retention
    return Expiry(kept // _MILLISECOND, "sessions" if table.window.size is None else "windows")


def _windows(step: Step) -> Iterator[GroupWindow]:
    if isinstance(step, GroupedAggregate) and step.window is not None:
        yield step.window
    for name in ("parent", "left", "right"):
        below = getattr(step, name, None)
        if below is not None:
            yield from _windows(below)


class LatestTimes:
    """The latest time in each partition of a topic, of all that was read."""

    def __init__(self, expiry: Expiry, record_time: RecordTime | None = None) -> None:
        self._expiry = expiry
        self._record_time = record_time
        self.latest: dict[int, int] = {}

    def note(self, partition: int, time_ms: int) -> None:
        """Notes that there is something of a time."""
        if time_ms > self.latest.get(partition, -1):
            self.latest[partition] = time_ms

    def note_all(self, partition: int, found: list[Raw]) -> list[Raw]:
        """Notes the times of records, and returns these with the times that they have in a column."""
        if self._expiry.of == "rows":
            time_of = self._record_time
            if time_of is not None:
                found = [(raw[0], time_of(partition, raw), *raw[2:]) for raw in found]
            # As in a task, whatever is read moves the clock: deletions, and records without a key.
            self.note(partition, max((raw[1] for raw in found), default=-1))
            return found
        for _, time_ms, key, value, _ in found:
            if key is not None and value is not None:
                self.note(partition, self._expiry.time_of(key, time_ms))
        return found
