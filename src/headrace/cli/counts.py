"""What a running application has done: sums over its micro-batches, and the rate of late."""

from __future__ import annotations

import time
from collections import deque

from headrace.app.engine import Batch

_SECONDS_OF_RATE = 5.0


class Counts:
    """Sums over the micro-batches of an application. One thread adds to them, any other may look."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._recent: deque[tuple[float, int]] = deque(maxlen=1_000)
        self.last: Batch | None = None
        self.batches = self.records_in = self.records_out = self.changelogged = self.dropped = self.late = 0

    def add(self, batch: Batch) -> None:
        self.last = batch
        self.batches += 1
        self.records_in += batch.records_in
        self.records_out += batch.records_out
        self.changelogged += batch.changelogged
        self.dropped += batch.dropped
        self.late += batch.late
        self._recent.append((time.monotonic(), batch.records_in))

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._started

    @property
    def micro_batches(self) -> str:
        return "1 micro-batch" if self.batches == 1 else f"{self.batches:,} micro-batches"

    def rate(self) -> float:
        """Returns records per second of late."""
        now = time.monotonic()
        recent = [count for moment, count in list(self._recent) if now - moment <= _SECONDS_OF_RATE]
        return sum(recent) / max(min(_SECONDS_OF_RATE, self.seconds), 1e-9)
