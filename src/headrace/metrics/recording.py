"""Recorder of micro-batch reports, under the metric names of Kafka Streams."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from headrace.metrics.names import BATCH, CACHE, CLIENT, NODE, STATE, TASK, THREAD, TOPIC, MetricName
from headrace.runtime.measures import Measure

_WINDOW_S = 30.0
_STEP_S = 1.0
_AT_NODES = {
    "dropped": "dropped-records",
    "errors": "skipped-records",
    "late": "late-records",
    "expired": "expired-rows",
}

Tags = tuple[tuple[str, str], ...]


class TaskFigures(Protocol):
    """Figures that a task reports of a micro-batch."""

    @property
    def task(self) -> str: ...
    @property
    def records(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def counters(self) -> Mapping[str, float]: ...
    @property
    def consumed(self) -> Mapping[str, int]: ...
    @property
    def produced(self) -> Mapping[str, int]: ...
    @property
    def nodes(self) -> Mapping[str, int]: ...
    @property
    def measures(self) -> Mapping[str, Measure]: ...
    @property
    def restored(self) -> int: ...


@runtime_checkable
class BatchFigures(Protocol):
    """Figures of a micro-batch."""

    @property
    def batch_id(self) -> int: ...
    @property
    def records_in(self) -> int: ...
    @property
    def records_out(self) -> int: ...
    @property
    def duration_ms(self) -> float: ...
    @property
    def lag(self) -> int: ...
    @property
    def state_rows(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def phases(self) -> Mapping[str, float]: ...


class _Counter:
    """A total, and how fast it has grown lately."""

    __slots__ = ("_seen", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self._seen: deque[tuple[float, float]] = deque()

    def add(self, amount: float, now: float) -> None:
        if not self._seen or now - self._seen[-1][0] >= _STEP_S:
            self._seen.append((now, self.total))
            while self._seen and now - self._seen[0][0] > _WINDOW_S:
                self._seen.popleft()
        self.total += amount

    def rate(self, now: float) -> float:
        for at, total in self._seen:
            if now - at <= _WINDOW_S:
                return (self.total - total) / max(now - at, _STEP_S)
        return 0.0


class _Measured:
    """Measurements of the last half minute: the mean, the least and the most."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Measure]] = deque(maxlen=1000)

    def add(self, measure: Measure, now: float) -> None:
        self._seen.append((now, measure))

    def figures(self, now: float) -> tuple[float, float, float]:
        recent = [measure for at, measure in self._seen if now - at <= _WINDOW_S]
        times = sum(each.times for each in recent)
        if not times:
            return 0.0, 0.0, 0.0
        mean = sum(each.total for each in recent) / times
        return mean, min(each.least for each in recent), max(each.most for each in recent)


class Recording:
    """Metrics of an application so far. The engine's thread writes, any thread reads."""

    def __init__(self, client_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._client = (("client-id", client_id),)
        self._thread = (("thread-id", f"{client_id}-StreamThread-1"),)
        self._lock = threading.Lock()
        self._counters: dict[MetricName, _Counter] = {}
        self._measured: dict[MetricName, _Measured] = {}
        self._gauges: dict[MetricName, Any] = {}
        self._totals: dict[str, float] = {}
        self._last: dict[str, Any] = {}

    def add(self, batch: BatchFigures, tasks: Iterable[TaskFigures] = ()) -> None:
        """Keeps what a micro-batch has done."""
        now = self._clock()
        with self._lock:
            for task in tasks:
                self._add_task(task, now)
            self._add_batch(batch, now)

    def add_state(self, task: str, kind: str, figures: Mapping[str, float]) -> None:
        """Keeps the figures of a task's stores on disk, named as their environment names them."""
        tags = (*self._thread, ("task-id", task))
        with self._lock:
            for name, value in figures.items():
                metric, _, store = name.partition("/")
                store_tags = (*tags, (f"{kind}-state-id", store)) if store else tags
                self._gauges[MetricName(metric, STATE, store_tags)] = value

    def _add_batch(self, batch: BatchFigures, now: float) -> None:
        thread = self._thread
        for name, amount in (
            ("commit", 1),
            ("poll", 1),
            ("process", batch.records_in),
            ("records-consumed", batch.records_in),
            ("records-produced", batch.records_out),
            ("dropped-records", batch.dropped),
            ("late-records", batch.late),
        ):
            self._count(name, THREAD, thread, amount, now)
        for name, amount in (
            ("batches-total", 1),
            ("records-consumed-total", batch.records_in),
            ("records-produced-total", batch.records_out),
            ("dropped-records-total", batch.dropped),
            ("late-records-total", batch.late),
        ):
            self._totals[name] = self._totals.get(name, 0) + amount
        self._time("process-latency", THREAD, thread, batch.phases.get("run", batch.duration_ms), now)
        self._time("commit-latency", THREAD, thread, batch.phases.get("publish", 0.0), now)
        self._time("poll-latency", THREAD, thread, batch.phases.get("wait", 0.0), now)
        for phase, milliseconds in batch.phases.items():
            tags = (*thread, ("phase", phase))
            self._time("phase-latency", BATCH, tags, milliseconds, now)
            self._count("phase-time", BATCH, tags, milliseconds, now)
        self._time("batch-latency", BATCH, thread, batch.duration_ms, now)
        self._gauges |= {
            MetricName("records-lag", CLIENT, self._client): batch.lag,
            MetricName("state-rows", CLIENT, self._client): batch.state_rows,
            MetricName("batch-id", BATCH, thread): batch.batch_id,
        }
        self._last = {
            "batch-id": batch.batch_id,
            "batch-ms": batch.duration_ms,
            "batch-phases-ms": dict(batch.phases),
            "lag": batch.lag,
            "state-rows": batch.state_rows,
        }

    def _add_task(self, task: TaskFigures, now: float) -> None:
        tags = (*self._thread, ("task-id", task.task))
        processed = sum(task.consumed.values()) or task.records
        self._count("process", TASK, tags, processed, now)
        if processed:
            total_ms = task.seconds * 1000
            each_ms = total_ms / processed
            self._measure("process-latency", TASK, tags, Measure(processed, total_ms, each_ms, each_ms), now)
        self._time("batch-latency", TASK, tags, task.seconds * 1000, now)
        self._count("commit", TASK, tags, 1, now)
        self._gauges[MetricName("num-rows", STATE, tags)] = task.rows
        self._count("restore", TASK, tags, task.restored, now)
        # A task that reports has all its rows.
        self._gauges[MetricName("restore-remaining-records-total", TASK, tags)] = 0
        for name, value in task.counters.items():
            self._count(name.removesuffix("-total"), TASK, tags, value, now)
        for topic, records in task.consumed.items():
            self._count("records-consumed", TOPIC, (*tags, ("topic-name", topic)), records, now)
        for topic, records in task.produced.items():
            self._count("records-produced", TOPIC, (*tags, ("topic-name", topic)), records, now)
        for name, records in task.nodes.items():
            what, _, where = name.partition("/")
            if what == "dead-letters":
                self._add_dead_letters(records, now)
            else:
                self._count(_AT_NODES.get(what, what), NODE, (*tags, ("processor-node-id", where)), records, now)
        for name, measure in task.measures.items():
            self._add_measure(name, measure, tags, now)

    def _add_dead_letters(self, records: int, now: float) -> None:
        self._totals["dead-letters-total"] = self._totals.get("dead-letters-total", 0) + records
        self._count("dead-letters", THREAD, self._thread, records, now)

    def _add_measure(self, name: str, measure: Measure, tags: Tags, now: float) -> None:
        what, _, store = name.partition("/")
        if store:
            self._measure(what, CACHE, (*tags, ("record-cache-id", store)), measure, now)
            return
        self._measure(what, TASK, tags, measure, now)
        if what == "punctuate-latency":
            self._count("punctuate", TASK, tags, measure.times, now)
            self._count("punctuate", THREAD, self._thread, measure.times, now)
            self._measure(what, THREAD, self._thread, measure, now)

    def _count(self, name: str, group: str, tags: Tags, amount: float, now: float) -> None:
        key = MetricName(name, group, tags)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter()
        counter.add(amount, now)

    def _time(self, name: str, group: str, tags: Tags, milliseconds: float, now: float) -> None:
        self._measure(name, group, tags, Measure(1, milliseconds, milliseconds, milliseconds), now)

    def _measure(self, name: str, group: str, tags: Tags, measure: Measure, now: float) -> None:
        key = MetricName(name, group, tags)
        measured = self._measured.get(key)
        if measured is None:
            measured = self._measured[key] = _Measured()
        measured.add(measure, now)

    def summary(self) -> dict[str, Any]:
        """Returns what concerns the whole application, by plain names; nothing before the first micro-batch."""
        with self._lock:
            return {name: _whole(value) for name, value in self._totals.items()} | self._last

    def values(self) -> dict[MetricName, Any]:
        """Returns everything, as of now."""
        now = self._clock()
        found: dict[MetricName, Any] = {}
        with self._lock:
            for key, counter in self._counters.items():
                found[MetricName(f"{key.name}-total", key.group, key.tags)] = _whole(counter.total)
                found[MetricName(f"{key.name}-rate", key.group, key.tags)] = counter.rate(now)
            for key, measured in self._measured.items():
                mean, least, most = measured.figures(now)
                found[MetricName(f"{key.name}-avg", key.group, key.tags)] = mean
                found[MetricName(f"{key.name}-max", key.group, key.tags)] = most
                if key.group == CACHE:
                    found[MetricName(f"{key.name}-min", key.group, key.tags)] = least
            found |= self._gauges
        return found

    def client_metric(self, name: str) -> MetricName:
        """Returns the name of a metric of the whole application."""
        return MetricName(name, CLIENT, self._client)

    def task_metric(self, name: str, task: str) -> MetricName:
        """Returns the name of a metric of a task."""
        return MetricName(name, TASK, (*self._thread, ("task-id", task)))


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def rates_by(values: Mapping[MetricName, Any], name: str, group: str, tag: str) -> dict[str, float]:
    """Adds up a metric over all tasks, by one of its tags."""
    found: dict[str, float] = {}
    for metric, value in values.items():
        if metric.name == name and metric.group == group:
            what = dict(metric.tags).get(tag)
            if what is not None:
                found[what] = found.get(what, 0) + value
    return found
