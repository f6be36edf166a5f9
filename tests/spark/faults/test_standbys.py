"""A cluster of machines that share no directory: one joins and gets slots when it is warm, one is lost to a standby."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from headrace.topics.kafka import KafkaLog
from tests.spark.faults.counting import INPUT, OUTPUT
from tests.spark.faults.machines import on_own_machine, why_there_are_none
from tests.spark.faults.standalone import Standalone

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROOT = Path(__file__).parents[3]
PATIENCE_S = 180.0
KEYS = 4_000
TASKS = ("0_0", "0_1")


class Counting:
    """The application, what it tells, and its input and output."""

    def __init__(self, log: KafkaLog, settings: dict[str, Any], directory: Path) -> None:
        self._log = log
        self._fed: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._output = directory.with_name("output.txt")
        command = [sys.executable, "-m", "tests.spark.faults.counting", json.dumps(settings)]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                on_own_machine(command, directory), cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=output
            )
        assert self.process.stdout is not None
        threading.Thread(target=self._collect, args=(self.process.stdout,), daemon=True).start()

    def _collect(self, file: IO[bytes]) -> None:
        with file:
            for line in file:
                self._events.append(json.loads(line))

    def feed(self, keys: range) -> None:
        for number in keys:
            self._fed[f"k{number}"] = self._fed.get(f"k{number}", 0) + 1
        self._log.append(INPUT, [(None, 0, b"k%d" % number, b"1", ()) for number in keys])

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert self.process.poll() is None, f"it has ended before {what}:\n{self._output.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"it takes too long until {what}: {self._events[-5:]}"
            time.sleep(0.05)

    def wait_for_counts(self) -> None:
        """Waits until everything is counted."""
        counts: dict[str, int] = {}
        positions = {(OUTPUT, partition): 0 for partition in range(2)}

        def is_counted() -> bool:
            for (topic, partition), position in list(positions.items()):
                for offset, _, key, value, _ in self._log.read(topic, partition, position):
                    assert key is not None
                    assert value is not None
                    positions[topic, partition] = offset + 1
                    # Each count follows the one before, or something was lost, or done twice.
                    assert int(value) == counts.get(key.decode(), 0) + 1
                    counts[key.decode()] = int(value)
            return counts == self._fed

        self.wait_until(is_counted, "everything is counted")
        # What a batch has done is told after it is committed.
        records = sum(self._fed.values())
        self.wait_until(lambda: sum(each["records"] for each in self._batches()) == records, "all batches are told")

    def _batches(self) -> list[dict[str, Any]]:
        return [event for event in self._events if event["event"] == "batch"]

    def said(self) -> list[str]:
        return [event["said"] for event in self._events if event["event"] == "placement"]

    def batches(self) -> list[dict[str, int]]:
        """Returns how many records tasks have restored in each batch."""
        return [event["restored"] for event in self._batches()]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    reason = why_there_are_none()
    if reason is not None:
        pytest.skip(reason)
    with Standalone(tmp_path / "standalone") as made:
        yield made


def test_a_machine_joins_when_it_is_warm_and_takes_over_when_another_is_lost(
    cluster: Standalone, kafka: KafkaLog, tmp_path: Path
) -> None:
    for topic in (INPUT, OUTPUT):
        kafka.create_topic(topic, partitions=2)
    directory = tmp_path / "machine"
    settings = {
        "application.id": "app",
        "bootstrap.servers": kafka.bootstrap_servers,
        "state.dir": str(directory),
        "statestore.cache.max.bytes": 0,
        "num.standby.replicas": 1,
        "acceptable.recovery.lag": 0,
        "probing.rebalance.interval.ms": 1000,
        "spark.master": cluster.remote_address,
        "spark.driver.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
    }
    first = cluster.add_machine(directory)
    counting = Counting(kafka, settings, directory)
    try:
        counting.feed(range(KEYS))
        counting.wait_for_counts()
        assert not counting.said()
        # A second machine joins. One of the slots goes there, when its copy has all of the state.
        cluster.add_machine(directory)
        counting.wait_until(lambda: any("moves from" in said for said in counting.said()), "a slot moves")
        (moved,) = [said for said in counting.said() if "moves from" in said]
        assert any("is caught up" in said for said in counting.said()[: counting.said().index(moved)])
        assert moved.endswith("to executor_127.0.0.3_1")
        before = len(counting.batches())
        counting.feed(range(100))
        counting.wait_for_counts()
        restored = counting.batches()[before:]
        assert {task for batch in restored for task in batch} == set(TASKS)
        assert sum(sum(batch.values()) for batch in restored) == 0
        # The one that has moved leaves a standby behind, and the other one has had one for long.
        slot = moved.split()[1]
        behind = f"the copy of slot {slot} on 127.0.0.2 is caught up"
        counting.wait_until(lambda: behind in counting.said(), "there is a standby on both machines")
        # The first machine is lost while it works.
        before = len(counting.batches())
        counting.feed(range(200))
        first.kill()
        counting.feed(range(300))
        counting.wait_for_counts()
        # At most what was fed since its standby was last seen without anything missing, of thousands.
        restored = counting.batches()[before:]
        assert sum(sum(batch.values()) for batch in restored) <= 100 + 200 + 300
    finally:
        counting.process.kill()
        counting.process.wait()
