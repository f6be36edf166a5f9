"""Runs programs on Spark, all of them in one query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from headrace import StreamsConfig
from headrace.app.scripted.feed import Feed
from headrace.app.scripted.hosted import Hosted
from headrace.spark.batch import BatchReport
from headrace.spark.layout import Program
from headrace.spark.query import Query
from headrace.spark.receipts import TaskReport
from headrace.topics.embedded import EmbeddedLog
from spark_host.stores import LeftStores
from spark_host.without_spark import run_without_spark

# With one core there is one Python worker, which has every task open from one micro-batch to the next.
_SETTINGS = {"spark.master": "local[1,1]", "spark.driver.memory": "1g"}

OnBatch = Callable[[BatchReport, Sequence[TaskReport]], None]


class Hosting:
    """A log and a directory for programs that run together once."""

    def __init__(self, programs: Sequence[Hosted], directory: Path) -> None:
        self._hosted = programs
        self._directory = directory
        self._log = EmbeddedLog(directory / "log", sync="none")
        for each in programs:
            each.make_topics(self._log)
        self.programs: dict[str, Program] = {each.prefix: each.program(self._log) for each in programs}
        self.seconds = 0.0
        self.batches = 0

    def run(self, *, on_spark: bool = True, restart_every: int = 0, on_batch: OnBatch | None = None) -> None:
        """Blocks until all scripts have ended; raises what a task has failed of.

        Without Spark the tasks run in this process; with ``restart_every`` they start anew after so many batches.
        """
        first = next(iter(self.programs.values()))
        programs = {**self.programs, first.prefix: replace(first, config=_for_spark(first.config))}
        checkpoint = self._directory / "checkpoint"
        query = Query(programs, self._log, directory=self._directory / "state", checkpoint=checkpoint)
        feed = Feed(query.application, self._hosted)
        begun = perf_counter()
        try:
            if on_spark:
                query.run(feed, on_batch=on_batch or _ignore)
            else:
                run_without_spark(query.application, feed, checkpoint / "plans", restart_every=restart_every)
        finally:
            self.seconds, self.batches = perf_counter() - begun, feed.batches

    def stores(self, prefix: str) -> LeftStores:
        """Opens the stores of a program after the run."""
        return LeftStores(self.programs[prefix], self._log, self._directory / "state")

    def close(self) -> None:
        self._log.close()


def _for_spark(config: StreamsConfig) -> StreamsConfig:
    return replace(config, extras={**config.extras, **_SETTINGS})


def _ignore(_batch: BatchReport, _tasks: Sequence[TaskReport]) -> None:
    """Nobody watches the micro-batches."""
