"""How does the time of a micro-batch grow with the state, and with the partitions? How long does a restart take?

Count by key, in micro-batches of the same number of records each. For a number of keys the state is filled first, by a
backfill, and then measured in a new process, which is a restart as well; a further one finds the working copies deleted
and makes them again from Spark's state. A restart is timed from the start of the process to the end of its first batch.

    python -m benchmarks.engine_growth [--full] [--keys 10000,100000,1000000] [--partitions 1,2,4,16,64] [--batch 20000]
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine_load import APPEND, PURCHASES, slices
from benchmarks.engine_run import Seen, Task, backfill
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Output

FLAT = 1.5
"""A batch may take so many times what it takes with the smallest state."""
WARM_UP = 5


@dataclass(frozen=True)
class Grown:
    batch_ms: float
    restart: float
    """Seconds."""
    state_rows: int
    fill: float
    """Records/s of the backfill."""


def purchase(number: int, key: int) -> Output:
    value = b'{"id":%d,"amount":%d.5,"item":"item-%d","card":"4111-1111-1111-1111","quantity":2}' % (
        number,
        10 + number % 400,
        number % 977,
    )
    return None, 1_700_000_000_000 + number, b"customer-%d" % key, value, ()


def every_key(keys: int) -> Iterator[Output]:
    return (purchase(number, number) for number in range(keys))


def any_keys(count: int, keys: int) -> Iterator[Output]:
    rng = random.Random(7)
    return (purchase(number, rng.randrange(keys)) for number in range(count))


def append(log: EmbeddedLog, records: Iterator[Output]) -> None:
    for part in slices(records, APPEND):
        log.append(PURCHASES, part)


class Place:
    """A log and an application in a directory of their own."""

    def __init__(self, directory: Path, partitions: int) -> None:
        self.directory = directory
        self.log = EmbeddedLog(directory / "log", sync="none")
        self.log.create_topic(PURCHASES, partitions=partitions)
        self.log.create_topic("out", partitions=partitions)

    def run(self, max_batch_records: int) -> tuple[float, list[Seen]]:
        """Returns the seconds to the end of the first batch, and all batches."""
        task = Task(
            program="b",
            application="growth",
            directory=str(self.directory),
            out="out",
            max_batch_records=max_batch_records,
        )
        began = time.perf_counter()
        batches = backfill(task)
        return batches[0].at - began, batches

    def lose_working_copies(self) -> None:
        for copy in (self.directory / "state" / "growth").glob("[0-9]*_[0-9]*"):
            shutil.rmtree(copy)

    def close(self) -> None:
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def batch_ms(batches: list[Seen], size: int) -> float:
    """Returns what a batch of the usual size takes once the workers are warm."""
    full = [seen.duration_ms for seen in batches if seen.records >= size * 0.9]
    if len(full) <= WARM_UP:
        message = f"only {len(full)} of {len(batches)} batches read {size:,} records"
        raise SystemExit(message)
    return statistics.median(full[WARM_UP:])


def measure_state(place: Place, keys: int, size: int, count: int) -> Grown:
    append(place.log, every_key(keys))
    _, filled = place.run(500_000)
    fill = sum(seen.records for seen in filled[1:]) / max(filled[-1].at - filled[0].at, 1e-9)
    append(place.log, any_keys(size * count, keys))
    restart, batches = place.run(size)
    return Grown(batch_ms(batches, size), restart, int(batches[-1].report["state_rows"]), fill)


def by_state(directory: Path, sizes: list[int], size: int, count: int) -> bool:
    print(f"batches of {size:,} records against the state, 2 partitions", flush=True)
    print(f"{'keys':>12}{'batch, ms':>12}{'ratio':>8}{'restart, s':>12}{'without copies, s':>19}{'filled, rec/s':>15}")
    first = None
    flat = True
    for keys in sizes:
        place = Place(directory / f"state-{keys}", 2)
        grown = measure_state(place, keys, size, count)
        place.lose_working_copies()
        append(place.log, any_keys(1_000, keys))
        without, _ = place.run(size)
        place.close()
        first = first or grown.batch_ms
        ratio = grown.batch_ms / first
        flat = flat and ratio <= FLAT
        print(
            f"{grown.state_rows:>12,}{grown.batch_ms:>12.0f}{ratio:>8.2f}{grown.restart:>12.1f}{without:>19.1f}"
            f"{grown.fill:>15,.0f}",
            flush=True,
        )
    print(f"flat within {FLAT}: {'met' if flat else 'MISSED'}", flush=True)
    return flat


def by_partitions(directory: Path, numbers: list[int], size: int, count: int) -> None:
    print(f"batches of {size:,} records against the partitions, 100,000 keys", flush=True)
    print(f"{'partitions':>12}{'batch, ms':>12}{'ratio':>8}{'restart, s':>12}")
    first = None
    for number in numbers:
        place = Place(directory / f"partitions-{number}", number)
        grown = measure_state(place, 100_000, size, count)
        place.close()
        first = first or grown.batch_ms
        print(f"{number:>12}{grown.batch_ms:>12.0f}{grown.batch_ms / first:>8.2f}{grown.restart:>12.1f}", flush=True)


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=numbers, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--full", action="store_true", help="10,000,000 keys as well")
    parser.add_argument("--partitions", type=numbers, default=[1, 2, 4, 16, 64])
    parser.add_argument("--batch", type=int, default=20_000, help="records of a micro-batch")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="headrace-growth-", dir=options.directory))
    try:
        sizes = [*options.keys, 10_000_000] if options.full else options.keys
        flat = by_state(directory, sizes, options.batch, options.batches)
        by_partitions(directory, options.partitions, options.batch, options.batches)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    raise SystemExit(0 if flat else 1)


if __name__ == "__main__":
    main()
