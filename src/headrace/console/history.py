"""History of the last minutes, in memory: rates, lag by partition, micro-batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from headrace.metrics.recording import BatchFigures
from headrace.topics.log import TopicPartition

_POINTS = 900
_BATCHES = 300
_RATE_MS = 10_000


class History:
    """Ring buffers of samples; written by the engine's thread and the recorder, read by requests.

    ``rate`` looks back over some seconds, so one long batch does not make it jump.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: deque[dict[str, int]] = deque(maxlen=_POINTS)
        self._batches: deque[dict[str, Any]] = deque(maxlen=_BATCHES)
        self._lags: dict[TopicPartition, deque[tuple[int, int]]] = {}
        self.records_in = 0
        self.records_out = 0
        self.lag = 0
        self.state_rows = 0
        self.last_batch_ms: int | None = None
        self.last_input_ms: int | None = None

    def add_batch(self, batch: BatchFigures, at_ms: int) -> None:
        """Keeps a micro-batch that was committed."""
        with self._lock:
            self.records_in += batch.records_in
            self.records_out += batch.records_out
            if not self._lags:
                # Until the log itself was asked.
                self.lag = batch.lag
            self.state_rows = batch.state_rows
            self.last_batch_ms = at_ms
            if batch.records_in:
                self.last_input_ms = at_ms
            self._batches.append(
                {
                    "batch_id": batch.batch_id,
                    "at_ms": at_ms,
                    "records_in": batch.records_in,
                    "records_out": batch.records_out,
                    "duration_ms": round(batch.duration_ms, 1),
                    "phases": {name: round(value, 1) for name, value in batch.phases.items()},
                }
            )

    def add_point(self, at_ms: int) -> None:
        """Keeps the totals as they are now; a recorder calls it about once a second."""
        with self._lock:
            self._points.append(
                {
                    "at_ms": at_ms,
                    "records_in": self.records_in,
                    "records_out": self.records_out,
                    "lag": self.lag,
                    "state_rows": self.state_rows,
                }
            )

    def add_lags(self, at_ms: int, lags: Mapping[TopicPartition, int]) -> None:
        """Keeps how many records wait in each partition, and their sum."""
        with self._lock:
            self.lag = sum(lags.values())
            for target, lag in lags.items():
                self._lags.setdefault(target, deque(maxlen=_POINTS)).append((at_ms, lag))

    def lags(self) -> dict[TopicPartition, int]:
        """Returns the lag of each partition at the last sample."""
        with self._lock:
            return {target: points[-1][1] for target, points in self._lags.items() if points}

    def rate(self, name: str) -> float:
        """Returns how many records per second came in or went out lately.

        >>> history = History()
        >>> history.add_point(0); history.records_in = 500; history.add_point(5_000)
        >>> history.rate("records_in")
        100.0
        """
        with self._lock:
            if len(self._points) < 2:
                return 0.0
            last = self._points[-1]
            first = next(point for point in self._points if point["at_ms"] >= last["at_ms"] - _RATE_MS)
            elapsed_ms = last["at_ms"] - first["at_ms"]
            return (last[name] - first[name]) / elapsed_ms * 1000 if elapsed_ms else 0.0

    def to_json(self) -> dict[str, Any]:
        """Returns everything, as the console reads it."""
        with self._lock:
            return {
                "points": list(self._points),
                "lags": [
                    {"topic": topic, "partition": partition, "points": list(points)}
                    for (topic, partition), points in sorted(self._lags.items())
                ],
                "batches": list(self._batches),
            }
