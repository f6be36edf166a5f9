"""What does a bare Spark job cost, and does anything grow while jobs run back to back?

One and two stages of two slots, next to what pyspark's own ``mapPartitions``, ``partitionBy`` and ``collect`` do with
the same data, with and without ``gc.freeze()`` in the workers; figures are wall time and the processor time of all
processes. Then two-stage jobs run at full rate, while memory, files, threads and descriptors are counted. The exit
status is 1 if any of them has grown in the last third of the time.

    python -m benchmarks.spark_jobs [--master local[2,4]] [--jobs 200] [--seconds 60] [--every 10]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import mean

from pyspark import SparkContext, TaskContext

from benchmarks.process_tree import cpu_seconds, usage
from headrace.config import StreamsConfig
from headrace.spark.context import close_context, open_context
from headrace.spark.jobs import Sent, StagedJob, StageFunction
from headrace.spark.worker_start import executor_location, prepare_worker

MEGABYTE = 1 << 20
SLOTS = 2
PLAN = "x" * 500
BLOB = os.urandom(500)
WARM_UP = 50
GROWTH = 1.1
SLACK = {"driver MB": 5, "JVM MB": 20, "workers MB": 5, "JVM threads": 15, "descriptors": 20, "files": 50}


def import_program() -> None:
    """Imports what a worker of an application has imported."""
    import headrace.app.streams
    import headrace.dsl
    import headrace.topics.embedded  # noqa: F401 - only there to be there


def stages(depth: int, *, frozen: bool) -> list[StageFunction]:
    """Returns functions that send a blob to every slot of the next stage, and a report to the driver."""

    def function(stage: int) -> StageFunction:
        def run(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
            import_program()
            if frozen:
                prepare_worker()
            context = TaskContext.get()
            assert context is not None
            assert context.getLocalProperty("headrace.plan") == PLAN
            if stage + 1 < depth:
                for to in range(SLOTS):
                    yield Sent(stage + 1, to, BLOB)
            yield Sent(depth, slot, f"{stage} {slot} {len(blobs)} {executor_location()}".encode())

        return run

    return [function(stage) for stage in range(depth)]


def plainly(context: SparkContext, depth: int) -> Callable[[], object]:
    """Returns the same job in pyspark's own words."""

    def first(slot: int, beats: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        import_program()
        for _ in beats:
            yield from ((to, BLOB) for to in range(SLOTS))

    def last(slot: int, pairs: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        import_program()
        yield f"{slot} {len(list(pairs))}".encode()

    beats = context.parallelize(range(SLOTS), SLOTS)
    one = beats.mapPartitionsWithIndex(last)  # type: ignore[arg-type]  # it counts beats as well as pairs

    def run() -> object:
        context.setLocalProperty("headrace.plan", PLAN)
        context.setJobDescription("a batch")
        if depth == 1:
            return one.collect()
        return beats.mapPartitionsWithIndex(first).partitionBy(SLOTS).mapPartitionsWithIndex(last).collect()

    return run


def measure(name: str, run: Callable[[], object], jobs: int) -> None:
    for _ in range(WARM_UP):
        run()
    times = []
    before = cpu_seconds(os.getpid())
    for _ in range(jobs):
        begun = time.perf_counter()
        run()
        times.append((time.perf_counter() - begun) * 1e3)
    cost = (cpu_seconds(os.getpid()) - before) * 1e3 / jobs
    times.sort()
    p10, p50, p90, p99 = (times[min(jobs - 1, jobs * each // 100)] for each in (10, 50, 90, 99))
    print(f"{name:44} {p10:7.1f} {p50:7.1f} {p90:7.1f} {p99:7.1f} {cost:9.1f}", flush=True)


def compare(directory: Path, master: str, jobs: int) -> None:
    print(f"{'ms per job':44} {'p10':>7} {'p50':>7} {'p90':>7} {'p99':>7} {'processor':>9}")
    for frozen in (False, True):
        # Each in a context of its own: what is frozen in a worker stays so.
        context = open_context(config(master), directory=directory)
        for depth in (1, 2, 3):
            words = f"{depth} stage{'s' if depth > 1 else ''}{', frozen' if frozen else ''}"
            job = StagedJob(context, stages(depth, frozen=frozen), SLOTS)
            found = job.run({"headrace.plan": PLAN}, "first")
            measure(words, lambda job=job: job.run({"headrace.plan": PLAN}, "a batch"), jobs)  # type: ignore[misc]
            if depth < 3:
                measure(f"{words}, pyspark's own calls", plainly(context, depth), jobs)
            places = [None if (place := each.split()[3].decode()) == "None" else place for each in found]
            if depth == 2 and places[0] is not None:
                located = places[:SLOTS]
                measure(
                    f"{words}, located",
                    lambda job=job, located=located: job.run({"headrace.plan": PLAN}, "a batch", located),  # type: ignore[misc]
                    jobs,
                )
        close_context(context)


def watch(directory: Path, master: str, seconds: float, every: float) -> bool:
    """Runs jobs for so long; returns whether nothing has grown."""
    context = open_context(config(master), directory=directory)
    job = StagedJob(context, stages(2, frozen=True), SLOTS)
    jvm: int = context._gateway.proc.pid  # type: ignore[union-attr]  # there is one while the context is open
    rows: list[dict[str, float]] = []
    begun = last = time.monotonic()
    jobs = 0
    print(f"{'s':>5} {'jobs/s':>7} " + " ".join(f"{name:>12}" for name in SLACK))
    while time.monotonic() - begun < seconds:
        job.run({"headrace.plan": PLAN}, f"batch {jobs}")
        jobs += 1
        now = time.monotonic()
        if now - last >= every:
            rows.append(counted(directory, jvm))
            figures = " ".join(f"{rows[-1][name]:12,.0f}" for name in SLACK)
            print(f"{now - begun:5.0f} {jobs / (now - last):7.1f} {figures}", flush=True)
            jobs, last = 0, now
    close_context(context)
    third = max(1, len(rows) // 3)
    before, after = rows[-2 * third : -third], rows[-third:]
    grown = [
        name
        for name, slack in SLACK.items()
        if mean(row[name] for row in after) > mean(row[name] for row in before) * GROWTH + slack
    ]
    print(f"grown: {', '.join(grown)}" if grown else "nothing has grown")
    return not grown


def counted(directory: Path, jvm: int) -> dict[str, float]:
    parts = usage(os.getpid())
    return {
        "driver MB": parts["driver"].private / MEGABYTE,
        "JVM MB": parts["jvm"].private / MEGABYTE,
        "workers MB": parts["workers"].private / MEGABYTE,
        "JVM threads": len(os.listdir(f"/proc/{jvm}/task")),
        "descriptors": sum(part.descriptors for part in parts.values()),
        "files": sum(len(files) for _, _, files in os.walk(directory / "spark")),
    }


def config(master: str) -> StreamsConfig:
    return StreamsConfig.of({"application.id": "spark-jobs", "spark.master": master})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=10.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.jobs:
            compare(Path(folder), asked.master, asked.jobs)
        return 0 if not asked.seconds or watch(Path(folder), asked.master, asked.seconds, asked.every) else 1


if __name__ == "__main__":
    sys.exit(main())
