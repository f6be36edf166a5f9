"""Base class of all stores, and the link of a store to its task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn, Protocol

from headrace.errors import InvalidStateStoreError, UnsupportedOperationError
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.topics.log import Output

# Key and value as Kafka's changelog topics have them, and the record's timestamp where the format has one.
ChangelogRecord = tuple[bytes, bytes | None, int | None]
HeaderPairs = tuple[tuple[str, bytes | None], ...]
Origin = tuple[str, int] | None
LATEST = True
"""What ``on_flush`` is told of every change: a cache lets go the latest row of a key."""

# (key, new, old, timestamp_ms, headers, latest), as tables send changes on
FlushListener = Callable[[Any, Any, Any, int, HeaderPairs, bool], None]


class TaskLink(Protocol):
    """Link of a store to its task: the current record, and the counter of refused writes."""

    origin: Origin
    offset: int

    def drop(self) -> None: ...


class NoTask:
    """Stands in for the task of a store that is used on its own.

    >>> NoTask().drop()
    """

    def __init__(self) -> None:
        self.origin: Origin = None
        self.offset = -1

    def drop(self) -> None: ...


class Store:
    """A named store above an engine. Writes stay in a buffer until ``flush_writes`` brings them to the engine."""

    __slots__ = ("cached", "dirty", "engine", "name", "on_flush", "open", "persistent", "position", "send_old", "task")

    kind: ClassVar[str] = ""
    changelog_headers: ClassVar[HeaderPairs] = ()
    """Headers of the records of its changelog topic that are no deletions."""
    unlogged_rows: ClassVar[tuple[bytes, ...]] = ()
    """Names of rows of its engine that no changelog has: clocks and counters, which a task saves by itself."""
    entry_bounds: ClassVar[tuple[bytes, bytes] | None] = None
    """Between which names the rows lie that are entries of the store, each once; None: all rows are."""
    dirty: dict[Any, Any]

    def __init__(self, name: str, engine: Engine, *, persistent: bool) -> None:
        self.name = name
        self.engine = engine
        self.persistent = persistent
        self.open = True
        self.cached = False
        """Whether changes are held back until the cache is flushed."""
        self.on_flush: FlushListener | None = None
        """Called for every change that a flush of the cache lets go."""
        self.send_old = True
        """Whether ``on_flush`` wants the old value."""
        self.task: TaskLink = NoTask()
        self.position: dict[tuple[str, int], int] = {}
        """Offset of the last record that may have written here, by topic and partition."""

    def init(self, task: TaskLink) -> None:
        """Connects the store with the task whose records write to it."""
        self.task = task

    def flush_cache(self) -> None:
        """Lets the changes of a cached store go; other stores have none."""

    def flush_writes(self) -> None:
        """Brings buffered writes to the engine."""
        raise NotImplementedError

    def reload(self) -> None:
        """Forgets everything buffered and goes on with what the engine has."""
        raise NotImplementedError

    def forget_volatile(self) -> None:
        """Forgets what it keeps in memory, that decides results, and that the engine does not have."""

    def close(self) -> None:
        """Ends the use of the store; its iterators end, too."""
        self.open = False

    def read_only(self) -> Any:
        """Returns a face of the store that reads but does not write."""
        raise NotImplementedError

    def changelog_records(self, changes: Changes) -> list[ChangelogRecord]:
        """Returns changes of the engine as records of the store's changelog topic."""
        raise NotImplementedError

    def changelog_outputs(self, changes: Changes, partition: int, now_ms: int) -> list[Output]:
        """Returns changes of the engine as they are written to a partition of the changelog topic.

        ``now_ms`` is the time of records whose format has none. Stores with many rows make them without a step of
        Python for each.
        """
        headers = self.changelog_headers
        return [
            (partition, now_ms if time_ms is None else time_ms, key, value, () if value is None else headers)
            for key, value, time_ms in self.changelog_records(changes)
        ]

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Writes records of the store's changelog topic into the store."""
        raise NotImplementedError

    def check_open(self) -> None:
        """Raises if the store is closed."""
        if not self.open:
            self.refuse_closed()

    def refuse_closed(self) -> NoReturn:
        """Raises what a closed store answers to every call."""
        message = f"store '{self.name}' is closed; get it again from the running application"
        raise InvalidStateStoreError(message)

    def unsupported(self, what: str) -> NoReturn:
        """Raises what a store answers that cannot do something."""
        message = f"store '{self.name}' ({self.kind.replace('_', ' ')}): {what}"
        raise UnsupportedOperationError(message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}')"


def require_key(key: object, store: Store) -> None:
    """Raises if a key is None, which no store can keep."""
    if key is None:
        message = f"store '{store.name}': a key must not be None"
        raise TypeError(message)
