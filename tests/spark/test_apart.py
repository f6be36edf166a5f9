"""An application that takes long and runs apart from others, which share their jobs and processes."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace import StreamsBuilder, StreamsConfig
from headrace.batches.application_run import ApplicationRun
from headrace.batches.executor import Executor
from headrace.spark.executor import SparkExecutor
from tests.app.kit import SOON
from tests.batches.kit import Bench
from tests.spark.stand import MASTER

pytestmark = pytest.mark.spark


class Told:
    """An application whose values are the numbers of the processes that have seen them."""

    def __init__(self, directory: Path, executor: Executor) -> None:
        self.began, self.gate = directory / "began", directory / "gate"
        began, gate = self.began, self.gate

        def process(value: Any) -> int:
            if value == "wait":
                began.touch()
                deadline = time.monotonic() + SOON
                while not gate.exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
            return os.getpid()

        def build(builder: StreamsBuilder) -> None:
            builder.stream("in").map_values(process).to("out")

        self._bench = Bench(directory, build, {"in": 1, "out": 1})
        self._executor = executor
        self._run = ApplicationRun(self._bench.layout, self._bench.log, directory / "host", key=directory.name)
        executor.add(self._run.application)
        self._seen = 0

    def run(self, value: str, *, apart: bool = False) -> int:
        """Runs a micro-batch of one record; returns the number of its process."""
        self._bench.write("in", (None, value, self._seen))
        self._seen += 1
        while len(self._bench.read("out")) < self._seen:
            plan = self._run.next_plan()
            assert plan is not None
            self._run.commit(plan, self._executor.run({self._run.key: plan}, apart=apart)[self._run.key])
        return int(self._bench.read("out")[-1][1])


def test_what_runs_apart_leaves_the_processes_of_others_alone(tmp_path: Path, spark_context: None) -> None:
    executor = SparkExecutor(StreamsConfig.of({"spark.master": MASTER}), tmp_path)
    with ThreadPoolExecutor() as pool:
        try:
            quick, slow = (Told(tmp_path / name, executor) for name in ("quick", "slow"))
            found: list[tuple[int, int]] = []
            for _ in range(4):
                waiting: Future[int] = pool.submit(slow.run, "wait", apart=True)
                deadline = time.monotonic() + SOON
                while not slow.began.exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                at_once = quick.run("x")
                slow.gate.touch()
                found.append((at_once, waiting.result(SOON)))
                slow.began.unlink()
                slow.gate.unlink()
        finally:
            slow.gate.touch()
            executor.close()
    # The first time each may have been in the process of the other one.
    assert len(set(found[1:])) == 1, found
    assert all(at_once != apart for at_once, apart in found)
