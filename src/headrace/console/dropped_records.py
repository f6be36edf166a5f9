"""Rejected records as tasks report them: late records, and the topics that dead letters went to."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from headrace.runtime.late_samples import LateSample

_PER_NODE = 50


class TaskFacts(Protocol):
    """Rejected records that a task reports after a micro-batch."""

    @property
    def task(self) -> str: ...
    @property
    def nodes(self) -> Mapping[str, int]: ...
    @property
    def late(self) -> Sequence[LateSample]: ...


class DroppedRecords:
    """The last late records of each node, as far as tasks have reported them, and how many there were in all.

    The engine's thread writes, requests read. A task reports only the last few of a micro-batch, so that a flood of
    them costs nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._late: dict[str, deque[dict[str, Any]]] = {}
        self._totals: dict[str, int] = {}
        self._topics: dict[str, None] = {}

    def add(self, tasks: Iterable[TaskFacts], at_ms: int) -> None:
        """Keeps what tasks report of a micro-batch."""
        with self._lock:
            for task in tasks:
                for name, records in task.nodes.items():
                    what, _, where = name.partition("/")
                    if what == "dead-letters":
                        self._topics[where] = None
                    elif what == "late":
                        self._totals[where] = self._totals.get(where, 0) + records
                for sample in task.late:
                    kept = self._late.setdefault(sample.node, deque(maxlen=_PER_NODE))
                    kept.append({**asdict(sample), "task": task.task, "at_ms": at_ms})

    @property
    def dead_letter_topics(self) -> tuple[str, ...]:
        """Topics to which handlers have sent dead letters since the application was started."""
        with self._lock:
            return tuple(self._topics)

    def late(self, limit: int) -> dict[str, Any]:
        """Returns the newest late records, the newest first, and their number by node, as the console reads it."""
        with self._lock:
            records = [record for several in self._late.values() for record in several]
            totals = [{"node": node, "total": total} for node, total in sorted(self._totals.items())]
        records.sort(key=lambda record: record["at_ms"], reverse=True)
        return {"records": records[:limit], "nodes": totals}
