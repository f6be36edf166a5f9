"""How long does a result take on the engine, how soon is the first one there, and what does waiting cost?

The first result is timed from the start of the process: without a class archive, as on a fresh machine, and with one.
Then a program with one level (parse, filter, keep the newest by key) and one with two (the same by another key) get
1,000 records/s; the time from the append of a record to its result in the output topic is taken by somebody who polls
the log. Then nothing is sent, and the processor time of the driver, the JVM and the workers is read from ``/proc``.

    python -m benchmarks.engine_latency [--rate 1000] [--seconds 30] [--idle 20] [--starts 3] [--directory DIR]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import orjson

from benchmarks.engine_load import PURCHASES
from benchmarks.engine_run import Running, Task, running
from benchmarks.process_tree import cpu_seconds
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Output

KEYS = 100_000
TICK = 0.01
POLL = 0.002
FIRST_SECONDS = 120.0
WARM_UP = 5.0

TARGETS_MS = {"newest": {"p50": 60.0, "p99": 150.0}, "rekeyed": {"p50": 90.0, "p99": 220.0}}
FIRST_TARGET, FRESH_TARGET = 5.0, 9.0
IDLE_TARGET = 2.0


def purchase(number: int) -> Output:
    value = b'{"id":%d,"amount":%d.5,"item":"item-%d","card":"4111-1111-1111-1111","sent":%.6f}' % (
        number,
        10 + number % 400,
        number % 977,
        time.perf_counter(),
    )
    # A step that has no divisor in common with the number of keys visits all of them.
    return None, int(time.time() * 1000), b"customer-%d" % (number * 7919 % KEYS), value, ()


class Sender:
    """Appends records at a steady rate until it is stopped."""

    def __init__(self, log: EmbeddedLog, rate: int) -> None:
        self._log = log
        self._rate = rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        started, sent = time.perf_counter(), 0
        while not self._stopping.wait(TICK):
            due = int((time.perf_counter() - started) * self._rate)
            if due > sent:
                self._log.append(PURCHASES, [purchase(number) for number in range(sent, due)])
                sent = due

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class Results:
    """Reads the output topic as it grows."""

    def __init__(self, log: EmbeddedLog, topic: str) -> None:
        self._log = log
        self._topic = topic
        partitions = range(log.describe_topic(topic).partitions)
        self._positions = log.end_offsets([(topic, partition) for partition in partitions])

    def new(self) -> list[float]:
        """Returns how many seconds each new result took."""
        ends = self._log.end_offsets(self._positions)
        seen = time.perf_counter()
        found: list[float] = []
        for (topic, partition), end in ends.items():
            start = self._positions[topic, partition]
            if end > start:
                read = self._log.read(topic, partition, start, end)
                found += [seen - orjson.loads(value or b"")["sent"] for _, _, _, value, _ in read]
        self._positions = ends
        return found


def wait_for_result(results: Results, program: Running) -> float:
    """Returns the seconds from the start of the process to its first result."""
    deadline = program.started + FIRST_SECONDS
    while time.perf_counter() < deadline:
        if results.new():
            return time.perf_counter() - program.started
        program.check()
        time.sleep(POLL)
    message = f"no result within {FIRST_SECONDS:.0f} s"
    raise SystemExit(message)


def latencies(results: Results, program: Running, seconds: float) -> list[float]:
    """Returns what each result took, in milliseconds, after a few seconds that do not count."""
    found: list[float] = []
    warm = time.perf_counter() + WARM_UP
    end = warm + seconds
    while (now := time.perf_counter()) < end:
        new = results.new()
        if now >= warm:
            found += [latency * 1000 for latency in new]
        program.check()
        time.sleep(POLL)
    return found


def idle_percent(program: Running, seconds: float) -> float:
    """Returns what the waiting application takes of a core."""
    time.sleep(3)
    before, began = cpu_seconds(program.process.pid), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(program.process.pid) - before) / (time.perf_counter() - began) * 100


def judged(found: float, target: float) -> str:
    return f"target {target:g}: {'met' if found <= target else 'MISSED'}"


def first_results(log: EmbeddedLog, directory: Path, cache: dict[str, str], name: str, starts: int) -> list[float]:
    """Returns the time to the first result of each of some new applications."""
    found = []
    inputs = [(PURCHASES, partition) for partition in range(2)]
    for number in range(starts):
        # A new application begins with the oldest record; there shall be only one.
        log.delete_records(log.end_offsets(inputs))
        with running(task(directory, f"{name}-{number}", "newest"), cache) as program:
            results = Results(log, "out")
            log.append(PURCHASES, [purchase(number)])
            found.append(wait_for_result(results, program))
    return found


def measure_latency(
    log: EmbeddedLog, directory: Path, cache: dict[str, str], program_name: str, options: argparse.Namespace
) -> list[bool]:
    """Prints what a program takes at a steady rate, and when it waits; returns which targets were missed."""
    missed = []
    targets = TARGETS_MS[program_name]
    results = Results(log, "out")
    log.append(PURCHASES, [purchase(0)])
    with running(task(directory, f"latency-{program_name}", program_name), cache) as program:
        wait_for_result(results, program)
        sender = Sender(log, options.rate)
        found = sorted(latencies(results, program, options.seconds))
        sender.stop()
        if len(found) < 100:
            message = f"only {len(found)} results in {options.seconds:g} s"
            raise SystemExit(message)
        cuts = statistics.quantiles(found, n=100)
        for name, latency in ("p50", cuts[49]), ("p99", cuts[98]):
            where = f"{name} of '{program_name}' at {options.rate:,} records/s"
            print(f"{where} {latency:>8.0f} ms  {judged(latency, targets[name])}")
            missed.append(latency > targets[name])
        print(f"largest {found[-1]:>8.0f} ms, {len(found):,} results, {len(program.batches)} batches", flush=True)
        recent = program.batches[-100:]
        for phase in ("wait", "run", "publish"):
            middle = statistics.median(float(batch.report["phases"][phase]) for batch in recent)
            print(f"  {phase} of a micro-batch, in the middle {middle:>8.1f} ms")
        busy = statistics.median(max(task["seconds"] for task in batch.report["tasks"]) for batch in recent)
        print(f"  the longest task of it {busy * 1000:>8.1f} ms", flush=True)
        percent = idle_percent(program, options.idle)
        print(f"idle {percent:>8.1f} % of a core  {judged(percent, IDLE_TARGET)}", flush=True)
        missed.append(percent > IDLE_TARGET)
    return missed


def task(directory: Path, application: str, program: str) -> Task:
    return Task(program=program, application=application, directory=str(directory), out="out", until_end=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1_000, help="records/s")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="headrace-latency-", dir=options.directory))
    cache = {"HEADRACE_CACHE_DIR": str(directory / "cache")}
    missed = []
    try:
        with EmbeddedLog(directory / "log") as log:
            log.create_topic(PURCHASES, partitions=2)
            log.create_topic("out", partitions=2)
            for title, name, target in (
                ("without a class archive", "fresh", FRESH_TARGET),
                ("with the class archive", "start", FIRST_TARGET),
            ):
                firsts = first_results(log, directory, cache, name, 1 if name == "fresh" else options.starts)
                listed = ", ".join(f"{first:.1f}" for first in firsts)
                best = min(firsts)
                print(f"first result {title} {best:>8.1f} s ({listed})  {judged(best, target)}", flush=True)
                missed.append(best > target)
                if name == "fresh":
                    # What an application does by itself after a while, in the background.
                    command = [sys.executable, "-m", "headrace.cli", "prepare"]
                    subprocess.run(command, env={**os.environ, **cache}, check=True, capture_output=True)
            for program in TARGETS_MS:
                missed += measure_latency(log, directory, cache, program, options)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    sys.exit(1 if any(missed) else 0)


if __name__ == "__main__":
    main()
