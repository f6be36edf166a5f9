"""What does the embedded log cost, next to a plain file that is appended to?

Records of about 120 bytes, keyed; rates in records/s unless a line says otherwise. What is read back is compared with
what was written. Timings on a disk depend on the disk: ``--directory`` chooses it.

    python benchmarks/embedded_log.py [--records 500000] [--rounds 3] [--directory DIR]
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import random
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from headrace.topics.blob import pack, pack_all, unpack
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.embedded.committing import publish as publish_blobs
from headrace.topics.embedded.tables import write_tables
from headrace.topics.journal import TaskRecord
from headrace.topics.log import Output, Topic
from headrace.topics.record_partitioning import Sticky, spread

BATCH = 10_000


def purchases(count: int) -> list[Output]:
    rng = random.Random(7)
    card = "4111-1111-1111-1111"
    return [
        (
            None,
            1_700_000_000_000 + n,
            b"customer-%d" % rng.randrange(50_000),
            b'{"id":%d,"amount":%d.5,"item":"item-%d","card":"%s","n":2}' % (n, n % 500, n % 977, card.encode()),
            (),
        )
        for n in range(count)
    ]


def best(rounds: int, work: Callable[[], object]) -> float:
    """Returns the shortest time of some rounds."""
    shortest = float("inf")
    for _ in range(rounds):
        # The task, too, runs without the cyclic collector: records make no cycles.
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
        gc.enable()
    return shortest


def show(what: str, rate: float, unit: str = "") -> None:
    print(f"  {what:58}{rate:>14,.0f} {unit}")


def blobs(outputs: Sequence[Output], rounds: int) -> None:
    print("blobs, one core, no disk")
    part = list(outputs[:20_000])
    blob = pack(part)
    assert [record[1:] for record in unpack(blob)] == [output[1:] for output in part]
    show("pack", len(part) / best(rounds * 5, lambda: pack(part)))
    show("unpack", len(part) / best(rounds * 5, lambda: unpack(blob)))
    topic = Topic("t", 4)
    show(
        "spread over 4 partitions, then pack",
        len(part) / best(rounds * 5, lambda: [list(pack_all(room)) for _, room in spread(topic, part, Sticky(0))]),
    )
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError:
        print("  (install pyarrow for the same with Arrow)")
        return

    def to_arrow() -> bytes:
        _, timestamps, keys, values, _ = zip(*part, strict=True)
        columns = [arrow.array(timestamps), arrow.array(keys, arrow.binary()), arrow.array(values, arrow.binary())]
        batch = arrow.record_batch(columns, names=["timestamp", "key", "value"])
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    stream = to_arrow()

    def from_arrow() -> object:
        columns = [column.to_pylist() for column in arrow.ipc.open_stream(stream).read_next_batch().columns]
        return [(offset, *row, ()) for offset, row in enumerate(zip(*columns, strict=True))]

    show("pack with Arrow", len(part) / best(rounds * 5, to_arrow))
    show("unpack with Arrow", len(part) / best(rounds * 5, from_arrow))


def plain_file(path: Path, pieces: Sequence[bytes], *, sync: bool) -> None:
    with path.open("wb") as file:
        for piece in pieces:
            file.write(struct.pack("<I", len(piece)) + piece)
            file.flush()
            if sync:
                os.fdatasync(file.fileno())


def bulk(directory: Path, outputs: Sequence[Output], rounds: int, sync: Literal["commit", "none"]) -> None:
    print(f"in batches of {BATCH:,}, 2 partitions, sync={sync}")
    batches = [outputs[start : start + BATCH] for start in range(0, len(outputs), BATCH)]
    with EmbeddedLog(directory / sync, sync=sync) as log:
        numbers = iter(range(1_000_000))

        def append() -> None:
            topic = f"t{next(numbers)}"
            log.create_topic(topic, partitions=2)
            for batch in batches:
                log.append(topic, batch)

        show("append", len(outputs) / best(rounds, append))
        log.create_topic("out", partitions=2)
        batch_ids = iter(range(1_000_000))

        journal = log.open_journal("app", ["0_0"])
        task = log.task_journal("app", journal.incarnation, "0_0", [])

        def commit() -> None:
            for batch in batches:
                batch_id = next(batch_ids)
                record = TaskRecord(batch_id, f"{batch_id}", [("in", 0, batch_id)], None, b"")
                journal.commit(batch_id, [task.commit(record, [("out", batch)], [])])

        show("stage and commit", len(outputs) / best(rounds, commit))

        def read() -> int:
            return sum(len(log.read("t0", partition, 0, max_bytes=1 << 40)) for partition in range(2))

        assert read() == len(outputs)
        show("read into tuples", len(outputs) / best(rounds, read))
        pieces = [pack(batch) for batch in batches]
        path = directory / "plain"
        show(
            "plain file: the same blobs, packed before",
            len(outputs) / best(rounds, lambda: plain_file(path, pieces, sync=sync == "commit")),
        )
        log.create_topic("packed")
        packed = [("packed", 0, piece) for batch in batches for piece in pack_all(batch)]

        def publish() -> None:
            for start in range(0, len(packed), 5):
                write_tables(log._environment, partial(publish_blobs, frames=packed[start : start + 5]))

        show("log: the same blobs, packed before", len(outputs) / best(rounds, publish))


def single(directory: Path, outputs: Sequence[Output], rounds: int, sync: Literal["commit", "none"]) -> None:
    print(f"record by record, sync={sync}: transactions/s")
    few = outputs[: 2000 if sync == "commit" else 10_000]
    with EmbeddedLog(directory / f"single-{sync}", sync=sync) as log:
        log.create_topic("t", partitions=2)

        def append() -> None:
            for output in few:
                log.append("t", (output,))

        show("append", len(few) / best(rounds, append))
        ends = log.end_offsets([("t", 0), ("t", 1)])
        total = sum(ends.values())

        def read() -> int:
            return sum(len(log.read("t", partition, 0)) for partition in range(2))

        assert read() == total
        show("read into tuples", total / best(rounds, read))
        while log.clean().more:
            pass
        assert read() == total
        show("read after cleaning", total / best(rounds, read))
        start = time.process_time()
        log.wait_for_data(ends, timedelta(seconds=1))
        show("waiting for data", (time.process_time() - start) * 1000, "ms of CPU per second")
    pieces = [(output[2] or b"") + (output[3] or b"") for output in few]
    show(
        "plain file",
        len(few) / best(rounds, lambda: plain_file(directory / "plain", pieces, sync=sync == "commit")),
    )


def compaction(directory: Path, rounds: int) -> None:
    print("compaction, sync=commit: 20 updates of each of 20,000 keys")
    with EmbeddedLog(directory / "compaction") as log:
        shortest, longest = float("inf"), 0.0
        for number in range(rounds):
            topic = f"t{number}"
            log.create_topic(topic, configs={"cleanup.policy": "compact"})
            for n in range(20):
                log.append(
                    topic, [(None, n, b"customer-%d" % key, b"%d " % n + b"x" * 90, ()) for key in range(20_000)]
                )
            start = time.perf_counter()
            more = True
            while more:
                step = time.perf_counter()
                more = log.clean(max_bytes=1 << 20).more
                longest = max(longest, time.perf_counter() - step)
            shortest = min(shortest, time.perf_counter() - start)
            assert len(log.read(topic, 0, 0)) == 20_000
        show("records compacted", 400_000 / shortest)
        show("longest call with max_bytes=1 MB", longest * 1000, "ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="headrace-log-", dir=options.directory))
    try:
        outputs = purchases(options.records)
        gc.freeze()
        blobs(outputs, options.rounds)
        policies: tuple[Literal["commit", "none"], ...] = ("commit", "none")
        for sync in policies:
            bulk(directory, outputs, options.rounds, sync)
        for sync in policies:
            single(directory, outputs, options.rounds, sync)
        compaction(directory, options.rounds)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
