"""Host of persistent queries, as a server needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from headrace.metrics.names import Metrics
from headrace.sql.catalog.persistent_query import PersistentQuery


class QueryState(Enum):
    """State of a persistent query."""

    STARTING = "STARTING"
    """It waits for its turn to start, or has not committed anything since."""
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    """It has failed, and does not go on by itself."""
    ELSEWHERE = "ELSEWHERE"
    """Another process runs it; this one takes over when that one is gone."""
    UNKNOWN = "UNKNOWN"
    """This host has no such query."""


@dataclass(frozen=True)
class QueryFailure:
    """A failure of a persistent query."""

    time_ms: int
    message: str


@dataclass(frozen=True)
class QueryStatus:
    """Status of a persistent query."""

    state: QueryState
    error: str | None = None
    """What it has failed of, as long as it does not run again."""
    failures: tuple[QueryFailure, ...] = ()
    """Its last failures in this process, the newest at the end."""
    restarts: int = 0
    """How often it was tried again in this process after a failure."""
    # Any: numbers and texts by name, as the engine reports them.
    metrics: Mapping[str, Any] = field(default_factory=dict)


class QueryHost(Protocol):
    """Runs persistent queries. Any thread may call it; none of its calls waits for records to be processed."""

    def start(self, query: PersistentQuery, *, transient: bool = False) -> None:
        """Begins to run a query, or goes on where it was when it ran before under this id.

        A ``transient`` one is known to this process alone, so no other one can run it.
        """
        ...

    def stop(self, query_id: str, *, forget: bool = False) -> bool:
        """Ends a query, if there is one of that id; ``forget`` deletes its state and its internal topics.

        Returns False if some of them could not be deleted.
        """
        ...

    def forget(self, query_id: str) -> None:
        """Deletes what a query has left that does not run: its state and its internal topics."""
        ...

    def pause(self, query_id: str) -> None: ...
    def resume(self, query_id: str) -> None: ...
    def status(self, query_id: str) -> QueryStatus: ...

    def metrics(self, query_id: str) -> Metrics | None:
        """Returns all that is measured of a query; None of one that this process does not run."""
        ...

    def close(self) -> None:
        """Ends all queries; their state stays."""
        ...
