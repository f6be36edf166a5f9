"""How many persistent queries does one SQL server carry?

A server on Spark, in a process of its own, on the embedded log: a fifth each of filters, counts, windowed counts,
stream-table joins and stream-stream joins, all of which read the same streams. Measured are the time until all of them
have given a first result, what they cost when nothing happens, the time from a row to its results and the processor
time that it takes, at one row a second and at fifty, and whether fifty rows a second are taken by INSERT VALUES and by
``/inserts-stream``. Every row has a result in each query.

    python -m benchmarks.sql_many [--queries 1,10,30,100] [--seconds 20]
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.process_tree import cpu_seconds, tree, usage, wait_until_gone
from headrace.topics.embedded import EmbeddedLog

CUSTOMERS = 100
LONGEST = 300.0
WARM_UP = 5.0
POLL = 0.005
SLOW, FAST = 1, 50
"""Rows a second."""
SOURCES = """
    CREATE STREAM orders (customer STRING KEY, id BIGINT, amount DOUBLE)
        WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=1);
    CREATE STREAM payments (customer STRING KEY, id BIGINT)
        WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON', PARTITIONS=1);
    CREATE TABLE customers (customer STRING PRIMARY KEY, region INT)
        WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
QUERIES = (
    "CREATE STREAM {} AS SELECT * FROM orders WHERE amount > 0 EMIT CHANGES;",
    "CREATE TABLE {} AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer EMIT CHANGES;",
    "CREATE TABLE {} AS SELECT customer, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 10 SECONDS) "
    "GROUP BY customer EMIT CHANGES;",
    "CREATE STREAM {} AS SELECT o.customer, o.id, c.region FROM orders o JOIN customers c ON o.customer = c.customer "
    "EMIT CHANGES;",
    "CREATE STREAM {} AS SELECT o.customer, o.id, p.id FROM orders o JOIN payments p WITHIN 10 SECONDS "
    "ON o.customer = p.customer EMIT CHANGES;",
)


@dataclass(frozen=True)
class Target:
    """What is asked for with so many queries."""

    first_s: float | None = None
    idle_cores: float | None = None
    gigabytes: float | None = None
    fast_p50_ms: float | None = None
    slow_cpu_s: float | None = None


TARGETS = {
    30: Target(fast_p50_ms=300, slow_cpu_s=0.5),
    100: Target(first_s=30, idle_cores=0.05, gigabytes=2, fast_p50_ms=1000),
}


@dataclass(frozen=True)
class Timed:
    """Results at a rate."""

    p50: float
    p99: float
    cpu: float
    """Processor seconds per row."""
    results: int
    wanted: int


class Bench:
    """A server with so many queries."""

    def __init__(self, server: int, http: httpx.Client, log: EmbeddedLog, queries: int) -> None:
        self._server = server
        self._http = http
        self._log = log
        self._outputs = [f"Q{number}" for number in range(queries)]
        self._sent = 0

    def start(self) -> float:
        """Creates everything; returns the seconds until all queries have given a result."""
        self._ksql(SOURCES)
        now_ms = _now_ms()
        self._log.append(
            "customers",
            [(None, now_ms - 1, b"c%d" % each, b'{"REGION":%d}' % (each % 7), ()) for each in range(CUSTOMERS)],
        )
        self._append()
        began = time.perf_counter()
        for number, name in enumerate(self._outputs):
            self._ksql(QUERIES[number % len(QUERIES)].format(name))
        deadline = time.monotonic() + LONGEST
        while True:
            silent = [name for name in self._outputs if self._end(name) == 0]
            if not silent:
                return time.perf_counter() - began
            if time.monotonic() > deadline:
                message = f"after {LONGEST:g} s there is no result of {', '.join(silent)}"
                raise SystemExit(message)
            time.sleep(0.05)

    def idle(self, seconds: float) -> tuple[float, float]:
        """Returns the cores that are used when nothing happens, and the gigabytes that nobody shares."""
        time.sleep(WARM_UP)
        before = cpu_seconds(self._server)
        time.sleep(seconds)
        cores = (cpu_seconds(self._server) - before) / seconds
        return cores, sum(part.private for part in usage(self._server).values()) / 1e9

    def timed(self, rate: int, seconds: float, send: Callable[[], None] | None = None) -> Timed:
        """Sends rows at a rate, and looks when their results can be read."""
        send = send or self._append
        positions = {name: self._end(name) for name in self._outputs}
        before, first = cpu_seconds(self._server), self._sent
        found: list[float] = []
        began = time.perf_counter()
        rows = int(rate * seconds)
        stop = threading.Event()
        sender = threading.Thread(target=_at_rate, args=(send, rate, rows, began, stop), daemon=True)
        sender.start()
        # Two results of a join are one row's, and a second of the sender's may pass unused on a busy machine.
        while time.perf_counter() < began + seconds + max(3.0, seconds / 2):
            time.sleep(POLL)
            self._read_on(positions, found)
            if self._sent - first >= rows and len(found) >= rows * len(self._outputs):
                break
        stop.set()
        sender.join()
        cpu = (cpu_seconds(self._server) - before) / max(1, self._sent - first)
        found.sort()
        if not found:
            message = f"no row of {rows} had a result within {seconds * 1.5:g} s"
            raise SystemExit(message)
        return Timed(
            statistics.median(found),
            found[len(found) * 99 // 100],
            cpu,
            len(found),
            (self._sent - first) * len(self._outputs),
        )

    def _read_on(self, positions: dict[str, int], found: list[float]) -> None:
        ends = self._log.end_offsets([(name, 0) for name in self._outputs])
        now_ms = time.time() * 1000
        for (name, _), end in ends.items():
            if end > positions[name]:
                found += [now_ms - raw[1] for raw in self._log.read(name, 0, positions[name], end)]
                positions[name] = end

    def insert_values(self) -> None:
        """Sends a row by a statement."""
        customer = f"c{self._sent % CUSTOMERS}"
        self._ksql(f"INSERT INTO orders (customer, id, amount) VALUES ('{customer}', {self._sent}, 9.5);")
        self._sent += 1

    def accepted(self, seconds: float) -> dict[str, float]:
        """Returns how many rows a second are taken by either door, when fifty are sent."""
        rows = int(FAST * seconds)
        began = time.perf_counter()
        _at_rate(self.insert_values, FAST, rows, began, threading.Event())
        by_statement = rows / (time.perf_counter() - began)
        began = time.perf_counter()
        answer = self._http.post("/inserts-stream", content=self._rows(rows, began), timeout=LONGEST)
        _check(answer)
        taken = sum('"ok"' in line for line in answer.text.splitlines())
        return {"INSERT VALUES": by_statement, "/inserts-stream": taken / (time.perf_counter() - began)}

    def _rows(self, rows: int, began: float) -> Iterator[bytes]:
        yield b'{"target":"ORDERS"}\n'
        for number in range(rows):
            time.sleep(max(0.0, began + number / FAST - time.perf_counter()))
            row = {"CUSTOMER": f"c{self._sent % CUSTOMERS}", "ID": self._sent, "AMOUNT": 9.5}
            self._sent += 1
            yield json.dumps(row).encode() + b"\n"

    def _append(self) -> None:
        key, number, now_ms = b"c%d" % (self._sent % CUSTOMERS), self._sent, _now_ms()
        # First, so that the order finds it.
        self._log.append("payments", [(None, now_ms, key, b'{"ID":%d}' % number, ())])
        self._log.append("orders", [(None, now_ms, key, b'{"ID":%d,"AMOUNT":9.5}' % number, ())])
        self._sent += 1

    def _end(self, topic: str) -> int:
        return self._log.end_offsets([(topic, 0)])[topic, 0] if topic in self._log.topics() else 0

    def _ksql(self, text: str) -> None:
        _check(self._http.post("/ksql", json={"ksql": text, "streamsProperties": {"auto.offset.reset": "earliest"}}))


def _check(answer: httpx.Response) -> None:
    if answer.status_code != 200:
        raise SystemExit(answer.text)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _at_rate(send: Callable[[], None], rate: int, rows: int, began: float, stop: threading.Event) -> None:
    for number in range(rows):
        if stop.wait(max(0.0, began + number / rate - time.perf_counter())):
            return
        send()


@contextmanager
def served(queries: int) -> Iterator[Bench]:
    """Gives a server that has nothing yet."""
    directory = Path(tempfile.mkdtemp(prefix="headrace-sql-many-"))
    port = _free_port()
    command = [sys.executable, "-m", "headrace.cli", "sql", "server", "--listen", f"localhost:{port}"]
    with (directory / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [*command, "--state-dir", str(directory)], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        with httpx.Client(base_url=f"http://localhost:{port}", timeout=LONGEST) as http:
            _wait_until_up(process, http, directory)
            with EmbeddedLog(directory / "log") as log:
                yield Bench(process.pid, http, log, queries)
    finally:
        processes = tree(process.pid)
        process.terminate()
        process.wait(60)
        wait_until_gone(processes)
        shutil.rmtree(directory, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_until_up(process: subprocess.Popen[Any], http: httpx.Client, directory: Path) -> None:
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit((directory / "output.txt").read_text(errors="replace"))
        try:
            if http.get("/info").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    message = f"the server does not answer after {LONGEST:g} s"
    raise SystemExit(message)


def measure(queries: int, seconds: float) -> list[str]:
    """Measures a server with so many queries; returns the targets that were missed."""
    target = TARGETS.get(queries, Target())
    missed = []

    def told(what: str, value: float, unit: str, limit: float | None = None) -> None:
        said = ""
        if limit is not None:
            said = f"  target {limit:g}: {'met' if value <= limit else 'MISSED'}"
            missed.extend([] if value <= limit else [f"{queries} queries: {what}"])
        print(f"{queries:>5}  {what:<52}{value:>10,.3g} {unit}{said}", flush=True)

    with served(queries) as bench:
        told("until all have given a result", bench.start(), "s", target.first_s)
        cores, gigabytes = bench.idle(seconds)
        told("idle", cores, "cores", target.idle_cores)
        told("memory", gigabytes, "GB", target.gigabytes)
        for rate in (SLOW, FAST):
            timed = bench.timed(rate, seconds)
            is_fast = rate == FAST
            told(f"p50 at {rate} rows/s", timed.p50, "ms", target.fast_p50_ms if is_fast else None)
            told(f"p99 at {rate} rows/s", timed.p99, "ms")
            told(f"processor time per row at {rate} rows/s", timed.cpu, "s", None if is_fast else target.slow_cpu_s)
            told(f"results per row and query at {rate} rows/s", timed.results / timed.wanted, "")
        for door, taken in bench.accepted(seconds).items():
            told(f"rows/s by {door}, of {FAST} sent", taken, "")
            if taken < 0.95 * FAST:
                missed.append(f"{queries} queries: {door}")
        after = bench.timed(SLOW, min(seconds, 5.0))
        told("p50 at 1 row/s after that", after.p50, "ms")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="1,10,30,100", help="how many, separated by commas")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each part is measured")
    options = parser.parse_args()
    missed = [each for count in options.queries.split(",") for each in measure(int(count), options.seconds)]
    if missed:
        print("missed: " + "; ".join(missed), flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
