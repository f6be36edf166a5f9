"""The rows that travel through Spark, and what a task reports to the driver in them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.runtime.late_samples import LateSample
from headrace.runtime.measures import Measure
from headrace.runtime.task import TaskId
from headrace.spark.failures import Failure
from headrace.topics.log import Receipt

SCHEMA = "task string, origin string, sequence long, blob binary"

HEARTBEAT = ""
"""Origin of the rows that wake tasks."""
REPORT = "!"
"""Origin of the rows that are on their way to the driver."""


class Row(NamedTuple):
    """One row between the levels. Blobs name where they come from: topic of the edge and upstream task."""

    task: str
    origin: str
    sequence: int
    blob: bytes | None


def edge_origin(topic: str, upstream: TaskId) -> str:
    """Returns the origin of blobs that a task sends over an edge.

    >>> edge_origin("shop-by-user-repartition", TaskId(0, 3))
    'shop-by-user-repartition/0/3'
    """
    return f"{topic}/{upstream.subtopology}/{upstream.partition}"


def parse_origin(origin: str) -> tuple[str, TaskId]:
    """Returns topic and upstream task of an origin.

    >>> parse_origin('shop-by-user-repartition/0/3')
    ('shop-by-user-repartition', TaskId(subtopology=0, partition=3))
    """
    topic, subtopology, partition = origin.rsplit("/", 2)
    return topic, TaskId(int(subtopology), int(partition))


@dataclass(frozen=True)
class TaskReport:
    """What a task tells the driver about a micro-batch."""

    task: str
    """Its key."""
    receipt: Receipt | None = None
    """None if it failed."""
    records: int = 0
    """Records of the log that it has consumed."""
    written: int = 0
    """Records that it has written to topics."""
    next_clock_ms: int | None = None
    """When its next wall-clock punctuation is due."""
    rows: int = 0
    """Rows in its stores."""
    chunk_rows: int = 0
    """Rows in its chunks, the outdated ones included."""
    seconds: float = 0.0
    counters: Mapping[str, float] = field(default_factory=dict)
    """Dropped and late records since the last batch, by their metric's name."""
    failure: Failure | None = None
    """Why it failed; then the batch fails."""
    consumed: Mapping[str, int] = field(default_factory=dict)
    """Records that it has taken, by topic; those of other tasks included."""
    produced: Mapping[str, int] = field(default_factory=dict)
    """Records that it has given away, by topic; those for other tasks included."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """What nodes have counted, by what was counted and the node's name: ``dropped/parse``."""
    measures: Mapping[str, Measure] = field(default_factory=dict)
    """What was measured, by what it was."""
    late: Sequence[LateSample] = ()
    """Some of the late records."""
    restored: int = 0
    """Rows that its working copy lacked, and that were restored before the batch."""

    def to_row(self) -> Row:
        return Row(self.task, REPORT, 0, pickle.dumps(self))

    @classmethod
    def from_bytes(cls, blob: bytes) -> TaskReport:
        report = pickle.loads(blob)
        assert isinstance(report, cls), "only reports have this origin"
        return report
