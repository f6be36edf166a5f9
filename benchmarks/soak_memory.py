"""Does an application that runs for long stay as large as it is?

Counts by key, by window and by another key run at a steady rate while the memory, the file descriptors and the sockets
of the driver, the JVM and the Python workers are read from ``/proc``, and the size of the changelogs from the log. The
first third of the time is warm-up. In the rest nothing may grow: the last part is compared with the part before. Prints
the series and a verdict; the exit status is 1 if anything grew.

    python -m benchmarks.soak_memory [--minutes 10] [--rate 5000] [--keys 20000] [--every 10] [--directory DIR]
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine_load import PURCHASES
from benchmarks.engine_run import Running, Task, running
from benchmarks.process_tree import Usage, usage
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Output

MEGABYTE = 1 << 20
PARTS = ("driver", "jvm", "workers")
GROWTH = 1.05
"""By so much the last part of the time may be above the part before: less is noise."""
SLACK_BYTES = 8 * MEGABYTE
SLACK_DESCRIPTORS = 10
FIRST_SECONDS = 120.0
TOUCHED_HEAP = "-Xms768m -XX:+AlwaysPreTouch"
"""A heap that is not full yet grows page by page without any leak; what is touched at the start cannot."""


@dataclass(frozen=True)
class Sample:
    seconds: float
    parts: dict[str, Usage]
    state_rows: int
    changelog_bytes: int
    batches: int
    log_bytes: int


class Sender:
    """Appends records at a steady rate, and keeps the log from growing."""

    def __init__(self, log: EmbeddedLog, rate: int, keys: int) -> None:
        self._log = log
        self._rate = rate
        self._keys = keys
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        rng = random.Random(7)
        started, sent = time.monotonic(), 0
        while not self._stopping.wait(0.1):
            due = int((time.monotonic() - started) * self._rate)
            self._log.append(PURCHASES, [self._purchase(number, rng) for number in range(sent, due)])
            sent = due
            self._log.clean()

    def _purchase(self, number: int, rng: random.Random) -> Output:
        value = b'{"id":%d,"amount":%d.5,"item":"item-%d","card":"4111-1111-1111-1111","quantity":2}' % (
            number,
            10 + number % 400,
            rng.randrange(1_000),
        )
        return None, int(time.time() * 1000), b"customer-%d" % rng.randrange(self._keys), value, ()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def sample(program: Running, log: EmbeddedLog, began: float) -> Sample:
    report = program.batches[-1].report
    return Sample(
        time.monotonic() - began,
        usage(program.process.pid),
        int(report["state_rows"]),
        changelog_bytes(log),
        len(program.batches),
        log.used_bytes(),
    )


def changelog_bytes(log: EmbeddedLog) -> int:
    counts = log.partition_counts()
    topics = [topic for topic in counts if topic.endswith("-changelog")]
    return sum(log.sizes([(topic, each) for topic in topics for each in range(counts[topic])]).values())


def line(taken: Sample) -> str:
    sizes = "".join(f"{taken.parts[part].private / MEGABYTE:>9.0f}" for part in PARTS)
    descriptors = "".join(f"{taken.parts[part].descriptors:>6}" for part in PARTS)
    sockets = sum(taken.parts[part].sockets for part in PARTS)
    return (
        f"{taken.seconds:>7.0f}{sizes}{descriptors}{sockets:>9}{taken.parts['workers'].processes:>9}"
        f"{taken.state_rows:>11,}{taken.batches:>9,}"
        f"{taken.changelog_bytes / MEGABYTE:>15.1f}{taken.log_bytes / MEGABYTE:>9.0f}"
    )


def heading() -> str:
    return (
        f"{'':>7}{'private memory, MB':>27}{'descriptors':>18}\n{'s':>7}{'driver':>9}{'jvm':>9}{'workers':>9}"
        f"{'drv':>6}{'jvm':>6}{'wrk':>6}{'sockets':>9}{'workers':>9}{'rows':>11}{'batches':>9}"
        f"{'changelogs, MB':>15}{'log, MB':>9}"
    )


def grown(samples: list[Sample], read: Callable[[Sample], float], slack: float) -> tuple[bool, float, float]:
    """Compares the last third with the third before, by their medians."""
    third = len(samples) // 3
    middle = statistics.median(read(taken) for taken in samples[third : 2 * third])
    last = statistics.median(read(taken) for taken in samples[2 * third :])
    return last > middle * GROWTH + slack, middle, last


def verdict(samples: list[Sample]) -> bool:
    """Says what has grown; True if nothing has."""
    good = True
    for part in PARTS:
        for what, read, slack, unit in (
            ("memory, MB", lambda taken, part=part: taken.parts[part].private, SLACK_BYTES, MEGABYTE),
            ("descriptors", lambda taken, part=part: taken.parts[part].descriptors, SLACK_DESCRIPTORS, 1),
            ("sockets", lambda taken, part=part: taken.parts[part].sockets, SLACK_DESCRIPTORS, 1),
        ):
            has_grown, middle, last = grown(samples, read, slack)
            good = good and not has_grown
            mark = "GREW" if has_grown else "flat"
            print(f"{part:<8} {what:<12} {middle / unit:>8.0f} → {last / unit:>8.0f}  {mark}")
    has_grown, middle, last = grown(samples, lambda taken: taken.changelog_bytes, SLACK_BYTES)
    mark = "GREW" if has_grown else "flat"
    print(f"{'log':<8} {'changelogs, MB':<12} {middle / MEGABYTE:>8.1f} → {last / MEGABYTE:>8.1f}  {mark}")
    return good and not has_grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=5_000, help="records/s")
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two samples")
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="headrace-soak-", dir=options.directory))
    bounded = {"retention.bytes": 32 * MEGABYTE}
    samples: list[Sample] = []
    try:
        with EmbeddedLog(directory / "log") as log:
            log.create_topic(PURCHASES, partitions=2, configs=bounded)
            log.create_topic("out", partitions=2, configs=bounded)
            task = Task(
                program="counts",
                application="soak",
                directory=str(directory),
                out="out",
                until_end=False,
                settings={"spark.driver.extraJavaOptions": TOUCHED_HEAP},
            )
            with running(task) as program:
                sender = Sender(log, options.rate, options.keys)
                while not program.batches and time.perf_counter() - program.started < FIRST_SECONDS:
                    program.check()
                    time.sleep(0.1)
                print(heading(), flush=True)
                began = time.monotonic()
                while time.monotonic() - began < options.minutes * 60:
                    time.sleep(options.every)
                    program.check()
                    samples.append(sample(program, log, began))
                    print(line(samples[-1]), flush=True)
                sender.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if len(samples) < 6:
        message = f"{len(samples)} samples are too few to judge; take more minutes or look more often"
        raise SystemExit(message)
    sys.exit(0 if verdict(samples) else 1)


if __name__ == "__main__":
    main()
