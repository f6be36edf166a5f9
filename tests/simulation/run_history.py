"""Runs of histories by log and seed, with all rules kept or one of them switched off."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from tests.simulation.embedded_history import run_embedded
from tests.simulation.history import History
from tests.simulation.invariants import Violation
from tests.simulation.kafka_history import run_kafka
from tests.simulation.rules import Switch

RUNS: dict[str, Callable[[int, Switch | None, Callable[[str], None] | None], History]] = {
    "kafka": run_kafka,
    "embedded": run_embedded,
}
_COLLECT_EVERY = 25


class Result(NamedTuple):
    """The end of a history."""

    log: str
    seed: int
    violation: BaseException | None
    steps: int = 0
    batches: int = 0
    seconds: float = 0.0


def run_history(
    log: str, seed: int, switch: Switch | None = None, trace: Callable[[str], None] | None = None
) -> Result:
    """Runs one history. What the engine raises and nobody there catches is as bad as a violation."""
    begun = time.perf_counter()
    failure: Exception | None = None
    history: History | None = None
    with nullcontext() if switch is None else switch.on():
        try:
            history = RUNS[log](seed, switch, trace)
        except Violation as error:
            failure = error
        except Exception as error:
            if switch is not None:
                raise
            failure = error
    seconds = time.perf_counter() - begun
    if history is None:
        return Result(log, seed, failure, seconds=seconds)
    return Result(log, seed, None, history.scheduler.steps, history.batches, seconds)


def run_histories(logs: Sequence[str], seeds: Iterable[int], switch: Switch | None = None) -> Iterator[Result]:
    """Runs the history of each seed on each log, one after the other."""
    # What histories leave behind is full of cycles; when it goes must not depend on the collector's mood.
    gc.disable()
    gc.freeze()
    for number, seed in enumerate(seeds):
        for log in logs:
            yield run_history(log, seed, switch)
        if number % _COLLECT_EVERY == 0:
            gc.collect()
