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
from headrace.spark.statelessness import needs_state
from headrace.topics.log import TopicLog
from headrace.topology.queryable import topics_of_others
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
        self._query: Query | None = None
        self._metrics: dict[str, Any] = {}
        self._tasks: set[str] | None = None

    def run(self, *, available_now: bool = False) -> None:
        """Blocks until ``stop``, or with ``available_now`` until everything that is there now is processed."""
        if self._stopping.is_set():
            return
        with Housekeeping(self._log):
            while not self._run_query(available_now=available_now):
                logger.info("%s: there are other topics or partitions to read now", self._config.application_id)

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
        if self._tasks not in (None, tasks) and needs_state(self._topology, self._config):
            grown = ", ".join(f"'{topic}' with {n} partitions" for topic, n in sorted(self._read_topics().items()))
            message = (
                f"application '{self._config.application_id}': the topics that it reads have got other partitions, or "
                f"a pattern matches one with more of them ({grown}), so keys would go to other tasks than those that "
                "have their state; delete what is new, or start over with "
                f"`headrace reset {self._config.application_id}`"
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
        self._query = query
        try:
            query.run(planner, on_batch=self._on_batch, stopping=self._stopping)
        finally:
            self._query = None
        return self._stopping.is_set() or not planner.outdated

    def _watch(self) -> Callable[[], bool]:
        """Returns how to find out that there are other topics or partitions to read than before."""
        before = self._read_topics()

        def is_outdated() -> bool:
            now = self._read_topics()
            # One that is gone is missed where it is read.
            return any(before.get(topic) != partitions for topic, partitions in now.items())

        return is_outdated

    def _read_topics(self) -> dict[str, int]:
        """Returns the topics of others that sources read, and how many partitions they have."""
        sources, counts = self._topology.source_nodes, self._log.partition_counts()
        others = topics_of_others(self._topology, self._config.application_id, counts)
        return {topic: counts[topic] for topic in others if any(source.reads(topic) for source in sources)}

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

    def cancel(self) -> None:
        self._stopping.set()
        query = self._query
        if query is not None:
            query.cancel()

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def metrics(self) -> dict[str, Any]:
        return dict(self._metrics)
