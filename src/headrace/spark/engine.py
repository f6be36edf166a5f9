"""``SparkEngine``: runs the topology of one application: its query, and what is around it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from headrace.config import StreamsConfig
from headrace.errors import IncompatibleTopologyError
from headrace.spark.batch import BatchReport
from headrace.spark.housekeeping import Housekeeping
from headrace.spark.layout import Program
from headrace.spark.planner import Planner
from headrace.spark.query import Query
from headrace.spark.receipts import TaskReport
from headrace.spark.shipping import check_shippable
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)


class EngineListener(Protocol):
    """Whom the engine tells what it has done."""

    def on_started(self) -> None: ...
    def on_batch(self, batch: BatchReport) -> None: ...


class SparkEngine:
    """Runs a topology on Spark until it is stopped; see ``headrace.app.engine.Engine``."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: TopicLog,
        *,
        listener: EngineListener,
        directory: Path,
        checkpoint: Path,
        keep_open: Sequence[int] = (),
    ) -> None:
        check_shippable(topology, config)
        self._topology = topology
        self._config = config
        self._log = log
        self._listener = listener
        self._directory = directory
        self._checkpoint = checkpoint
        self._keep_open = keep_open
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._metrics: dict[str, Any] = {}
        self._tasks: set[str] | None = None

    def run(self, *, available_now: bool = False) -> None:
        """Blocks until ``stop``, or with ``available_now`` until everything that is there now is processed."""
        if self._stopping.is_set():
            return
        with Housekeeping(self._log):
            while not self._run_query(available_now=available_now):
                logger.info("%s: other topics match a pattern now; going on with them", self._config.application_id)

    def _run_query(self, *, available_now: bool) -> bool:
        """Returns whether the application is at its end; otherwise there are other topics to be read."""
        program = Program.on(self._log, self._topology, self._config)
        query = Query(
            {"": program},
            self._log,
            directory=self._directory,
            checkpoint=self._checkpoint,
            keep_open=self._keep_open,
        )
        tasks = {place.name for place in query.application.layout.tasks}
        if self._tasks not in (None, tasks):
            message = (
                f"application '{self._config.application_id}': a topic that matches a pattern has another number of "
                "partitions than the others, so keys would go to other tasks than those that have their state; delete "
                "it, or reset the application to begin anew with all topics"
            )
            raise IncompatibleTopologyError(message)
        self._tasks = tasks
        planner = Planner(
            query.application,
            available_now=available_now,
            stopping=self._stopping,
            paused=self._paused,
            is_outdated=self._watch(),
        )
        query.run(planner, on_batch=self._on_batch, stopping=self._stopping)
        return not planner.outdated

    def _watch(self) -> Callable[[], bool] | None:
        """Returns how to find out that a pattern matches other topics than it did."""
        patterns = [source for source in self._topology.source_nodes if source.pattern is not None]
        if not patterns:
            return None

        def matching() -> set[str]:
            return {topic for topic in self._log.topics() if any(source.reads(topic) for source in patterns)}

        before = matching()
        return lambda: matching() != before

    def _on_batch(self, report: BatchReport, tasks: Sequence[TaskReport]) -> None:
        metrics = self._metrics
        first = not metrics
        for name, value in (
            ("batches-total", 1),
            ("records-consumed-total", report.records_in),
            ("records-produced-total", report.records_out),
            ("dropped-records-total", report.dropped),
            ("late-records-total", report.late),
        ):
            metrics[name] = metrics.get(name, 0) + value
        metrics |= {
            "batch-id": report.batch_id,
            "batch-ms": report.duration_ms,
            "batch-phases-ms": dict(report.phases),
            "lag": report.lag,
            "state-rows": report.state_rows,
            "chunk-rows": report.chunk_rows,
        }
        if first:
            self._listener.on_started()
        self._listener.on_batch(report)

    def stop(self) -> None:
        self._stopping.set()

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def metrics(self) -> dict[str, Any]:
        return dict(self._metrics)
