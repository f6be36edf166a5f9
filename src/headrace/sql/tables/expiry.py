"""How long the windows of a table are kept: as long as the aggregation that makes them keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from struct import Struct
from typing import Any

from headrace.sql.catalog import Catalog, SourceDefinition
from headrace.sql.planning.plan import GroupedAggregate, GroupWindow, Step
from headrace.topics.log import Raw, TopicLog

_TIME = Struct(">q")
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Windows are gone when later ones are this much later; a window's time is its start, a session's its end."""

    retention_ms: int
    of_sessions: bool

    def time_of(self, key: bytes) -> int:
        """Returns the time of the window that a key has in its last bytes.

        >>> key = b"a" + _TIME.pack(2000) + _TIME.pack(1000)
        >>> Expiry(5, of_sessions=False).time_of(key), Expiry(5, of_sessions=True).time_of(key)
        (1000, 2000)
        """
        data = key[-16:-8] if self.of_sessions else key[-8:]
        # Whoever else writes to the topic may write keys without windows: they are as good as gone.
        time_ms: int = _TIME.unpack(data)[0] if len(data) == _TIME.size else -1
        return time_ms


def expiry_of(table: SourceDefinition, catalog: Catalog) -> Expiry | None:
    """Returns how long windows of a table are kept; None if they are kept for ever."""
    query = None if table.created_by is None else catalog.queries.get(table.created_by)
    if table.window is None or query is None:
        return None
    window = next(_windows(query.plan.root), None)
    if window is None:
        return None
    # What comes later than the grace period allows changes no window any more.
    kept = window.size + window.grace if window.retention is None else window.retention
    return Expiry(kept // _MILLISECOND, table.window.size is None)


def _windows(step: Step) -> Iterator[GroupWindow]:
    if isinstance(step, GroupedAggregate) and step.window is not None:
        yield step.window
    for name in ("parent", "left", "right"):
        below = getattr(step, name, None)
        if below is not None:
            yield from _windows(below)


class Watched:
    """A log that is only read, and that notes the time of the latest window in each partition."""

    def __init__(self, log: TopicLog, expiry: Expiry) -> None:
        self._log = log
        self._expiry = expiry
        self.latest: dict[int, int] = {}

    # Any: whatever a log has.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def note(self, partition: int, key: bytes) -> None:
        """Notes that there is a window."""
        time_ms = self._expiry.time_of(key)
        if time_ms > self.latest.get(partition, -1):
            self.latest[partition] = time_ms

    def read(self, topic: str, partition: int, *args: Any, **kwargs: Any) -> list[Raw]:
        """Returns records as the log does."""
        found = self._log.read(topic, partition, *args, **kwargs)
        for _, _, key, value, _ in found:
            if key is not None and value is not None:
                self.note(partition, key)
        return found
