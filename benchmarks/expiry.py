"""What does it cost a commit that rows of a table expire? The same records with and without a time to live that ends.

A table of a million rows, on disk. *cliff*: they were loaded at once, so all of them are due at the same time, while
updates of other keys go on. *turnover*: every record brings a row, and one expires for it: two changes instead of one,
so there is no target. The other side has a time to live that does not end in the run, so both keep the index. Both take
turns, batch by batch; each commit is timed by the processor's clock, several times over, and its shortest time counts:
what others do on the machine is no part of the answer.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace import Consumed, Materialized, Serdes, StreamsBuilder, StreamsConfig
from headrace.testing import TopologyTestDriver
from headrace.topics.log import Output

BATCH = 10_000
PER_MS = 10
"""Records come at 10,000 a second of stream time."""
COMMITS = 40
NEVER = timedelta(days=10_000)
VALUE = b'{"name":"Ada Lovelace","city":"London","visits":1815}'


def driver(ttl: timedelta, directory: str) -> TopologyTestDriver:
    config = StreamsConfig(application_id="expiry", statestore_cache_max_bytes=0)
    builder = StreamsBuilder()
    consumed = Consumed(Serdes.string(), Serdes.json())
    table = builder.table("in", consumed, Materialized("rows", ttl=ttl, store_type="disk"))
    table.map_values(lambda user: user["name"]).to_stream().to("out")
    return TopologyTestDriver(builder.build(config), config, batched=True, state_dir=directory)


def commit(host: TopologyTestDriver, records: Sequence[Output]) -> float:
    """Runs a batch; returns the seconds of processor that it took."""
    host.pipe_raw_batch("in", records)
    gc.collect()
    begun = time.process_time()
    host.commit()
    seconds = time.process_time() - begun
    host.take_outputs("out", host.unread("out"))
    return seconds


@dataclass(frozen=True)
class Case:
    """Rows that are there at first, with their times, and the records that follow."""

    name: str
    ttl_ms: int
    at_once: bool
    """Whether all rows have the same time."""
    keys: int | None
    """How many keys are updated in turn; None: every record has a new one."""
    target: float | None
    """How many times as long a commit may take."""

    def filling(self, rows: int) -> Iterator[list[Output]]:
        for start in range(0, rows, BATCH):
            numbers = range(start, min(start + BATCH, rows))
            yield [(None, 0 if self.at_once else n // PER_MS, b"row-%08d" % n, VALUE, ()) for n in numbers]
        yield self._updates(-BATCH)

    def batches(self) -> Iterator[list[Output]]:
        for number in range(COMMITS):
            yield self._updates(number * BATCH)

    def _updates(self, start: int) -> list[Output]:
        numbers = range(start, start + BATCH)
        names = [b"new-%08d" % n if self.keys is None else b"hot-%08d" % (n % self.keys) for n in numbers]
        return [(None, self.ttl_ms + n // PER_MS, name, VALUE, ()) for n, name in zip(numbers, names, strict=True)]


def cases(rows: int) -> list[Case]:
    return [
        Case("cliff", 3_600_000, at_once=True, keys=5_000, target=1.5),
        Case("turnover", rows // PER_MS, at_once=False, keys=None, target=None),
    ]


@dataclass(frozen=True)
class Result:
    lasting: float
    """Seconds of the median commit without expiry."""
    expiring: float
    """Seconds of the median commit with it."""
    worst: float
    """Of all commits, the largest ratio to the median one without expiry."""
    expired: int
    """Rows per commit."""


def measure(case: Case, rows: int, rounds: int) -> Result:
    times: list[list[tuple[float, float]]] = []
    expired = 0
    for _ in range(rounds):
        with (
            tempfile.TemporaryDirectory() as one,
            tempfile.TemporaryDirectory() as other,
            driver(NEVER, one) as lasting,
            driver(timedelta(milliseconds=case.ttl_ms), other) as expiring,
        ):
            for batch in case.filling(rows):
                commit(lasting, batch)
                commit(expiring, batch)
            assert expiring.metrics()["expired-rows-total"] == 0
            times.append([(commit(lasting, batch), commit(expiring, batch)) for batch in case.batches()])
            assert lasting.metrics()["expired-rows-total"] == 0
            expired = int(expiring.metrics()["expired-rows-total"])
    shortest = [
        (min(lasting for lasting, _ in same), min(expiring for _, expiring in same))
        for same in zip(*times, strict=True)
    ]
    plain = statistics.median(lasting for lasting, _ in shortest)
    return Result(
        plain,
        statistics.median(expiring for _, expiring in shortest),
        max(expiring / plain for _, expiring in shortest),
        expired // COMMITS,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    missed = False
    for case in cases(options.rows):
        found = measure(case, options.rows, options.rounds)
        missed |= case.target is not None and found.worst > case.target
        wanted = "no target" if case.target is None else f"target {case.target}"
        print(
            f"{case.name}: {options.rows:,} rows, commits of {BATCH:,} records; without expiry "
            f"{found.lasting * 1000:.0f} ms, with {found.expired:,} rows expiring in each "
            f"{found.expiring * 1000:.0f} ms (× {found.expiring / found.lasting:.2f}); "
            f"the worst commit × {found.worst:.2f} ({wanted})",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
