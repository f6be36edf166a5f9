"""Recorder: samples the application about once a second, for history and stall detection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from headrace.console.dropped_records import DroppedRecords
from headrace.console.history import History
from headrace.console.monitored_application import MonitoredApplication
from headrace.console.node_metrics import node_figures
from headrace.console.stall_detection import Stall, StallInputs, find_stall
from headrace.errors import StreamsError
from headrace.metrics.names import CLIENT, TOPIC, MetricName, Metrics
from headrace.metrics.recording import BatchFigures
from headrace.topics.log import TopicPartition
from headrace.topology.queryable_stores import topics_of_others

_INTERVAL_S = 1.0
# Asking the log is a request to a broker on Kafka, so it is done less often.
_SAMPLES_PER_LAG = 3


def _now_ms() -> int:
    return int(time.time() * 1000)


class Recorder:
    """Feeds the history of an application from a thread of its own; ``sample`` can be called instead, by a test."""

    def __init__(self, observed: MonitoredApplication, *, now_ms: Callable[[], int] = _now_ms) -> None:
        self._observed = observed
        self._now_ms = now_ms
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-recorder", daemon=True)
        self._samples = 0
        self._log_failure: tuple[int, str] | None = None
        self.history = History()
        self.rejected = DroppedRecords()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def on_batch(self, batch: BatchFigures) -> None:
        """A batch listener of the application."""
        now_ms = self._now_ms()
        self.history.add_batch(batch, now_ms)
        self.rejected.add(getattr(batch, "tasks", ()), now_ms)

    def _run(self) -> None:
        while not self._stopping.wait(_INTERVAL_S):
            self.sample()

    def sample(self) -> None:
        """Takes one sample."""
        if self._samples % _SAMPLES_PER_LAG == 0:
            self._look_at_log()
        self._samples += 1
        self.history.add_point(self._now_ms())

    def _look_at_log(self) -> None:
        now_ms = self._now_ms()
        try:
            self.history.add_lags(now_ms, self._lags())
            self._log_failure = None
        except (StreamsError, OSError) as error:
            # Since the first time that it did not answer.
            since_ms = now_ms if self._log_failure is None else self._log_failure[0]
            self._log_failure = since_ms, str(error)

    def _lags(self) -> dict[TopicPartition, int]:
        log, topology = self._observed.log, self._observed.topology
        application = self._observed.config.application_id
        counts = log.partition_counts()
        inputs = [
            (topic, partition)
            for topic in topics_of_others(topology, application, counts)
            if any(source.reads(topic) for source in topology.source_nodes)
            for partition in range(counts[topic])
        ]
        done, begins, ends = log.positions(application), log.begin_offsets(inputs), log.end_offsets(inputs)
        return {target: max(0, ends[target] - done.get(target, begins[target])) for target in inputs}

    def stall(self) -> Stall | None:
        """Returns why nothing moves, or None."""
        return find_stall(self._stall_inputs())

    def _stall_inputs(self) -> StallInputs:
        observed, history = self._observed, self.history
        failures = observed.failures
        last_batch_ms = history.last_batch_ms
        recent = [failed for failed in failures if last_batch_ms is None or failed.at_ms > last_batch_ms]
        return StallInputs(
            now_ms=self._now_ms(),
            state=observed.state_name,
            paused=observed.is_paused,
            changed_ms=observed.state_since_ms,
            lag=history.lag,
            last_batch_ms=last_batch_ms,
            last_input_ms=history.last_input_ms,
            failing_since_ms=recent[-1].at_ms if recent else None,
            last_failure=failures[0].message if failures else None,
            log_failure=None if self._log_failure is None else self._log_failure[1],
            log_failed_ms=None if self._log_failure is None else self._log_failure[0],
        )

    def metrics(self) -> Metrics:
        """Returns the metrics of the application, and whether it is stalled."""
        found, stall = self._observed.metrics(), self.stall()
        values = {name: found[name] for name in found if isinstance(name, MetricName)}
        tags: tuple[tuple[str, str], ...] = (("client-id", self._observed.config.application_id),)
        stalled = stall is not None and not stall.is_healthy
        reason = "none" if stall is None else stall.reason
        values[MetricName("stalled", CLIENT, (*tags, ("reason", reason)))] = int(stalled)
        values[MetricName("records-lag", CLIENT, tags)] = self.history.lag
        lags = self.history.lags()
        for (topic, partition), lag in lags.items():
            place = (("topic-name", topic), ("partition", str(partition)))
            values[MetricName("partition-records-lag", TOPIC, (*tags, *place))] = lag
        return Metrics(values, found.summary)

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Returns the metrics of each node, as the console reads them."""
        observed = self._observed
        return node_figures(observed.topology, observed.config.application_id, observed.metrics())

    def application(self) -> dict[str, Any]:
        """Returns how the application is, as the console reads it."""
        observed, history, stall = self._observed, self.history, self.stall()
        metrics = observed.metrics()
        return {
            "application_id": observed.config.application_id,
            "state": observed.state_name,
            "paused": observed.is_paused,
            "now_ms": self._now_ms(),
            "started_ms": observed.started_ms,
            "rate_in": round(history.rate("records_in"), 1),
            "rate_out": round(history.rate("records_out"), 1),
            "lag": history.lag,
            "state_rows": history.state_rows,
            "late_total": metrics.get("late-records-total", 0),
            "dropped_total": metrics.get("dropped-records-total", 0),
            "dead_total": metrics.get("dead-letters-total", 0),
            "failures": [{"at_ms": failed.at_ms, "message": failed.message} for failed in observed.failures],
            "stall": None
            if stall is None
            else {"reason": stall.reason, "since_ms": stall.since_ms, "text": stall.text},
        }
