"""The count by key as a test sees it: a driver on a machine of its own, what it tells, its input and its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from headrace.topics.kafka import KafkaLog
from tests.spark.faults.counting import INPUT, OUTPUT
from tests.spark.faults.machines import on_own_machine
from tests.spark.faults.standalone import Standalone

ROOT = Path(__file__).parents[3]


class Counting:
    """The application on a cluster. ``directory`` is another one on each machine."""

    def __init__(
        self,
        log: KafkaLog,
        cluster: Standalone,
        directory: Path,
        *,
        partitions: int,
        patience_s: float = 300.0,
        **settings: Any,
    ) -> None:
        for topic in (INPUT, OUTPUT):
            log.create_topic(topic, partitions=partitions)
        self._log = log
        self._patience_s = patience_s
        self._fed: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._positions = {(OUTPUT, partition): 0 for partition in range(partitions)}
        self._events: list[dict[str, Any]] = []
        self._output = directory.with_name("output.txt")
        given = {
            "application.id": "app",
            "bootstrap.servers": log.bootstrap_servers,
            "state.dir": str(directory),
            "statestore.cache.max.bytes": 0,
            "probing.rebalance.interval.ms": 1000,
            "spark.master": cluster.remote_address,
            "spark.driver.memory": "600m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        command = [sys.executable, "-m", "tests.spark.faults.counting", json.dumps(given)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                on_own_machine(command, directory), cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=output
            )
        assert self._process.stdout is not None
        threading.Thread(target=self._collect, args=(self._process.stdout,), daemon=True).start()

    def _collect(self, file: IO[bytes]) -> None:
        with file:
            for line in file:
                self._events.append(json.loads(line))

    def feed(self, keys: range) -> None:
        """Appends a record of each key."""
        for number in keys:
            self._fed[f"k{number}"] = self._fed.get(f"k{number}", 0) + 1
        self._log.append(INPUT, ((None, 0, b"k%d" % number, b"1", ()) for number in keys))

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._patience_s
        while not holds():
            assert self._process.poll() is None, f"it has ended before {what}:\n{self._output.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"it takes too long until {what}: {self._events[-5:]}"
            time.sleep(0.05)

    def wait_for_batches(self) -> None:
        """Waits until it has told of everything that it was fed."""
        records = sum(self._fed.values())
        self.wait_until(lambda: sum(each["records"] for each in self._batches()) == records, "all batches are told")

    def wait_for_counts(self) -> None:
        """Waits until everything is counted, and checks what was written: each count follows the one before."""

        def is_counted() -> bool:
            for (topic, partition), position in list(self._positions.items()):
                for offset, _, key, value, _ in self._log.read(topic, partition, position):
                    assert key is not None
                    assert value is not None
                    self._positions[topic, partition] = offset + 1
                    # Otherwise something was lost, or done twice.
                    assert int(value) == self._counts.get(key.decode(), 0) + 1
                    self._counts[key.decode()] = int(value)
            return self._counts == self._fed

        self.wait_until(is_counted, "everything is counted")
        self.wait_for_batches()

    def wait_for_copy(self, slot: int, host: str) -> None:
        """Waits until a machine has a copy of a slot that is caught up."""
        text = f"the copy of slot {slot} on {host} is caught up"
        self.wait_until(lambda: text in self.said(), text)

    def _batches(self) -> list[dict[str, Any]]:
        return [event for event in self._events if event["event"] == "batch"]

    def states(self) -> list[str]:
        """Returns the states that the application was in."""
        return [event["state"] for event in self._events if event["event"] == "state"]

    def said(self) -> list[str]:
        """Returns what was told of the placement of slots."""
        return [event["said"] for event in self._events if event["event"] == "placement"]

    def restored(self) -> list[dict[str, int]]:
        """Returns how many records tasks have restored in each batch."""
        return [event["restored"] for event in self._batches()]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
