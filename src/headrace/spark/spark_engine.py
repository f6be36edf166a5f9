"""Engines on Spark: one with a Spark context and a loop of its own, and many that share both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

from headrace.batches.batch_engine import BatchEngine, EngineListener, own_loop
from headrace.batches.loop import Loop
from headrace.batches.shared_loop import PATIENCE, SharedLoop
from headrace.config import StreamsConfig
from headrace.spark.context import check_master
from headrace.spark.executor import SparkExecutor
from headrace.spark.shipping import check_shippable
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

_SPARE_THREADS = 32
"""Tasks of shared engines that may hang before others have to wait for a core."""


def spark_engine(
    topology: Topology,
    config: StreamsConfig,
    log: DurableLog,
    *,
    listener: EngineListener,
    directory: Path,
) -> BatchEngine:
    """Makes an engine that runs every micro-batch as a Spark job; see ``headrace.app.engine.Engine``."""
    check_shippable(topology, config)
    check_master(config)

    def open_loop(config: StreamsConfig, directory: Path, _check: Callable[[], None]) -> AbstractContextManager[Loop]:
        return own_loop(SparkExecutor(config, directory), log)

    return BatchEngine(topology, config, log, listener=listener, directory=directory, open_loop=open_loop)


class SharedSparkEngines:
    """Makes engines that share a Spark context and a loop: a job has the tasks of all of them.

    Spark starts with the first engine that runs, or with ``prepare``, with the settings of this object and files in
    ``directory``. A job of several that has not ended after ``patience`` is taken to hang; see ``SharedLoop``.
    """

    def __init__(
        self, config: StreamsConfig, log: DurableLog, directory: Path, *, patience: timedelta = PATIENCE
    ) -> None:
        check_master(config)
        self._config = config
        self._log = log
        self._directory = directory
        self._patience = patience
        self._lock = threading.Lock()
        self._executor: SparkExecutor | None = None
        self._loop: SharedLoop | None = None
        self._is_closed = False

    def __call__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: DurableLog,
        *,
        listener: EngineListener,
        directory: Path,
    ) -> BatchEngine:
        check_shippable(topology, config)
        return BatchEngine(topology, config, log, listener=listener, directory=directory, open_loop=self._open)

    @contextmanager
    def _open(self, _config: StreamsConfig, _directory: Path, _check: Callable[[], None]) -> Iterator[Loop]:
        with self._lock:
            loop = self._loop or self._start()[1]
        yield loop

    def _start(self) -> tuple[SparkExecutor, SharedLoop]:
        self._executor = SparkExecutor(self._config, self._directory, spare=_SPARE_THREADS)
        self._loop = SharedLoop(self._executor, self._log, patience=self._patience)
        return self._executor, self._loop

    def prepare(self) -> None:
        """Starts Spark and a Python worker before there is anything to run."""
        with self._lock:
            if self._loop is not None or self._is_closed:
                return
            executor, _ = self._start()
        executor.warm_up()

    def close(self) -> None:
        """Ends the loop and Spark's context; all engines must have stopped."""
        with self._lock:
            self._is_closed = True
            if self._loop is not None:
                self._loop.close()
            if self._executor is not None:
                self._executor.close()
            self._loop = self._executor = None
