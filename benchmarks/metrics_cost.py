"""What do metrics cost? Throughput with and without them, by turns, at the levels INFO and DEBUG.

Two long runs differ by more than the target on a shared machine, even in processor time, because others share caches
and cores. So turns are short and next to each other: within one application every other micro-batch runs without
metrics, which means that what tasks and application do for them is replaced by nothing; what counts is the median of
the ratios of neighbours. What counts at DEBUG is decided when tasks are built, so there whole runs take turns. Tasks,
plans and commits are the engine's own; they run in this process, without Spark.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from headrace import Materialized, StreamsBuilder
from headrace.batches.batch_engine import BatchEngine
from headrace.batches.executor import LocalExecutor
from headrace.batches.live_task import LiveTask
from headrace.batches.plan import Plan
from headrace.batches.reports import BatchReport, Outcome
from headrace.metrics.recording import Recording
from headrace.runtime.task_state import TaskState
from tests.views.kit import Place

TARGET = 0.03
BATCH = 10_000
_NUMBERS = count()


def build(builder: StreamsBuilder) -> None:
    dear = builder.stream("in").filter(lambda key, order: order["cents"] > 10)
    dear.map_values(lambda order: order["cents"]).group_by_key().count(
        materialized=Materialized("counts")
    ).to_stream().to("out")


@contextmanager
def without_metrics() -> Iterator[None]:
    def nothing(*_: Any, **__: Any) -> None:
        return None

    with ExitStack() as patched:
        for owner, name, instead in (
            (Recording, "add", nothing),
            (TaskState, "count_at", nothing),
            (TaskState, "take_figures", lambda _: ({}, {})),
            (LiveTask, "new_counts", lambda _: {}),
        ):
            patched.enter_context(patch.object(owner, name, instead))
        yield


def fill(place: Place, records: int) -> None:
    values = [json.dumps({"cents": each % 100, "item": "book"}).encode() for each in range(100)]
    for start in range(0, records, BATCH):
        place.log.append(
            "in",
            [
                (None, 1_000_000 + each, f"customer-{each % 5000}".encode(), values[each % 100], ())
                for each in range(start, start + BATCH)
            ],
        )


def run(place: Place, level: str, *, is_off: Callable[[int], bool] = lambda _: False) -> dict[int, float]:
    """Processes all records by a new application; returns the seconds of the processor by full micro-batch.

    ``is_off`` tells of each one whether it is to run without metrics.
    """
    streams = place.streams(
        build, application_id=f"run-{next(_NUMBERS)}", max_batch_records=BATCH, metrics_recording_level=level
    )
    seconds: list[float] = []
    sizes: list[int] = []
    streams.add_batch_listener(lambda batch: sizes.append(batch.records_in))
    execute, tell = LocalExecutor.run, BatchEngine._tell
    turn, begun = ExitStack(), 0.0

    def begin(executor: LocalExecutor, plans: Mapping[str, Plan]) -> Mapping[str, Outcome]:
        nonlocal begun
        turn.enter_context(without_metrics() if is_off(len(seconds)) else nullcontext())
        begun = time.process_time()
        return execute(executor, plans)

    def end(engine: BatchEngine, report: BatchReport) -> None:
        tell(engine, report)
        seconds.append(time.process_time() - begun)
        turn.close()

    gc.collect()
    with turn, patch.object(LocalExecutor, "run", begin), patch.object(BatchEngine, "_tell", end):
        streams.start(until_end=True)
        streams.wait(timedelta(minutes=5))
    # The first one builds the tasks.
    return {each: seconds[each] for each, records in enumerate(sizes) if each > 0 and records == BATCH}


def is_off(batch: int) -> bool:
    """Without, with, with, without: so that what gets slower in time is the same for both."""
    return batch % 4 in (0, 3)


def losses(seconds: Mapping[int, float]) -> list[float]:
    """Returns the share of throughput that metrics take, for each pair of neighbours.

    >>> losses({2: 2.0, 3: 1.0, 4: 1.0, 5: 1.25})
    [0.5, 0.19999999999999996]
    """
    pairs = [(each, each + 1) for each in seconds if each % 2 == 0 and each + 1 in seconds]
    ordered = [pair if is_off(pair[0]) else pair[::-1] for pair in pairs]
    return [1 - seconds[off] / seconds[on] for off, on in ordered]


@dataclass(frozen=True)
class Spread:
    """The median of several figures, in which interval it lies with a probability of 95 %, and the quartiles."""

    median: float
    low: float
    high: float
    quartiles: tuple[float, float]

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        ranked, half = sorted(figures), 0.98 * math.sqrt(len(figures))
        middle = len(ranked) / 2
        low, high = max(0, math.floor(middle - half)), min(len(ranked) - 1, math.ceil(middle + half))
        first, median, third = statistics.quantiles(ranked, n=4)
        return cls(median, ranked[low], ranked[high], (first, third))

    def __str__(self) -> str:
        first, third = self.quartiles
        return f"{self.median:.2%} (95 %: {self.low:.2%} to {self.high:.2%}; quartiles {first:.1%} to {third:.1%})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    at_info: list[float] = []
    at_debug: list[float] = []
    rates: list[float] = []
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        place = Place(Path(directory), **{"in": 2})
        fill(place, options.records)
        run(place, "DEBUG")
        for _ in range(options.rounds):
            at_info += losses(run(place, "INFO", is_off=is_off))
            info, debug = (statistics.median(run(place, level).values()) for level in ("INFO", "DEBUG"))
            at_debug.append(1 - info / debug)
            rates.append(BATCH / info)
        place.close()
    cost = Spread.of(at_info)
    print(f"INFO  {statistics.median(rates):12,.0f} records/s of processor time, in micro-batches of {BATCH:,}")
    print(f"INFO  costs {cost} of throughput in {len(at_info)} pairs of turns; target: under {TARGET:.0%}")
    print(f"DEBUG costs {Spread.of(at_debug)} against INFO in {len(at_debug)} pairs of runs")
    return 0 if cost.median < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
