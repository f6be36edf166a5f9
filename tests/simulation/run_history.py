"""Runs of histories by log and seed, with all rules kept or one of them switched off."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
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
_COLLECT_EVERY = 20


class Result(NamedTuple):
    """The end of a history."""

    seed: int
    violation: BaseException | None
    steps: int = 0
    batches: int = 0


def run_history(
    log: str, seed: int, switch: Switch | None = None, trace: Callable[[str], None] | None = None
) -> Result:
    """Runs one history. What the engine raises and nobody there catches is as bad as a violation."""
    with nullcontext() if switch is None else switch.on():
        try:
            history = RUNS[log](seed, switch, trace)
        except Violation as error:
            return Result(seed, error)
        except Exception as error:
            if switch is not None:
                raise
            return Result(seed, error)
    return Result(seed, None, history.scheduler.steps, history.batches)


def run_histories(log: str, seeds: Iterable[int], switch: Switch | None = None) -> Iterator[Result]:
    """Runs one history after the other."""
    # What histories leave behind is full of cycles; when it goes must not depend on the collector's mood.
    gc.disable()
    for number, seed in enumerate(seeds):
        yield run_history(log, seed, switch)
        if number % _COLLECT_EVERY == 0:
            gc.collect()
