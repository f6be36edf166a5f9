"""Progress of a running application: sums over its micro-batches, as one line, and as a summary at the end."""

from __future__ import annotations

import time
from collections import deque

from headrace.app.engine import Batch

_SECONDS_OF_RATE = 5.0


def state_word(state: str, *, again: bool = False) -> str:
    """Returns a state as progress calls it; ``again``: there were micro-batches before.

    >>> state_word("REBALANCING"), state_word("REBALANCING", again=True), state_word("PENDING_SHUTDOWN")
    ('starting', 'rebalancing', 'stopping')
    """
    # Kafka's word is also that for a start.
    moving, stopping = "rebalancing" if again else "starting", "stopping"
    words = {"CREATED": moving, "REBALANCING": moving, "PENDING_SHUTDOWN": stopping, "PENDING_ERROR": stopping}
    return words.get(state, state.lower().replace("_", " "))


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

    def line(self, application: str, state: str, doing: str = "") -> str:
        """Returns the progress as one line; ``doing`` is what a start is busy with."""
        last = self.last
        if last is None:
            return f"{application}: {doing or state}, {self.seconds:.0f} s"
        return (
            f"{application}: {state}, {_plural(self.records_in, 'record')}, {self.rate():,.0f}/s, lag {last.lag:,}, "
            f"batch {last.duration_ms:,.0f} ms, state {_plural(last.state_rows, 'row')}"
        )

    def summary(self, application: str) -> str:
        """Returns the summary for the end."""
        others = ((self.changelogged, "to changelogs"), (self.dropped, "dropped"), (self.late, "late"))
        rest = [f"{count:,} {what}" for count, what in others if count]
        parts = [f"{_plural(self.records_in, 'record')} read", f"{self.records_out:,} written", *rest]
        return f"{application}: {', '.join(parts)}, {self.micro_batches} in {self.seconds:.1f} s"

    def rate(self) -> float:
        """Returns records per second of late."""
        now = time.monotonic()
        recent = [count for moment, count in list(self._recent) if now - moment <= _SECONDS_OF_RATE]
        return sum(recent) / max(min(_SECONDS_OF_RATE, self.seconds), 1e-9)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
