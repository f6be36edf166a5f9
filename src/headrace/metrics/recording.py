"""Keeps what micro-batches report, and says it under Kafka Streams' names."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from headrace.metrics.names import BATCH, CLIENT, NODE, STATE, TASK, THREAD, TOPIC, MetricName

_WINDOW_S = 30.0
_STEP_S = 1.0


class TaskFigures(Protocol):
    """What a task reports of a micro-batch."""

    @property
    def task(self) -> str: ...
    @property
    def records(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def chunk_rows(self) -> int: ...
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


@runtime_checkable
class BatchFigures(Protocol):
    """What is known of a micro-batch."""

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
    def chunk_rows(self) -> int: ...
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


class _Times:
    """How long something takes: the mean and the longest of the last half minute."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=1000)

    def add(self, milliseconds: float, weight: float, now: float) -> None:
        self._seen.append((now, milliseconds, weight))

    def figures(self, now: float) -> tuple[float, float]:
        recent = [(value, weight) for at, value, weight in self._seen if now - at <= _WINDOW_S]
        if not recent:
            return 0.0, 0.0
        weights = sum(weight for _, weight in recent)
        mean = sum(value * weight for value, weight in recent) / weights if weights else 0.0
        return mean, max(value for value, _ in recent)


class Recording:
    """What an application has done so far. The engine's thread writes, any thread reads."""

    def __init__(self, client_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._client = (("client-id", client_id),)
        self._thread = (("thread-id", f"{client_id}-StreamThread-1"),)
        self._lock = threading.Lock()
        self._counters: dict[MetricName, _Counter] = {}
        self._times: dict[MetricName, _Times] = {}
        self._gauges: dict[MetricName, Any] = {}
        self._totals: dict[str, float] = {}
        self._last: dict[str, Any] = {}

    def add(self, batch: BatchFigures, tasks: Iterable[TaskFigures] = (), *, dead_letters: str | None = None) -> None:
        """Keeps what a micro-batch has done; ``dead_letters`` is the topic of those."""
        now = self._clock()
        with self._lock:
            for task in tasks:
                self._add_task(task, now, dead_letters)
            self._add_batch(batch, now)

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
        self._time("process-latency", THREAD, thread, batch.phases.get("run", batch.duration_ms), 1, now)
        self._time("commit-latency", THREAD, thread, batch.phases.get("publish", 0.0), 1, now)
        self._time("poll-latency", THREAD, thread, batch.phases.get("wait", 0.0), 1, now)
        for phase, milliseconds in batch.phases.items():
            tags = (*thread, ("phase", phase))
            self._time("phase-latency", BATCH, tags, milliseconds, 1, now)
            self._count("phase-time", BATCH, tags, milliseconds, now)
        self._time("batch-latency", BATCH, thread, batch.duration_ms, 1, now)
        self._gauges |= {
            MetricName("records-lag", CLIENT, self._client): batch.lag,
            MetricName("state-rows", CLIENT, self._client): batch.state_rows,
            MetricName("chunk-rows", CLIENT, self._client): batch.chunk_rows,
            MetricName("batch-id", BATCH, thread): batch.batch_id,
        }
        self._last = {
            "batch-id": batch.batch_id,
            "batch-ms": batch.duration_ms,
            "batch-phases-ms": dict(batch.phases),
            "lag": batch.lag,
            "state-rows": batch.state_rows,
            "chunk-rows": batch.chunk_rows,
        }

    def _add_task(self, task: TaskFigures, now: float, dead_letters: str | None) -> None:
        tags = (*self._thread, ("task-id", task.task))
        processed = sum(task.consumed.values()) or task.records
        self._count("process", TASK, tags, processed, now)
        if processed:
            self._time("process-latency", TASK, tags, task.seconds * 1000 / processed, processed, now)
        self._time("batch-latency", TASK, tags, task.seconds * 1000, 1, now)
        self._count("commit", TASK, tags, 1, now)
        self._gauges[MetricName("num-rows", STATE, tags)] = task.rows
        self._gauges[MetricName("chunk-rows", STATE, tags)] = task.chunk_rows
        for name, value in task.counters.items():
            self._count(name.removesuffix("-total"), TASK, tags, value, now)
        for topic, records in task.consumed.items():
            self._count("records-consumed", TOPIC, (*tags, ("topic-name", topic)), records, now)
        for topic, records in task.produced.items():
            self._count("records-produced", TOPIC, (*tags, ("topic-name", topic)), records, now)
            if topic == dead_letters:
                self._totals["dead-letters-total"] = self._totals.get("dead-letters-total", 0) + records
                self._count("dead-letters", THREAD, self._thread, records, now)
        for name, records in task.nodes.items():
            what, _, node = name.partition("/")
            metric = {"dropped": "dropped-records", "errors": "skipped-records"}.get(what, what)
            self._count(metric, NODE, (*tags, ("processor-node-id", node)), records, now)

    def _count(self, name: str, group: str, tags: tuple[tuple[str, str], ...], amount: float, now: float) -> None:
        key = MetricName(name, group, tags)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter()
        counter.add(amount, now)

    def _time(
        self, name: str, group: str, tags: tuple[tuple[str, str], ...], milliseconds: float, weight: float, now: float
    ) -> None:
        key = MetricName(name, group, tags)
        times = self._times.get(key)
        if times is None:
            times = self._times[key] = _Times()
        times.add(milliseconds, weight, now)

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
            for key, times in self._times.items():
                mean, most = times.figures(now)
                found[MetricName(f"{key.name}-avg", key.group, key.tags)] = mean
                found[MetricName(f"{key.name}-max", key.group, key.tags)] = most
            found |= self._gauges
        return found

    def client_metric(self, name: str) -> MetricName:
        """Returns the name of a metric of the whole application."""
        return MetricName(name, CLIENT, self._client)


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
