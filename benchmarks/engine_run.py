"""Runs one program on the engine in a process of its own, and prints a line of JSON per micro-batch.

A clean process per measurement: the JVM of one program does not warm the next one's.

    python -m benchmarks.engine_run '{"program": "b", "application": "bench", "directory": "…", "out": "out"}'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.engine_programs import FURTHER, PROGRAMS
from benchmarks.process_tree import tree, wait_until_gone
from headrace import StreamsConfig
from headrace.app.streams import Streams
from headrace.batches.reports import BatchReport


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a process is to run."""

    program: str
    application: str
    directory: str
    """Its log is in ``log``, and its state in ``state``."""
    out: str
    until_end: bool = True
    max_batch_records: int = 1_000_000
    cache_bytes: int = 1 << 30
    """So large that a batch writes each key once, like the update mode of the native queries."""
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of Spark."""
    bootstrap_servers: str | None = None
    """A Kafka cluster instead of the embedded log."""
    guarantee: str = "exactly_once_v2"

    def config(self) -> StreamsConfig:
        return StreamsConfig(
            application_id=self.application,
            state_dir=str(Path(self.directory) / "state"),
            log_dir=str(Path(self.directory) / "log"),
            bootstrap_servers=self.bootstrap_servers,
            processing_guarantee=self.guarantee,
            max_batch_records=self.max_batch_records,
            statestore_cache_max_bytes=self.cache_bytes,
            extras={"spark.master": "local[2,4]", **self.settings},
        )


@dataclass(frozen=True)
class Seen:
    """A micro-batch, and when it was over by the clock that all processes share."""

    at: float
    report: dict[str, Any]

    @property
    def records(self) -> int:
        return int(self.report["records_in"])

    @property
    def duration_ms(self) -> float:
        return float(self.report["duration_ms"])


def _command(task: Task) -> list[str]:
    return [sys.executable, "-m", "benchmarks.engine_run", json.dumps(asdict(task))]


def _seen(line: str) -> Seen:
    found = json.loads(line)
    return Seen(found.pop("at"), found)


def backfill(task: Task) -> list[Seen]:
    """Runs a program over everything that is in the log, and waits until nothing of it runs any more."""
    batches: list[Seen] = []
    processes: list[int] = []
    with subprocess.Popen(_command(task), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            batches.append(_seen(line))
            processes = processes or tree(process.pid)
    wait_until_gone(processes)
    if process.returncode:
        message = f"program {task.program} of application {task.application} failed; see above"
        raise SystemExit(message)
    return batches


class Running:
    """A program that runs until it is stopped; ``batches`` grows meanwhile."""

    def __init__(self, task: Task, environment: Mapping[str, str]) -> None:
        self.batches: list[Seen] = []
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            _command(task),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.batches.append(_seen(line))

    def check(self) -> None:
        """Ends the benchmark if the program has ended."""
        if self.process.poll() is not None:
            message = f"the program ended with {self.process.returncode}; see above"
            raise SystemExit(message)

    def stop(self) -> None:
        processes = tree(self.process.pid)
        # Closing its input is the sign to stop.
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._reader.join(5)
        wait_until_gone(processes)


@contextmanager
def running(task: Task, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Runs a program for as long as the context lasts."""
    program = Running(task, environment or {})
    try:
        yield program
    finally:
        program.stop()


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    streams = Streams((PROGRAMS | FURTHER)[task.program].build(task.out), task.config())

    def show(report: BatchReport) -> None:
        line = {**asdict(report), "phases": dict(report.phases), "at": time.perf_counter()}
        for each in line["tasks"]:
            # Its keys are partitions, which JSON does not take, and nobody asks for it here.
            del each["obsolete"]
        print(json.dumps(line), flush=True)

    streams.add_batch_listener(show)
    streams.start(until_end=task.until_end)
    if not task.until_end:
        threading.Thread(target=_close_at_end_of_input, args=(streams,), daemon=True).start()
    streams.wait()
    streams.close()


def _close_at_end_of_input(streams: Streams) -> None:
    sys.stdin.read()
    streams.close(timedelta(seconds=30))


if __name__ == "__main__":
    main()
