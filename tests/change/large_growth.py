"""Growth of large stores from 2 to 6 partitions: how long it takes, and whether results are those of 6 from the start.

``python -m tests.change.large_growth --keys 1000000`` prints the time of every step; with ``--spark local[2,4]`` rows
are looked at and moved on Spark. Outputs and rows are compared by
digests that do not depend on their order.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headrace import EmbeddedLog, JoinWindows, Materialized, SessionWindows, StreamsBuilder, TimeWindows
from headrace.change.grow import grow_application
from headrace.change.parallel_work import ParallelMap, in_this_process
from headrace.topics.journal import DurableLog
from headrace.topics.log import Output
from tests.change.kit import Program

INPUTS = ("orders", "users")
OUTPUTS = ("counts", "windows", "sessions", "pairs", "enriched")
# A join numbers its rows in the order in which its task has seen them.
STORES = ("counts", "windows", "sessions", "users")
HOUR = timedelta(hours=1)
_AT_ONCE = 50_000


def build(builder: StreamsBuilder) -> Any:
    orders = builder.stream("orders")
    users = builder.stream("users")
    table = builder.stream("users").to_table(Materialized("users"))
    grouped = orders.group_by_key()
    windows = TimeWindows.of_size_and_grace(HOUR, HOUR)
    sessions = SessionWindows.of_inactivity_gap_and_grace(HOUR, HOUR)
    grouped.count(materialized=Materialized("counts")).to_stream().to("counts")
    grouped.windowed_by(windows).count(materialized=Materialized("windows")).to_stream().to("windows")
    grouped.windowed_by(sessions).count(materialized=Materialized("sessions")).to_stream().to("sessions")
    within = JoinWindows.of_time_difference_and_grace(HOUR, HOUR)
    orders.join(users, lambda left, right: [left, right], windows=within).to("pairs")
    orders.join(table, lambda left, right: [left, right]).to("enriched")


def feed(log: DurableLog, keys: int, round_number: int) -> None:
    """Writes one record of every key to both inputs."""
    for topic in reversed(INPUTS):
        for first in range(0, keys, _AT_ONCE):
            log.append(topic, list(_records(first, min(first + _AT_ONCE, keys), keys, round_number)))


def _records(first: int, last: int, keys: int, round_number: int) -> Iterator[Output]:
    for number in range(first, last):
        # A round lasts ten minutes, however many keys there are.
        time_ms = 1_000_000 + round_number * 600_000 + number * 600_000 // keys
        yield None, time_ms, f"customer-{number}".encode(), json.dumps(round_number * keys + number).encode(), ()


def digest(log: DurableLog, topic: str, *, last: bool) -> int:
    """Returns a number for the records of a topic in any order, or for the rows that a changelog stands for.

    Sessions have no time of their own: their records have that of the task.
    """
    total = 0
    for partition in range(log.partitions_of(topic)):
        rows: dict[bytes | None, bytes] = {}
        start, end = 0, log.end_offsets([(topic, partition)])[topic, partition]
        while start < end and (page := log.read(topic, partition, start, end)):
            for _, time_ms, key, value, _ in page:
                text = repr((partition, key, value) if last else (key, time_ms, value)).encode()
                if not last:
                    total += _number(text)
                elif value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = text
            start = page[-1][0] + 1
        total += sum(map(_number, rows.values()))
    return total & ((1 << 128) - 1)


def _number(text: bytes) -> int:
    return int.from_bytes(blake2b(text, digest_size=16).digest(), "big")


def digests(log: DurableLog) -> dict[str, int]:
    outputs = {topic: digest(log, topic, last=False) for topic in OUTPUTS}
    rows = {f"rows of {store}": digest(log, f"app-{store}-changelog", last=True) for store in STORES}
    return {**outputs, **rows}


def run(
    directory: Path, keys: int, partitions: int, *, grown_to: int | None = None, master: str | None = None
) -> dict[str, int]:
    """Runs two rounds, with a growth between them; returns digests of all results."""
    with EmbeddedLog(directory / "log", sync="none", map_size=1 << 34) as log:
        for topic in INPUTS:
            log.create_topic(topic, partitions=partitions)
        # Many batches, so that input never lies in memory as a whole.
        program = Program(log, directory, build, max_batch_records=100_000)
        for round_number in range(2):
            feed(log, keys, round_number)
            started = time.monotonic()
            program.run()
            _say(f"{partitions} partitions, round {round_number}: {time.monotonic() - started:.1f} s")
            if round_number == 0 and grown_to is not None:
                with _opened(program, master) as parallel:
                    topics = dict.fromkeys(INPUTS, grown_to)
                    grow_application(program.topology, program.config, log, topics, tell=_say, parallel=parallel)
        return digests(log)


@contextmanager
def _opened(program: Program, master: str | None) -> Iterator[ParallelMap]:
    if master is None:
        yield in_this_process
        return
    from headrace.spark.parallel_map import open_spark_map

    config = program.config.replaced({"spark.master": master})
    with open_spark_map(program.topology, config, Path(config.state_dir)) as parallel:
        yield parallel


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--spark", metavar="MASTER", help="grow on Spark, such as local[2,4]")
    options = parser.parse_args()
    keys: int = options.keys
    with (
        TemporaryDirectory() as first,
        TemporaryDirectory() as second,
        # A core for each: they have nothing to do with each other.
        ProcessPoolExecutor(1, get_context("spawn")) as beside,
    ):
        from_the_start = beside.submit(run, Path(second), keys, 6)
        grown = run(Path(first), keys, 2, grown_to=6, master=options.spark)
        reference = from_the_start.result()
    different = [name for name in reference if grown[name] != reference[name]]
    if different:
        sys.exit(f"results differ from those of 6 partitions from the start: {', '.join(different)}")
    _say("results are those of 6 partitions from the start")


if __name__ == "__main__":
    main()
