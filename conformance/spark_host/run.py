"""Programs on one executor: Spark's, the one in this process, or one that keeps starting anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from random import Random
from time import perf_counter

from headrace import StreamsConfig
from headrace.app.scripted_runs.hosted import Hosted
from headrace.app.scripted_runs.running import HostedPrograms
from headrace.batches.application import Application
from headrace.batches.executor import Executor, LocalExecutor
from headrace.batches.plan import Plan
from headrace.batches.reports import Outcome
from spark_host.stores import LeftStores

# With one core there is one Python worker, which has every task open from one micro-batch to the next.
_SETTINGS = {"spark.master": "local[1,1]", "spark.driver.memory": "1g"}

OnBatch = Callable[[], None]


class Hosting:
    """A directory for programs that run together once."""

    def __init__(self, programs: Sequence[Hosted], directory: Path) -> None:
        self._programs = HostedPrograms(programs, directory)
        self._directory = directory
        self.seconds = 0.0
        self.batches = 0

    def run(self, *, on_spark: bool = True, restart_every: int = 0) -> None:
        """Blocks until all scripts have ended, or failed.

        Without Spark the tasks run in this process; with ``restart_every`` they start anew after so many batches, and
        some of them without their working copies.
        """
        begun = perf_counter()
        executor = _spark(self._directory) if on_spark else _Restarting(restart_every)
        try:
            self.batches = self._programs.run(executor)
        finally:
            executor.close()
            self.seconds = perf_counter() - begun

    def stores(self, name: str) -> LeftStores:
        """Opens the stores of a program after the run."""
        programs = self._programs
        return LeftStores(programs.layouts[name], programs.log(name), programs.state_directory(name))

    def close(self) -> None:
        self._programs.close()


def _spark(directory: Path) -> Executor:
    # Imported here: only this executor needs pyspark.
    from headrace.spark.executor import SparkExecutor

    return SparkExecutor(StreamsConfig.of(_SETTINGS), directory / "spark")


class _Restarting:
    """The executor of this process, which forgets its open tasks now and then, and some of the working copies.

    Blobs arrive in random order, as after a shuffle.
    """

    def __init__(self, restart_every: int) -> None:
        self._restart_every = restart_every
        self._random = Random(1)
        self._below = LocalExecutor(arrange=self._random.shuffle)
        self._applications: dict[str, Application] = {}
        self._batches = 0

    def add(self, application: Application) -> None:
        self._applications[application.key] = application
        self._below.add(application)

    def remove(self, application: Application) -> None:
        del self._applications[application.key]
        self._below.remove(application)

    def run(self, plans: Mapping[str, Plan], *, apart: bool = False) -> Mapping[str, Outcome]:
        if self._restart_every and self._batches % self._restart_every == self._restart_every - 1:
            for application in self._applications.values():
                self._restart(application)
        self._batches += 1
        return self._below.run(plans, apart=apart)

    def _restart(self, application: Application) -> None:
        self._below.remove(application)
        for place in application.layout.tasks:
            if self._random.random() < 0.5:
                shutil.rmtree(application.directory / place.name, ignore_errors=True)
        self._below.add(application)

    def moving(self, plans: Mapping[str, Plan]) -> Mapping[str, Collection[str]]:
        return self._below.moving(plans)

    def cancel(self, keys: Collection[str]) -> None:
        self._below.cancel(keys)

    def close(self) -> None:
        self._below.close()
