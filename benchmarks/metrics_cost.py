"""What do metrics cost? The share of an application's time that is spent on them, at the level INFO.

Two runs next to each other differ by more than the target on a shared machine, so the time of what is done for metrics
is taken inside of one run: node counts that tasks hand over, and what is kept of every report. At DEBUG every node
counts every record, and there the rates of two runs are compared. Tasks, plans and commits are the engine's own; they
run in this process, without Spark.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from headrace import Materialized, StreamsBuilder
from headrace.metrics.recording import Recording
from headrace.runtime.task_state import TaskState
from tests.query.kit import Place

TARGET = 0.03


def build(builder: StreamsBuilder) -> None:
    dear = builder.stream("in").filter(lambda key, order: order["cents"] > 10)
    dear.map_values(lambda order: order["cents"]).group_by_key().count(
        materialized=Materialized("counts")
    ).to_stream().to("out")


class Spent:
    """Seconds of the processor that were spent in functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            begun = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.thread_time() - begun

        return call


@contextmanager
def timing(spent: Spent) -> Iterator[None]:
    with (
        patch.object(Recording, "add", spent.timed(Recording.add)),
        patch.object(TaskState, "take_node_counts", spent.timed(TaskState.take_node_counts)),
        patch.object(TaskState, "count_at", spent.timed(TaskState.count_at)),
    ):
        yield


def run(records: int, level: str) -> tuple[float, float]:
    """Returns records per second of the processor's time, and the share of it that metrics took."""
    spent = Spent()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory, timing(spent):
        place = Place(Path(directory), **{"in": 2})
        values = [json.dumps({"cents": each % 100, "item": "book"}).encode() for each in range(100)]
        for start in range(0, records, 10_000):
            place.log.append(
                "in",
                [
                    (None, 1_000_000 + each, f"customer-{each % 5000}".encode(), values[each % 100], ())
                    for each in range(start, start + 10_000)
                ],
            )
        streams = place.streams(build, max_batch_records=20_000, metrics_recording_level=level)
        begun = time.process_time()
        streams.start(available_now=True)
        streams.wait(timedelta(minutes=5))
        seconds = time.process_time() - begun
        place.close()
        return records / seconds, spent.seconds / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"INFO": [], "DEBUG": []}
    # In turns, so that a busy machine is busy for both of them.
    for _ in range(options.rounds):
        for level, several in found.items():
            several.append(run(options.records, level))
    rates = {level: statistics.median(rate for rate, _ in several) for level, several in found.items()}
    cost = statistics.median(share for _, share in found["INFO"])
    print(f"INFO  {rates['INFO']:12,.0f} records/s; metrics take {cost:.2%} of the time; target: under {TARGET:.0%}")
    print(f"DEBUG {rates['DEBUG']:12,.0f} records/s, which is {1 - rates['DEBUG'] / rates['INFO']:.0%} less")
    return 0 if cost < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
