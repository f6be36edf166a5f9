"""Reports: what a task tells the driver about a micro-batch, and the driver everybody else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from headrace.runtime.late_samples import LateSample
from headrace.runtime.measures import Measure
from headrace.topics.journal import EdgeBlob, Receipt
from headrace.topics.log import TopicPartition


class StoreRestore(NamedTuple):
    """Progress of a store's restore from a partition of its changelog."""

    store: str
    topic: str
    partition: int
    start: int
    position: int
    end: int
    records: int = 0
    """How many were read; compaction leaves gaps between the offsets."""

    @property
    def left(self) -> int:
        return self.end - self.position


def join_restores(ahead: Iterable[StoreRestore], own: Iterable[StoreRestore]) -> list[StoreRestore]:
    """Returns restores as a whole, of which a task has left the first part to a copy that was brought up ahead."""
    whole = {each.store: each for each in ahead}
    for each in own:
        before = whole.get(each.store)
        # One that begins earlier has begun anew.
        if before is not None and before.position <= each.start:
            each = each._replace(start=before.start, records=before.records + each.records)
        whole[each.store] = each
    return list(whole.values())


@dataclass(frozen=True)
class TaskReport:
    """Report of a task to the driver about a micro-batch."""

    task: str
    receipt: Receipt | None = None
    records: int = 0
    """Records of the log that it has consumed."""
    written: int = 0
    """Records that it has written to topics; changelogs do not count."""
    rows: int = 0
    """Rows in its stores: keys, windows, sessions or versions."""
    offsets: int = 0
    """By how much its positions have moved: its records, and gaps between them."""
    changelogged: int = 0
    """Records that it has written to changelogs."""
    seconds: float = 0.0
    """How long it took, of which ``opening`` until the task was open: its state restored, and ready to commit."""
    opening: float = 0.0
    counters: Mapping[str, float] = field(default_factory=dict)
    """Dropped and late records since the last batch, by their metric's name."""
    consumed: Mapping[str, int] = field(default_factory=dict)
    """Records that it has taken, by topic; those of other tasks included."""
    produced: Mapping[str, int] = field(default_factory=dict)
    """Records that it has given away, by topic; those for other tasks included."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Counters of nodes, by counter and node name: ``dropped/parse``."""
    measures: Mapping[str, Measure] = field(default_factory=dict)
    """Measures, by their names."""
    late: Sequence[LateSample] = ()
    """Some of the late records."""
    restores: Sequence[StoreRestore] = ()
    """Stores that were restored before the batch, or are being restored, if the task does not take part yet."""
    lag: int | None = None
    """Records of changelogs that the task lacks, if it is being restored instead of taking part."""
    engines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Figures of the engines on disk, by their kinds; now and then."""
    obsolete: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets of changelogs before which nothing will ever be restored."""

    @property
    def restored(self) -> int:
        """Records of changelogs that were read to bring its stores up to date before the batch."""
        return 0 if self.lag is not None else sum(each.records for each in self.restores)


class TaskResult(NamedTuple):
    """Result of a task: blobs for tasks of later levels, and the report."""

    edges: Sequence[EdgeBlob]
    report: TaskReport


@dataclass(frozen=True)
class Outcome:
    """Outcome of one application's plan: reports of all tasks that had work, or the first failure."""

    reports: Sequence[TaskReport] = ()
    failure: BaseException | None = None
    """Then nothing behind the task that failed has run, and the batch is not complete."""


@dataclass(frozen=True)
class BatchReport:
    """Report of a committed micro-batch."""

    batch_id: int
    records_in: int
    """Records that were read from the log."""
    records_out: int
    """Records that were written to topics; changelogs do not count."""
    duration_ms: float
    lag: int
    """Records that wait in the log."""
    state_rows: int
    """Rows in all stores."""
    dropped: int
    late: int
    phases: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by phase: wait, run, publish."""
    changelogged: int = 0
    """Records that were written to changelogs."""
    tasks: Sequence[TaskReport] = ()
    """What each task that had something to do has reported."""

    @classmethod
    def of(
        cls,
        batch_id: int,
        reports: Sequence[TaskReport],
        *,
        duration_ms: float,
        lag: int,
        state_rows: int,
        phases: Mapping[str, float],
    ) -> BatchReport:
        counters: dict[str, float] = {}
        for report in reports:
            for name, value in report.counters.items():
                counters[name] = counters.get(name, 0) + value
        return cls(
            batch_id,
            sum(report.records for report in reports),
            sum(report.written for report in reports),
            duration_ms,
            lag,
            state_rows,
            int(counters.get("dropped-records-total", 0)),
            int(counters.get("late-records-total", 0)),
            phases,
            sum(report.changelogged for report in reports),
            tuple(replace(each, receipt=None) for each in reports),
        )
