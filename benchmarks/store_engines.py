"""Which engine on disk is faster, LMDB or RocksDB, as the state grows, and as memory gets scarce?

Keys of 16 bytes in random order, values of 60 bytes, half of them random. Each engine runs in a process of its own;
what is read is compared with what was written. Rates in rows/s by the clock, and microseconds of the calling thread's
processor per row, of the calls alone: on a busy machine the second says more.

- restore: an empty environment is filled in batches of 100,000 rows, each with its offset, and forced to the disk;
- puts: rows that are there get new values, in batches of 20,000;
- gets: rows one by one, in random order;
- range scans: 100 rows from a random key on; and one scan through everything, at most 10 million rows.

``--memory`` bounds heap and page cache of each process together, by a control group below the own one.

    python -m benchmarks.store_engines [--rows 1e6] [--memory 2g] [--engines lmdb,rocksdb] [--seconds 600]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from benchmarks.memory_limit import join_group, memory_group, parse_bytes
from headrace.config import StreamsConfig
from headrace.state import Changes
from headrace.state.engines.environment import OWN, Environment, open_environment
from headrace.state.stores.suppliers import disk_engine_named

RESTORE_BATCH = 100_000
PUT_BATCH = 20_000
MOST_PUTS = 1_000_000
GETS = 200_000
SCANS = 2_000
SCANNED = 100
MOST_SCANNED = 10_000_000
STORE = "rows"

_POOL = random.Random(7).randbytes(1 << 20)
_TAIL = b'"currency":"EUR","shop":"north"'[:30]
_MASK = (1 << 64) - 1


def key_of(number: int) -> bytes:
    """Returns the key of a row; they differ, and have no order."""
    return b"%016x" % (number * 0x9E3779B97F4A7C15 & _MASK)


def value_of(number: int, version: int) -> bytes:
    place = (number * 2654435761 + version * 40503) % (len(_POOL) - 30)
    return _POOL[place : place + 30] + _TAIL


class Timer:
    """Time that calls take: that of the clock, and that of the calling thread's processor."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.processor = 0.0
        self._begun = time.perf_counter()

    def __enter__(self) -> None:
        self._start, self._worked = time.perf_counter(), time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.processor += time.thread_time() - self._worked
        self.seconds += time.perf_counter() - self._start

    @property
    def age(self) -> float:
        """Seconds since it was made, with what was done between the calls."""
        return time.perf_counter() - self._begun

    def rate(self, rows: int) -> tuple[float, float]:
        """Returns rows/s, and microseconds of processor per row."""
        return rows / self.seconds, self.processor / rows * 1e6


Rate = tuple[float, float]
NONE: Rate = (0.0, 0.0)


@dataclass
class Figures:
    """What was measured of one engine."""

    rows: int = 0
    """As many as were restored in time."""
    restore: Rate = NONE
    puts: Rate = NONE
    gets: Rate = NONE
    range_scans: Rate = NONE
    scan: Rate = NONE
    reopen_ms: float = 0
    megabytes: float = 0
    """On the disk, before the environment is closed."""
    peak_megabytes: float = 0
    """Most memory of the process, with pages of files that are mapped."""
    processor_seconds: float = 0
    """Of all threads, with those that compact, and with the making of rows."""


class Run:
    """One engine, measured in this process."""

    def __init__(self, kind: str, directory: Path, seconds: float) -> None:
        self._kind = disk_engine_named(kind, "--engines")
        self._directory = directory
        self._seconds = seconds
        self._figures = Figures()
        self._rng = random.Random(11)
        self._updated: set[int] = set()
        self._environment = self._open()

    def _open(self) -> Environment:
        return open_environment(self._kind, self._directory, StreamsConfig())

    def measure(self, rows: int) -> Figures:
        # As in a task: records make no cycles.
        gc.disable()
        self._restore(rows)
        self._put()
        self._environment.pin()
        self._get()
        self._scan()
        self._environment.unpin()
        figures = self._figures
        figures.megabytes = self._environment.disk_bytes() / 1e6
        self._environment.close()
        start = time.perf_counter()
        self._environment = self._open()
        assert self._environment.engine(STORE).get(key_of(0)) is not None
        figures.reopen_ms = (time.perf_counter() - start) * 1000
        self._environment.close()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        figures.peak_megabytes = usage.ru_maxrss / 1e3
        figures.processor_seconds = usage.ru_utime + usage.ru_stime
        return figures

    def _apply(self, timer: Timer, changes: Changes, offset: int) -> None:
        with timer:
            self._environment.apply({STORE: changes, OWN: Changes(rows={b"offset": b"%d" % offset})})

    def _restore(self, rows: int) -> None:
        timer, done = Timer(), 0
        while done < rows and timer.age < self._seconds:
            end = min(done + RESTORE_BATCH, rows)
            self._apply(timer, Changes(rows={key_of(n): value_of(n, 0) for n in range(done, end)}), end)
            done = end
        with timer:
            self._environment.flush()
        self._figures.rows = done
        self._figures.restore = timer.rate(done)

    def _put(self) -> None:
        rows, timer, done = self._figures.rows, Timer(), 0
        while done < min(rows, MOST_PUTS) and timer.age < self._seconds:
            chosen = [self._rng.randrange(rows) for _ in range(PUT_BATCH)]
            self._apply(timer, Changes(rows={key_of(n): value_of(n, 1) for n in chosen}), rows + done)
            self._updated.update(chosen)
            done += PUT_BATCH
        self._figures.puts = timer.rate(done)

    def _get(self) -> None:
        rows, get = self._figures.rows, self._environment.engine(STORE).get
        timer, done = Timer(), 0
        while done < GETS and timer.age < self._seconds:
            chosen = [self._rng.randrange(rows) for _ in range(1000)]
            keys = [key_of(n) for n in chosen]
            with timer:
                values = [get(key) for key in keys]
            assert values == [value_of(n, n in self._updated) for n in chosen]
            done += len(chosen)
        self._figures.gets = timer.rate(done)

    def _scan(self) -> None:
        engine = self._environment.engine(STORE)
        timer, found = Timer(), 0
        for _ in range(SCANS):
            start = key_of(self._rng.randrange(1 << 32))
            with timer:
                part = list(islice(engine.scan(start), SCANNED))
            assert part == sorted(part)
            found += len(part)
            if timer.age > self._seconds:
                break
        self._figures.range_scans = timer.rate(found)
        timer = Timer()
        with timer:
            found = sum(1 for _ in islice(engine.scan(), MOST_SCANNED))
        assert found == min(self._figures.rows, MOST_SCANNED)
        self._figures.scan = timer.rate(found)


def measure_apart(kind: str, rows: int, directory: Path, seconds: float, group: Path | None) -> Figures:
    """Measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.store_engines", "--one", kind, "--rows", str(rows)]
    command += ["--directory", str(directory), "--seconds", str(seconds)]
    command += [] if group is None else ["--group", str(group)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Figures(**json.loads(done.stdout))


def show(found: dict[str, Figures]) -> None:
    print(f"  {'':34}" + "".join(f"{kind:>24}" for kind in found))
    for what in ("restore", "puts", "gets", "range_scans", "scan"):
        rates = [getattr(figures, what) for figures in found.values()]
        line = "".join(f"{rate:>16,.0f}{processor:>8.2f}" for rate, processor in rates)
        print(f"  {what.replace('_', ' ') + ', rows/s, µs of processor':34}{line}")
    for what, name in (
        ("megabytes", "MB on disk"),
        ("peak_megabytes", "MB of memory at most"),
        ("processor_seconds", "s of processor in all"),
        ("reopen_ms", "reopening, ms"),
    ):
        print(f"  {name:34}" + "".join(f"{getattr(figures, what):>16,.0f}{'':8}" for figures in found.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1e6", help="how many rows, with commas between several")
    parser.add_argument("--memory", help="bound of heap and page cache together, such as 2g")
    parser.add_argument("--engines", default="lmdb,rocksdb")
    parser.add_argument("--seconds", type=float, default=3600.0, help="longest time of each part")
    parser.add_argument("--directory", help="where the rows are kept meanwhile")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--group", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(float(text)) for text in given.rows.split(",")]
    if given.one:
        if given.group:
            join_group(Path(given.group))
        print(json.dumps(asdict(Run(given.one, Path(given.directory), given.seconds).measure(sizes[0]))))
        return
    for rows in sizes:
        found: dict[str, Figures] = {}
        for kind in given.engines.split(","):
            with ExitStack() as stack:
                group = None
                if given.memory:
                    try:
                        group = stack.enter_context(memory_group(parse_bytes(given.memory)))
                    except OSError as error:
                        print(f"memory is NOT bounded, because no control group can be made here: {error}")
                place = stack.enter_context(tempfile.TemporaryDirectory(dir=given.directory))
                found[kind] = measure_apart(kind, rows, Path(place), given.seconds, group)
            if found[kind].rows < rows:
                print(f"{kind}: {found[kind].rows:,} of {rows:,} rows were restored in {given.seconds:,.0f} s")
        bound = f", {given.memory} of memory" if given.memory else ""
        print(f"{rows:,} rows{bound}, load {os.getloadavg()[0]:.1f}")
        show(found)


if __name__ == "__main__":
    main()
