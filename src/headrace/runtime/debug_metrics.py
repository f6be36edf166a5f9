"""Metrics per record, only at recording level DEBUG: counts per node, lateness, cache hit ratio.

Counts are variables of closures, which cost a quarter of what an attribute or a dict would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.operators.base import Edge, TaskClock
from headrace.runtime.measures import Measure
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.log import Headers
from headrace.topology.operations import EdgeKind


def counting(edge: Edge, kind: EdgeKind) -> tuple[Edge, Callable[[], int]]:
    """Returns the edge of a node that counts what the node gets, and what takes the number away."""
    calls = 0

    def count_records(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        nonlocal calls
        calls += 1
        edge(key, value, timestamp_ms, headers)

    def count_changes(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:  # noqa: FBT001
        nonlocal calls
        calls += 1
        edge(key, new, old, timestamp_ms, headers, latest)

    def take() -> int:
        nonlocal calls
        grown, calls = calls, 0
        return grown

    return count_records if kind == "stream" else count_changes, take


def measuring(edge: Edge, task: TaskClock) -> tuple[Edge, Callable[[], Measure]]:
    """Returns the edge of a source that measures by how much its records are behind the stream time."""
    calls = behind_ms = most_ms = 0

    def measure(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        nonlocal calls, behind_ms, most_ms
        calls += 1
        late_ms = task.stream_time_ms - timestamp_ms
        if late_ms > 0:
            behind_ms += late_ms
            if late_ms > most_ms:
                most_ms = late_ms
        edge(key, value, timestamp_ms, headers)

    def take() -> Measure:
        nonlocal calls, behind_ms, most_ms
        found = Measure(calls, behind_ms, 0, most_ms)
        calls = behind_ms = most_ms = 0
        return found

    return measure, take


def count_hits(store: Any, engine: OverlayEngine) -> Callable[[], Measure] | None:
    """Makes a cached store count the rows that it is asked for and those that it has to read; returns the hit ratio.

    Any: stores have no base that knows pairs. None for sessions: they are looked for by ranges, of which Kafka Streams
    does not count hits either.
    """
    get_pair = getattr(store, "get_pair", None)
    if get_pair is None:
        return None
    asked = missed = 0
    # Flushes, cleaning and the store's own clock read, too.
    asking = False

    def ask(*place: Any) -> Any:
        nonlocal asked, asking
        asked += 1
        asking = True
        try:
            return get_pair(*place)
        finally:
            asking = False

    def miss() -> None:
        nonlocal missed
        missed += asking

    store.get_pair = ask
    engine.on_read(miss)
    seen = _seen_by_operators(store)

    def take() -> Measure:
        nonlocal asked, missed
        # Operators that find a row in the cache do not ask the store.
        rows = seen(asked)
        hits = rows - missed
        ratio = hits / rows if rows else 0.0
        asked = missed = 0
        return Measure(rows, hits, ratio, ratio)

    return take


def _seen_by_operators(store: Any) -> Callable[[int], int]:
    """Returns what tells how many rows were looked for, of the number that the store was asked for."""
    if hasattr(store, "next_number"):
        # Of windows, updates are numbered, and each was looked for; taking a number leaves a gap, which does no harm.
        reached: int = store.next_number()

        def updates(asked: int) -> int:
            nonlocal reached
            before, reached = reached, store.next_number()
            return max(asked, reached - before - 1)

        return updates
    look, found = store.look, 0

    def count_found(key: Any) -> Any:
        nonlocal found
        entry = look(key)
        if entry is not None:
            found += 1
        return entry

    def found_and(asked: int) -> int:
        nonlocal found
        rows, found = asked + found, 0
        return rows

    store.look = count_found
    return found_and
