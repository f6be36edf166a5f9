"""The planner: when a micro-batch starts, and what each task reads in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from headrace.batches.admission import Admission, fitting, share
from headrace.batches.layout import Layout
from headrace.batches.plan import Plan, Range, partition_name
from headrace.batches.positions import start_positions
from headrace.batches.readiness import Readiness
from headrace.batches.reports import TaskReport
from headrace.batches.unread_edges import UnreadEdges
from headrace.topics.journal import JournalState, TaskStatus
from headrace.topics.log import Offsets, ReadableLog, TopicPartition
from headrace.topology.levels import back_edges

_IDLE_STEP = 0.01
_PURGE_EVERY = 30.0
"""Seconds between two deletions of what back edges have carried; Kafka Streams' default."""
_ASK_EVERY = 0.1
"""Seconds after which tasks that are being restored are asked how far they are."""
_LOOK_AROUND = 3.0
"""Seconds after which it is looked whether there are new topics or partitions."""
_BACKLOG_MS = 2_000.0
"""Target duration of a batch with a backlog: long, so that costs per batch and per key spread over many records."""
_SHORTEST_PAUSE_MS, _LONGEST_PAUSE_MS, _PAUSE_SHARE = 35.0, 60.0, 0.75
"""From the end of one batch to the start of the next, when there is little input: a job costs processor time, too.

It is a share of what the batch has taken, so that a job of several levels does not cost more cores than one of one."""


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Planner:
    """Plans what a running application does: everything as it comes, or with ``until_end`` what is there now."""

    def __init__(
        self,
        layout: Layout,
        log: ReadableLog,
        state: JournalState,
        *,
        until_end: bool = False,
        clock: Callable[[], int] = _wall_clock_ms,
        is_outdated: Callable[[], bool] | None = None,
    ) -> None:
        self._layout = layout
        self._log = log
        self._clock = clock
        self._is_outdated = is_outdated
        self._looked = time.monotonic()
        config = layout.config
        self._interval_s = None if config.commit_interval is None else config.commit_interval_ms / 1000
        self._admission = Admission(
            target_ms=_BACKLOG_MS if not config.commit_interval else float(config.commit_interval_ms),
            max_records=config.max_batch_records,
        )
        self._now_ms = clock()
        self._positions: Offsets = start_positions(layout, log, state.positions, self._now_ms)
        self.begun_at: Offsets = dict(self._positions)
        """Where the inputs were when this planner was made."""
        self._unread = UnreadEdges(layout, log, state.positions)
        self._targets: dict[str, list[TopicPartition]] = {
            place.name: list(layout.log_inputs(place)) for place in layout.tasks
        }
        self._written, self._internal = _own_topics(layout)
        # Blobs cross edges in the batch that sends them, so inputs that meet behind an edge are read to a common time.
        self._common_time = layout.depth > 1 or bool(self._internal)
        self._ends: Offsets | None = self._ends_of_others() if until_end else None
        self._idle_ms = config.max_task_idle // timedelta(milliseconds=1)
        self._incomplete: dict[str, float] = {}
        self._statuses: dict[str, TaskStatus] = dict(state.tasks)
        self._readiness = Readiness(layout, state.tasks.keys(), config.acceptable_recovery_lag)
        self._unopened = set(self._targets)
        """Tasks that have not taken part yet: when their clocks are due is unknown."""
        self._asked = 0.0
        self._is_behind = False
        self._not_before = 0.0
        self._purged = time.monotonic()
        self._obsolete: Offsets = {}
        self.lag = 0
        """Records that were in the log and not read when the last batch was planned."""
        self.outdated = False
        """Whether the topics or partitions to read are others than when it began: then there is no next plan."""
        self.finished = False
        """Whether everything was read that was there when it began, if that was asked for."""

    def next_plan(self, batch_id: int) -> Plan | None:
        """Returns the next micro-batch if there is something to do, and it is time; otherwise None."""
        if self.finished or self._has_outdated():
            return None
        now_ms = self._clock()
        if self._unread:
            return self._plan(batch_id, now_ms, self._unread.next_ranges(self._positions))
        runnable = self._readiness.runnable
        available = self._complete(self._available(runnable))
        due = self._due(now_ms, runnable)
        restores = self._to_be_restored()
        if self._ends is not None and not available and not due & self._unopened and not self._readiness.waiting:
            # A backfill ends with its input; clocks would keep it running for ever.
            self.finished = True
            return None
        if not restores and (not (available or due) or self._remaining_wait_s() > 0):
            return None
        return self._make(batch_id, now_ms, available, due, restores)

    def _to_be_restored(self) -> frozenset[str]:
        """Returns the tasks that are not ready, now and then: they are asked how far they are."""
        if not self._readiness.waiting or time.monotonic() - self._asked < _ASK_EVERY:
            return frozenset()
        self._asked = time.monotonic()
        return frozenset(self._readiness.waiting)

    def _remaining_wait_s(self) -> float:
        """Returns for how long the next batch has to wait, so that little input does not make many small ones."""
        if self._unopened or self._is_behind:
            return 0.0
        return self._not_before - time.monotonic()

    def waits_for(self) -> tuple[Offsets, float]:
        """Returns the positions at which there may be something to do, and in how many seconds there is anyway."""
        early_s = self._remaining_wait_s()
        if early_s > 0:
            return {}, early_s
        clocks = [status.next_clock_ms for status in self._statuses.values() if status.next_clock_ms is not None]
        within_s = max(0, min(clocks) - self._clock()) / 1000 if clocks else _LOOK_AROUND
        if self._readiness.waiting:
            return {}, max(0.0, _ASK_EVERY - (time.monotonic() - self._asked))
        if self._incomplete:
            # There is data already; what is waited for is more of it, or that the waiting is over.
            return {}, min(within_s, _IDLE_STEP)
        return self._positions, within_s

    def _has_outdated(self) -> bool:
        if self._is_outdated is not None and time.monotonic() - self._looked > _LOOK_AROUND:
            self._looked = time.monotonic()
            self.outdated = self._is_outdated()
        return self.outdated

    def _complete(self, available: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Leaves out tasks that wait for an input of theirs that is empty, as long as ``max_task_idle`` says."""
        if self._idle_ms <= 0 or self._ends is not None:
            return available
        now = time.monotonic()
        for key, targets in self._targets.items():
            filled = [target for target in targets if target in available]
            if not filled or len(filled) == len(targets):
                self._incomplete.pop(key, None)
            elif now - self._incomplete.setdefault(key, now) < self._idle_ms / 1000:
                available = {target: count for target, count in available.items() if target not in filled}
        return available

    def _ends_of_others(self) -> Offsets:
        """Returns the ends of what the application does not write itself: a backfill ends there."""
        return self._log.end_offsets([target for target in self._positions if target[0] not in self._written])

    def _available(self, runnable: Collection[str] | None = None) -> dict[TopicPartition, int]:
        """Returns how many records each partition has that were not read, as far as tasks can read them now."""
        positions = self._positions
        if runnable is not None and len(runnable) < len(self._targets):
            positions = {target: positions[target] for task in runnable for target in self._targets[task]}
        ends = self._log.end_offsets(positions)
        if self._ends is not None:
            ends = {target: min(end, self._ends.get(target, end)) for target, end in ends.items()}
        return {target: end - positions[target] for target, end in ends.items() if end > positions[target]}

    def _due(self, now_ms: int, runnable: Collection[str]) -> frozenset[str]:
        """Returns tasks that take part for the first time, and those whose clocks are due."""
        return frozenset(
            name
            for name in runnable
            if name in self._unopened
            or ((status := self._statuses.get(name)) is not None and is_due(status.next_clock_ms, now_ms))
        )

    def _make(
        self,
        batch_id: int,
        now_ms: int,
        available: Mapping[TopicPartition, int],
        due: frozenset[str],
        restores: frozenset[str],
    ) -> Plan:
        self._not_before = time.monotonic() + (self._interval_s or 0.0)
        self.lag = sum(self._available().values())
        chosen = self._choose(available)
        ranges = {
            key: tuple(chosen[target] for target in targets if target in chosen)
            for key, targets in self._targets.items()
            if any(target in chosen for target in targets)
        }
        return self._plan(batch_id, now_ms, ranges, due, restores)

    def _plan(
        self,
        batch_id: int,
        now_ms: int,
        ranges: Mapping[str, tuple[Range, ...]],
        due: frozenset[str] = frozenset(),
        restores: frozenset[str] = frozenset(),
    ) -> Plan:
        self._now_ms = max(self._now_ms, now_ms)
        return Plan(
            batch_id,
            self._now_ms,
            ranges,
            due,
            {name: status.stamp for name, status in self._statuses.items()},
            global_ends(self._layout, self._log),
            restores,
        )

    def _choose(self, available: Mapping[TopicPartition, int]) -> dict[TopicPartition, Range]:
        """Returns the ranges of a batch, all of them up to a common time if it cannot read everything."""
        # What went over a back edge is bounded by what the last batch did, and was meant for this one.
        inputs = {target: count for target, count in available.items() if target[0] not in self._internal}
        shares = share(inputs, self._admission.records)
        part = fitting(shares, self._log.record_bytes(shares))
        if part < 1.0:
            shares = {target: max(1, int(count * part)) for target, count in shares.items()}
        shares |= {target: count for target, count in available.items() if target not in inputs}
        limited = [target for target, count in shares.items() if count < available[target]]
        self._is_behind = bool(limited)
        horizon = self._horizon(shares, limited) if limited and self._common_time else None
        chosen: dict[TopicPartition, Range] = {}
        for target, count in shares.items():
            start = self._positions[target]
            end, resumes_ms = start + count, -1 if count < available[target] and self._idle_ms >= 0 else None
            if horizon is not None and target in inputs and target != horizon.leader:
                cut = self._log.offset_after(*target, start, end + 1, horizon.latest_ms)
                if cut is not None:
                    # Nothing before the cut is later than the common time, and nothing behind it is needed yet.
                    end, resumes_ms = cut, horizon.resumes_ms
            chosen[target] = Range(*target, start, end, resumes_ms)
        return chosen

    def _horizon(self, shares: Mapping[TopicPartition, int], limited: Collection[TopicPartition]) -> _Horizon | None:
        """Returns up to which time all inputs are read: the least that one of the limited ones reaches."""
        ends = {target: self._positions[target] + shares[target] for target in limited}
        times = {target: self._log.latest_time(*target, self._positions[target], ends[target]) for target in limited}
        reached = {target: time_ms for target, time_ms in times.items() if time_ms is not None}
        if not reached:
            return None
        leader = min(reached, key=lambda target: (reached[target], target))
        latest_ms = reached[leader]
        following_ms = self._log.latest_time(*leader, ends[leader], ends[leader] + 1)
        # If it goes on at the same time, as a table does that was loaded in one go, all of that comes first.
        return _Horizon(leader, latest_ms - (following_ms == latest_ms), latest_ms + 1)

    def done(self, plan: Plan, reports: Sequence[TaskReport], duration_ms: float) -> None:
        """Takes notice of a batch that was committed."""
        if self._interval_s is None:
            pause_ms = min(max(_SHORTEST_PAUSE_MS, _PAUSE_SHARE * duration_ms), _LONGEST_PAUSE_MS)
            self._not_before = time.monotonic() + pause_ms / 1000
        self._readiness.note({report.task: report.lag for report in reports if report.lag is not None})
        if not plan.has_work:
            return
        self._unread.done(plan)
        for report in reports:
            if report.receipt is not None:
                self._unopened.discard(report.task)
                self._statuses[report.task] = report.receipt.status
                self._positions.update(
                    {at: offset for at, offset in report.receipt.positions.items() if at in self._positions}
                )
        for report in reports:
            self._obsolete.update(report.obsolete)
        for each in (each for ranges in plan.ranges.values() for each in ranges if each.topic in self._internal):
            self._obsolete[each.topic, each.partition] = each.start
        self._admission.learn(sum(report.records for report in reports), duration_ms)

    def take_obsolete(self) -> Offsets:
        """Returns, now and then, what has gone over back edges, and what of changelogs no restore can need any more."""
        if time.monotonic() - self._purged < _PURGE_EVERY:
            return {}
        self._purged = time.monotonic()
        obsolete, self._obsolete = self._obsolete, {}
        return obsolete


def global_ends(layout: Layout, log: ReadableLog) -> dict[str, int]:
    """Returns up to where the topics of global tables can be read now, by ``partition_name``."""
    ends = log.end_offsets(layout.global_partitions())
    return {partition_name(*target): end for target, end in ends.items()}


def is_due(clock_ms: int | None, now_ms: int) -> bool:
    """Tells whether a clock has come to its time."""
    return clock_ms is not None and clock_ms <= now_ms


class _Horizon(NamedTuple):
    """Time up to which a batch reads that cannot read everything."""

    leader: TopicPartition
    """The input that decides it."""
    latest_ms: int
    """The others are read up to here."""
    resumes_ms: int
    """Where they go on, as far as the leader is concerned."""


def _own_topics(layout: Layout) -> tuple[set[str], set[str]]:
    """Returns the topics that the application writes, as far as they are known, and its back edges."""
    edges = {layout.topic_name(topic) for topic in back_edges(layout.topology)}
    sinks = {layout.topic_name(topic) for part in layout.parts.values() for topic in part.sink_topics}
    return edges | sinks, edges
