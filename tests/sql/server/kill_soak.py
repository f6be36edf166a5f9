"""A server on Spark with many queries, killed under load again and again: ``python -m tests.sql.server.kill_soak``.

All its processes are killed with -9 at random moments, in its start as well, while rows come in. It is started again,
and on Kafka, by turns, another one takes over: one that is started then, with an empty directory, or one that was there
already. It is timed until there is a new result, and until all queries have one. No query may fail; in the end every
row counts once in every result, which is found out in plain Python from the rows that the topics have.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx

from headrace import EmbeddedLog
from headrace.devtools.kafka_broker import start_broker, stop_broker
from headrace.topics.log import TopicLog
from tests.spark.faults.processes import MARK, marked, wait_for_end
from tests.sql.server.many_queries import Load, ManyQueries, send

_PATIENCE_S = 120.0
_TARGET_S = 10.0
"""Within which there is a new result after a kill."""
_KILLS = "kills"
"""A topic in which they are noted."""
AGAIN, _ELSEWHERE, _STANDBY = "the same server again", "another server with an empty directory", "a server that waits"


class SparkServer:
    """A server as ``headrace sql server`` starts it, and all its processes."""

    def __init__(self, directory: Path, settings: list[str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.url = f"http://localhost:{_free_port()}"
        self._mark = uuid4().hex
        command = [sys.executable, "-m", "headrace.cli", "sql", "server", "--listen", self.url.removeprefix("http://")]
        command += ["--state-dir", str(directory)]
        for setting in settings:
            command += ["--set", setting]
        self.begun = time.monotonic()
        with (directory / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, MARK: self._mark},
            )

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self.directory / "output.txt").read_text(errors="replace")
            try:
                if httpx.get(f"{self.url}/info", trust_env=False).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.05)
        message = f"{self.url} does not answer after {_PATIENCE_S:g} s"
        raise AssertionError(message)

    def kill(self) -> None:
        """Ends the server, its JVM and its workers, all at once."""
        for process in marked(self._mark):
            process.kill()
        self._process.wait()
        wait_for_end(self._mark, _PATIENCE_S)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port: int = found.getsockname()[1]
        return port


class Soak:
    """A server under load, and how long it takes from each kill to the next results."""

    def __init__(
        self, directory: Path, log: TopicLog, settings: list[str], *, queries: int, rate: float, seed: int
    ) -> None:
        self._directory, self._log, self._settings = directory, log, settings
        self._chance = random.Random(seed)
        self._queries = ManyQueries(log, queries)
        self._load = Load(rate, seed)
        self._names = itertools.count()
        self._servers: list[SparkServer] = []
        self.times: list[tuple[str, float, float]] = []
        """Who went on, and the seconds until a query had a new result, and until all had."""

    def run(self, kills: int, ways: list[str]) -> None:
        self._log.create_topic(_KILLS)
        self._server = self._start(self._new_directory())
        self._server.wait_until_up()
        self._load.urls = [self._server.url]
        begun = time.monotonic()
        self._queries.create(self._server.url)
        with self._load.running():
            first, all_of_them = self._wait_for_results(begun, dict.fromkeys(self._queries.outputs, 0))
            say(f"created: a result after {first:.1f} s, of all queries after {all_of_them:.1f} s")
            for number in range(kills):
                self._kill_once(number, ways[number % len(ways)])
                time.sleep(self._chance.uniform(1, 8))
        say(self._queries.check_results(self._load.acknowledged))
        self._check_states()
        if self._load.refused:
            say(f"{len(self._load.refused)} rows were refused, as {self._load.refused[0][:300]}")

    def close(self) -> None:
        for server in self._servers:
            server.kill()

    def _kill_once(self, number: int, way: str) -> None:
        if way == _STANDBY:
            standby = self._start(self._new_directory())
            standby.wait_until_up()
            self._load.urls.append(standby.url)
            time.sleep(self._chance.uniform(0, 3))
        self._end(self._server)
        killed = time.monotonic()
        positions = self._queries.ends()
        if way == _STANDBY:
            self._server = standby
        else:
            self._go_on(way)
            if number % 3 == 2:
                seconds = self._chance.uniform(0, 10)
                time.sleep(seconds)
                self._end(self._server)
                say(f"kill {number + 1}: and again {seconds:.1f} s after its start")
                positions = self._queries.ends()
                killed = time.monotonic()
                self._go_on(way)
        first, all_of_them = self._wait_for_results(killed, positions)
        self._check_states()
        self.times.append((way, first, all_of_them))
        say(f"kill {number + 1}: {way}: a result after {first:.1f} s, of all queries after {all_of_them:.1f} s")

    def _go_on(self, way: str) -> None:
        self._server = self._start(self._server.directory if way == AGAIN else self._new_directory())
        self._load.urls = [self._server.url]

    def _start(self, directory: Path) -> SparkServer:
        self._servers.append(SparkServer(directory, self._settings))
        return self._servers[-1]

    def _end(self, server: SparkServer) -> None:
        server.kill()
        self._servers.remove(server)
        self._load.urls = [url for url in self._load.urls if url != server.url]
        # On the embedded log the last commit of a killed process is seen when another one writes: it is no new result.
        self._log.append(_KILLS, [(0, time.time_ns() // 1_000_000, None, server.url.encode(), ())])

    def _new_directory(self) -> Path:
        return self._directory / f"server-{next(self._names)}"

    def _wait_for_results(self, begun: float, positions: dict[str, int]) -> tuple[float, float]:
        """Returns the seconds until a query has written something behind its position, and until all have."""
        first: float | None = None
        missing = dict(positions)
        while missing:
            for name in self._queries.new_since(missing):
                del missing[name]
                first = first or time.monotonic() - begun
            assert time.monotonic() - begun < _PATIENCE_S, f"no result of {sorted(missing)}: {self._states()}"
            time.sleep(0.05)
        assert first is not None
        return first, time.monotonic() - begun

    def _states(self) -> list[tuple[str, str, list[str]]]:
        with httpx.Client(base_url=self._server.url, timeout=_PATIENCE_S, trust_env=False) as http:
            [found] = send(http, "SHOW QUERIES EXTENDED;")
        return [
            (each["id"], each["state"], [error["errorMessage"] for error in each["queryErrors"]])
            for each in found["queryDescriptions"]
        ]

    def _check_states(self) -> None:
        """Raises unless all queries run, and none has failed since the start of their server."""
        deadline = time.monotonic() + _PATIENCE_S
        states = self._states()
        while any(state == "STARTING" for _, state, _ in states) and time.monotonic() < deadline:
            time.sleep(0.1)
            states = self._states()
        assert len(states) == len(self._queries.outputs), states
        assert not (wrong := [each for each in states if each[1:] != ("RUNNING", [])]), wrong


@contextmanager
def opened_log(kind: str, directory: Path) -> Iterator[tuple[TopicLog, list[str]]]:
    """Gives a log, and the settings with which a server finds it."""
    if kind == "embedded":
        with EmbeddedLog(directory / "log") as log:
            yield log, [f"log.dir={directory / 'log'}"]
        return
    # Imported here: the embedded log needs no client of Kafka.
    from headrace.topics.kafka import KafkaLog

    broker = start_broker(directory / "kafka")
    try:
        with KafkaLog(broker.address) as log:
            yield log, [f"bootstrap.servers={broker.address}"]
    finally:
        stop_broker(directory / "kafka")


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills a server with many queries, and checks that nothing is lost.")
    parser.add_argument("--log", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--rate", type=float, default=50.0, help="rows a second")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    say(f"seed {options.seed}, {options.kills} kills, {options.queries} queries, {options.log} log")
    directory = Path(tempfile.mkdtemp(prefix="headrace-sql-kills-"))
    ways = [AGAIN] if options.log == "embedded" else [AGAIN, _ELSEWHERE, _STANDBY]
    with ExitStack() as held:
        log, settings = held.enter_context(opened_log(options.log, directory))
        soak = Soak(directory, log, settings, queries=options.queries, rate=options.rate, seed=options.seed)
        held.callback(soak.close)
        soak.run(options.kills, ways)
    shutil.rmtree(directory)
    sys.exit(0 if tell_times(soak.times) else 1)


def tell_times(times: list[tuple[str, float, float]]) -> bool:
    """Prints how long it took; returns whether it was as short as it should be."""
    for way in dict.fromkeys(way for way, _, _ in times):
        firsts = [first for each, first, _ in times if each == way]
        all_of_them = [last for each, _, last in times if each == way]
        is_met = max(firsts) <= _TARGET_S
        say(
            f"{way}: from the kill to a result {statistics.median(firsts):.1f} s ({max(firsts):.1f} at most), target "
            f"{_TARGET_S:g}: {'met' if is_met else 'MISSED'}; to results of all {statistics.median(all_of_them):.1f} s "
            f"({max(all_of_them):.1f} at most)"
        )
    return all(first <= _TARGET_S for _, first, _ in times)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
