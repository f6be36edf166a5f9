"""Stall detection: no progress in spite of lag, and the reason."""

from __future__ import annotations

from dataclasses import dataclass

_NO_INPUT_MS = 30_000
_SLOW_BATCH_MS = 30_000
_SLOW_START_MS = 60_000

STOPPED = frozenset({"NOT_RUNNING", "ERROR", "PENDING_ERROR", "PENDING_SHUTDOWN"})


@dataclass(frozen=True, kw_only=True)
class StallInputs:
    """Facts about an application at one moment."""

    now_ms: int
    state: str
    paused: bool = False
    changed_ms: int = 0
    """When the state changed last, or the application was paused."""
    lag: int = 0
    """Records that wait to be read."""
    last_batch_ms: int | None = None
    """When the last micro-batch ended."""
    last_input_ms: int | None = None
    """When a micro-batch last had records."""
    failing_since_ms: int | None = None
    """The first of the failures since the last batch that succeeded."""
    last_failure: str | None = None
    log_failure: str | None = None
    """Why the log cannot be asked, if so."""
    log_failed_ms: int | None = None


@dataclass(frozen=True)
class Stall:
    """Reason why an application makes no progress, and since when."""

    reason: str
    since_ms: int
    text: str

    @property
    def is_healthy(self) -> bool:
        """Whether the lack of progress is intended: no input, a pause, or tasks that are restored."""
        return self.reason in ("no-input", "paused", "restoring")


def find_stall(facts: StallInputs) -> Stall | None:
    """Returns why nothing moves, or None if it does.

    >>> facts = StallInputs(now_ms=90_000, state="RUNNING", lag=5, last_batch_ms=40_000, last_input_ms=40_000)
    >>> find_stall(facts).text
    'A batch has been running for 50 s; 5 records wait'
    """
    if facts.state in STOPPED:
        why = f": {facts.last_failure}" if facts.last_failure and "ERROR" in facts.state else ""
        return Stall("stopped", facts.changed_ms, f"The application does not run ({facts.state}){why}")
    if facts.failing_since_ms is not None:
        return Stall("failing", facts.failing_since_ms, f"Batches fail: {facts.last_failure}")
    if facts.log_failed_ms is not None:
        return Stall("waiting-for-broker", facts.log_failed_ms, f"The topic log does not answer: {facts.log_failure}")
    if facts.paused:
        return Stall("paused", facts.changed_ms, f"Paused; {facts.lag:,} records wait")
    if facts.state != "RUNNING":
        waited_ms = facts.now_ms - facts.changed_ms
        if facts.state == "REBALANCING" and facts.last_batch_ms is not None:
            stall = _detect_idle(facts)
            if stall is not None and not stall.is_healthy:
                return stall
            text = f"Some tasks are being restored, or move, since {waited_ms // 1000} s"
            return Stall("restoring", facts.changed_ms, text)
        slow = waited_ms > _SLOW_START_MS
        return Stall(
            "starting", facts.changed_ms, f"Still starting after {waited_ms // 1000} s" if slow else "Starting"
        )
    return _detect_idle(facts)


def _detect_idle(facts: StallInputs) -> Stall | None:
    since_ms = facts.changed_ms if facts.last_batch_ms is None else facts.last_batch_ms
    quiet_ms = facts.now_ms - since_ms
    if facts.lag and quiet_ms > _SLOW_BATCH_MS:
        text = f"A batch has been running for {quiet_ms // 1000} s; {facts.lag:,} records wait"
        return Stall("slow-batch", since_ms, text)
    input_ms = facts.changed_ms if facts.last_input_ms is None else facts.last_input_ms
    if not facts.lag and facts.now_ms - input_ms > _NO_INPUT_MS:
        return Stall("no-input", input_ms, "No new records in the input topics; everything is processed")
    return None
