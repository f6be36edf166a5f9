"""The application in trouble: it is started, killed and started again, and its input grows meanwhile."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from headrace.devtools.kafka_broker import start_broker, stop_broker
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog
from headrace.topics.kafka import KafkaLog
from tests.spark.faults import checks, shop
from tests.spark.faults.machines import on_own_machine
from tests.spark.faults.processes import MARK, Process, marked, wait_for_end
from tests.spark.faults.undisturbed import run_undisturbed

ROOT = Path(__file__).parents[3]
PATIENCE = 180.0
"""Seconds after which a run is taken to hang; other work may share the machine."""

Event = dict[str, Any]


class Disturbed:
    """The application with its directory, its input and what was seen of its runs."""

    def __init__(self, directory: Path, *, orders: int, seed: int, kafka: bool = False) -> None:
        self.directory = directory
        self.chance = random.Random(seed)
        self.inputs = list(shop.records(seed, orders))
        self._fed = 0
        self._runs = 0
        self._frozen: list[tuple[subprocess.Popen[bytes], str, list[Event]]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = ""
        self._events: list[Event] = []
        self._feeding = threading.Lock()
        self._batches_before = 0
        """What this run had committed when it was fed last."""
        self._started = 0.0
        self.restarts: list[tuple[str, float]] = []
        """What was special, and the seconds from the start of the process to its first batch."""
        self.orphans: list[float] = []
        """Seconds that the last process of a killed application lived on."""
        self.outages: list[float] = []
        """Seconds for which the broker was away."""
        (directory / "stumbles").mkdir(parents=True)
        self._settings: dict[str, Any] = {}
        self.log: DurableLog
        if kafka:
            self.start_broker()
            self.log = KafkaLog(self._settings["bootstrap.servers"])
        else:
            self.log = EmbeddedLog(directory / "log")
        shop.create_topics(self.log)

    # Its broker, if it has one

    @property
    def has_broker(self) -> bool:
        return bool(self._settings)

    def start_broker(self) -> None:
        """Starts a broker, or the same again."""
        address = self._settings.get("bootstrap.servers", ":0")
        port = int(address.rpartition(":")[2])
        # It looks for transactions that nobody ends every ten seconds otherwise.
        settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
        broker = start_broker(self.directory / "kafka", port=port, settings=settings)
        self._settings = {"bootstrap.servers": broker.address}
        self._settings |= {f"topic.{name}": value for name, value in shop.ANY_TIME.items()}

    def stop_broker(self) -> None:
        stop_broker(self.directory / "kafka")

    @contextmanager
    def foreign_transaction(self, seconds: int) -> Iterator[None]:
        """Leaves a transaction of somebody else hanging in an input and an output for as long as the context lasts."""
        from confluent_kafka import KafkaException, Producer

        producer = Producer(
            {
                "bootstrap.servers": self._settings["bootstrap.servers"],
                "transactional.id": f"somebody-else-{self.chance.random()}",
                "transaction.timeout.ms": seconds * 1000,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        for topic in ("orders", "enriched"):
            for partition in range(shop.PARTITIONS):
                producer.produce(topic, b"not json", b"nobody", partition, timestamp=shop.START_MS)
        producer.flush(30)
        yield
        # Else what lies behind it in the output cannot be read yet, and would be missed. Brokers may have been faster.
        with suppress(KafkaException):
            producer.abort_transaction(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frozen, mark, _ in self._frozen:
            frozen.kill()
            for process in marked(mark):
                process.kill()
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self.log.close()
        if self.has_broker:
            self.stop_broker()

    # The application

    def start(
        self, master: str = "local[2,4]", *, until_end: bool = False, own_machine: bool = False, **options: Any
    ) -> None:
        """Starts the application in a new process; on a machine of its own, all of its directories are empty."""
        self._runs += 1
        self._mark = f"{os.getpid()}-{id(self)}-{self._runs}"
        given = {"directory": str(self.directory), "master": master, "until_end": until_end, **options}
        given["settings"] = {**self._settings, **options.get("settings", {})}
        self._started = time.time()
        command = [sys.executable, "-m", "tests.spark.faults.program", json.dumps(given)]
        self._process = subprocess.Popen(
            on_own_machine(command, self.directory) if own_machine else command,
            cwd=ROOT,
            env={**os.environ, MARK: self._mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._events = []
        self._batches_before = 0
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for target, arguments in (
            (_collect_events, (self._process.stdout, self._events)),
            (_collect_output, (self._process.stderr, self.directory / "output.txt")),
        ):
            threading.Thread(target=target, args=arguments, daemon=True).start()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> str:
        """Kills the process of the application, and nothing else; returns the mark of what it leaves behind."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        return self._mark

    def freeze(self) -> None:
        """Stops all processes of the application in the middle of whatever they do."""
        assert self._process is not None
        for process in self.processes():
            process.kill(signal.SIGSTOP)
        self._frozen.append((self._process, self._mark, self._events))

    def thaw(self) -> str:
        """Lets those go on that were frozen, who have been deposed meanwhile; returns how the application ends."""
        frozen, mark, events = self._frozen.pop()
        for process in marked(mark):
            process.kill(signal.SIGCONT)
        frozen.wait(PATIENCE)
        wait_for_end(mark, 60)
        return str(next((event["error"] for event in events if event["event"] == "end" and "error" in event), "well"))

    def wait_for_orphans(self, mark: str) -> None:
        """Waits for the end of what a killed application has left, which must come by itself."""
        self.orphans.append(wait_for_end(mark, 60))

    def processes(self) -> list[Process]:
        """Returns the processes of this run."""
        return marked(self._mark)

    def pick(self, wanted: Callable[[Process], bool]) -> Process:
        """Returns one of the processes, once there is one."""
        found: list[Process] = []

        def is_there() -> bool:
            found[:] = filter(wanted, self.processes())
            return bool(found)

        self.wait_until(is_there, "there is such a process")
        return self.chance.choice(found)

    def events(self) -> list[Event]:
        """Returns what this run has told so far."""
        return list(self._events)

    def batches(self) -> int:
        return sum(event["event"] == "batch" for event in self.events())

    def wait_for_batches(self, count: int = 1, special: str | None = None) -> None:
        """Waits until this run has committed so many batches since it was fed last.

        With ``special`` the time of its start is noted.
        """
        wanted = self._batches_before + count
        self.wait_until(lambda: self.batches() >= wanted, f"{count} batches are done")
        if special is not None:
            first = next(event["time"] for event in self.events() if event["event"] == "batch")
            self.restarts.append((special, first - self._started))

    def wait_until_idle(self) -> None:
        """Waits until the whole input is processed, with what the application has sent to itself."""
        self.wait_until(lambda: not checks.unread(self.log), "everything is processed")

    def wait_for_failure(self, text: str = "") -> str:
        """Waits until this run has failed once with a text in its message; returns the message."""

        def failures() -> list[str]:
            return [event["error"] for event in self.events() if event["event"] == "failure" and text in event["error"]]

        self.wait_until(lambda: bool(failures()), f"it fails with '{text}'")
        return failures()[0]

    def wait_for_end(self) -> None:
        """Waits until the process ends well."""
        assert self._process is not None
        code = self._process.wait(PATIENCE)
        assert code == 0, f"the application ended with {code}:\n{self._output()}"

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert self._process is not None
            assert self._process.poll() is None, f"the application has ended before {what}:\n{self._output()}"
            if time.monotonic() > deadline:
                self._process.send_signal(signal.SIGUSR1)
                time.sleep(1)
                message = f"it takes too long until {what}:\n{self._output()}"
                raise AssertionError(message)
            time.sleep(0.02)

    def _output(self) -> str:
        return (self.directory / "output.txt").read_text(errors="replace")[-6000:]

    # Its input

    def feed(self, part: float) -> None:
        """Appends a part of the whole input; from any thread."""
        with self._feeding:
            self._batches_before = self.batches()
            end = min(len(self.inputs), self._fed + max(1, int(len(self.inputs) * part)))
            assert end > self._fed, "all of the input was fed: nothing can be waited for"
            shop.append(self.log, self.inputs[self._fed : end])
            self._fed = end

    def feed_rest(self) -> None:
        if self._fed < len(self.inputs):
            self.feed(1.0)

    @contextmanager
    def feeding(self, part: float, seconds: float) -> Iterator[None]:
        """Appends a part of the input bit by bit, while something else is done."""
        stop = threading.Event()
        pieces = max(1, int(seconds / 0.1))

        def feed() -> None:
            for _ in range(pieces):
                self.feed(part / pieces)
                if stop.wait(0.1):
                    break

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    @contextmanager
    def not_feeding(self) -> Iterator[None]:
        """Has those who feed wait."""
        with self._feeding:
            yield

    # Its working copies

    def damage_copies(self, *ways: str) -> None:
        """Deletes, truncates or overwrites working copies, one in each of the ways."""
        copies = [path for path in sorted((self.directory / shop.APPLICATION).glob("*_*")) if path.is_dir()]
        for way, copy in zip(ways, self.chance.sample(copies, len(copies)), strict=False):
            file = copy / "lmdb" / "data.mdb"
            with suppress(FileNotFoundError):
                if way == "delete":
                    shutil.rmtree(copy, ignore_errors=True)
                elif way == "truncate":
                    os.truncate(file, file.stat().st_size // 2)
                else:
                    with file.open("r+b") as opened:
                        opened.seek(self.chance.randrange(max(1, file.stat().st_size)))
                        opened.write(self.chance.randbytes(20_000))

    # What is checked

    def check(self) -> str:
        """Checks everything that was written; returns in words what that was."""
        assert self._fed == len(self.inputs), "all of the input is fed before the results are checked"
        last = self.log.last_batch(shop.APPLICATION)
        assert last is not None
        checks.check_consumed(self.log)
        checks.check_against_input(self.log, self.inputs)
        with run_undisturbed(self.directory / "undisturbed", self.inputs) as undisturbed:
            checks.check_against_input(undisturbed, self.inputs)
            count = checks.check_equal(self.log, undisturbed)
        stumbled = len(list((self.directory / "stumbles").iterdir()))
        return f"{last.batch_id + 1} batches, {count} results compared, {stumbled} functions failed once"


def _collect_events(file: IO[bytes], events: list[Event]) -> None:
    with file:
        for line in file:
            # The process may have been killed while it wrote.
            with suppress(ValueError):
                events.append(json.loads(line))


def _collect_output(file: IO[bytes], path: Path) -> None:
    with file, path.open("ab", buffering=0) as output:
        for line in file:
            output.write(line)
