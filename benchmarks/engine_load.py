"""The input of the engine's benchmark: the same records in an embedded log and in Parquet files.

Purchases of about 100 bytes and, for the joins, a payment for every second one of them and a table of customers. Times
ascend, ten records to the millisecond. The first ``warm_up`` records are there to be left out of what is measured.

    python -m benchmarks.engine_load DIRECTORY [--records 2000000] [--warm-up 1000000] [--keys 100000]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Output
from headrace.topics.partitioner import known_partitions

PURCHASES, PAYMENTS, CUSTOMERS = "purchases", "payments", "customers"
START_MS = 1_700_000_000_000
RECORDS_PER_MS = 10
APPEND = 10_000
ITEMS = 10_000
PAYMENT_DELAY_MS = 1_000


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much input there is, and in which pieces."""

    records: int = 2_000_000
    """Purchases that are measured."""
    warm_up: int = 1_000_000
    """Purchases before them."""
    keys: int = 100_000
    partitions: int = 2
    batch: int = 1_000_000
    """Records of a micro-batch: the files of the native queries are cut so, and our engine may read as many."""

    @property
    def total(self) -> int:
        return self.warm_up + self.records

    @property
    def files_per_batch(self) -> int:
        return 4 * self.partitions

    @property
    def end_ms(self) -> int:
        return START_MS + self.total // RECORDS_PER_MS + PAYMENT_DELAY_MS + 1


def purchases(load: Load) -> Iterator[Output]:
    """Yields purchases in the order of their times."""
    rng = random.Random(7)
    for number in range(load.total):
        time_ms = START_MS + number // RECORDS_PER_MS
        value = b'{"id":%d,"amount":%.2f,"item":"item-%d","card":"4111-1111-1111-%d","quantity":%d,"at":%d}' % (
            number,
            rng.randrange(1, 50_000) / 100,
            rng.randrange(ITEMS),
            1000 + number % 9000,
            1 + number % 3,
            time_ms,
        )
        yield None, time_ms, b"customer-%d" % rng.randrange(load.keys), value, ()


def payments(load: Load) -> Iterator[Output]:
    """Yields a payment for every second purchase, by the same customer, a little later, in the order of their times."""
    waiting: dict[int, list[Output]] = {}
    now_ms = START_MS
    rng = random.Random(8)
    for number, (_, time_ms, key, _, _) in enumerate(purchases(load)):
        for due_ms in range(now_ms, time_ms):
            yield from waiting.pop(due_ms, ())
        now_ms = time_ms
        if number % 2 == 0:
            paid_ms = time_ms + rng.randrange(1, PAYMENT_DELAY_MS)
            value = b'{"purchase":%d,"method":"card","approved":true,"paid_at":%d}' % (number, paid_ms)
            waiting.setdefault(paid_ms, []).append((None, paid_ms, key, value, ()))
    for due_ms in sorted(waiting):
        yield from waiting[due_ms]


def customers(load: Load) -> Iterator[Output]:
    """Yields a row per customer, older than everything else."""
    for number in range(load.keys):
        value = b'{"name":"name %d","region":%d}' % (number, number % 7)
        yield None, START_MS - 1, b"customer-%d" % number, value, ()


def slices(records: Iterator[Output], size: int) -> Iterator[list[Output]]:
    part: list[Output] = []
    for record in records:
        part.append(record)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def write_log(directory: Path, load: Load) -> None:
    with EmbeddedLog(directory, sync="none") as log:
        for topic, records in (
            (CUSTOMERS, customers(load)),
            (PURCHASES, purchases(load)),
            (PAYMENTS, payments(load)),
        ):
            log.create_topic(topic, partitions=load.partitions)
            for part in slices(records, APPEND):
                log.append(topic, part)
        log.flush()


def write_file(path: Path, records: Sequence[Output]) -> None:
    """Writes key, value and time of records to a Parquet file."""
    import pyarrow  # optional, like Spark
    import pyarrow.parquet

    columns = {
        "key": pyarrow.array([(record[2] or b"").decode() for record in records], pyarrow.string()),
        "value": pyarrow.array([(record[3] or b"").decode() for record in records], pyarrow.string()),
        "timestamp": pyarrow.array([record[1] for record in records], pyarrow.timestamp("ms", tz="UTC")),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def write_files(directory: Path, load: Load) -> None:
    """Writes the purchases as a Kafka connector would have left them: key, value and time, a file per partition."""
    directory.mkdir()
    step = max(1, load.batch * load.partitions // load.files_per_batch)
    partition_of = known_partitions(load.partitions)
    number = 0
    for part in slices(purchases(load), step):
        rooms: list[list[Output]] = [[] for _ in range(load.partitions)]
        for record in part:
            rooms[partition_of[record[2] or b""]].append(record)
        for room in rooms:
            path = directory / f"{number:05}.parquet"
            write_file(path, room)
            # Spark reads files in the order of these times.
            os.utime(path, (START_MS // 1000 + number, START_MS // 1000 + number))
            number += 1


def write(directory: Path, load: Load) -> None:
    """Writes the load into ``log`` and ``files`` of a directory, unless it is there already."""
    note = directory / "load.json"
    wanted = json.dumps(asdict(load))
    if note.exists() and note.read_text() == wanted:
        return
    for name in ("log", "files"):
        shutil.rmtree(directory / name, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    write_log(directory / "log", load)
    write_files(directory / "files", load)
    note.write_text(wanted)


def load_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how much input there is."""
    defaults = Load()
    parser.add_argument("--records", type=int, default=defaults.records, help="records that are measured")
    parser.add_argument("--warm-up", type=int, default=defaults.warm_up, help="records before them")
    parser.add_argument("--keys", type=int, default=defaults.keys)
    parser.add_argument("--partitions", type=int, default=defaults.partitions)
    parser.add_argument("--batch", type=int, default=defaults.batch, help="records of a micro-batch")


def chosen_load(options: argparse.Namespace) -> Load:
    return Load(
        records=options.records,
        warm_up=options.warm_up,
        keys=options.keys,
        partitions=options.partitions,
        batch=options.batch,
    )


def comparison_options(parser: argparse.ArgumentParser, *, records: int, only: str, sides: Sequence[str]) -> None:
    """Adds the options of benchmarks that compare several sides by the same input."""
    load_options(parser)
    parser.set_defaults(records=records)
    parser.add_argument("--only", default=only, help="the programs, by their letters")
    parser.add_argument("--sides", default=",".join(sides))
    parser.add_argument("--directory", type=Path, help="keep the input here, for the next run")


@contextmanager
def written_load(options: argparse.Namespace) -> Iterator[tuple[Path, Load]]:
    """Gives a directory with the load that the options ask for; one that they do not name is deleted afterwards."""
    directory = options.directory or Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    load = chosen_load(options)
    try:
        write(directory, load)
        yield directory, load
    finally:
        if options.directory is None:
            shutil.rmtree(directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    load_options(parser)
    options = parser.parse_args()
    write(options.directory, chosen_load(options))


if __name__ == "__main__":
    main()
