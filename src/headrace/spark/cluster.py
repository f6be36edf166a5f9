"""The executors of a cluster, as Spark's driver knows them."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no annotations
from pyspark import SparkContext

from headrace.spark.assignment import LiveExecutor


class Cluster:
    """Lists executors; what is known of one never changes, so each is asked for once."""

    def __init__(self, context: SparkContext) -> None:
        # Any: what py4j returns.
        self._context: Any = context._jsc.sc()
        self._known: dict[str, LiveExecutor] = {}

    def executors(self) -> list[LiveExecutor]:
        """Returns the executors that are registered now."""
        ids = [id_ for id_ in self._context.getExecutorIds().mkString(",").split(",") if id_]
        found = {id_: self._known.get(id_) or self._ask_for(id_) for id_ in ids}
        self._known = {id_: executor for id_, executor in found.items() if executor is not None}
        return list(self._known.values())

    def is_alive(self, id_: str) -> bool:
        """Returns whether Spark gives tasks to an executor."""
        return bool(self._context.taskScheduler().isExecutorAlive(id_))

    def _ask_for(self, id_: str) -> LiveExecutor | None:
        try:
            summary = self._context.statusStore().executorSummary(id_)
        except Py4JJavaError:
            # It has just come, and this part of Spark has not heard of it yet.
            return None
        host = summary.hostPort().rpartition(":")[0]
        # That an executor has memory may be heard of before where it is.
        return LiveExecutor(id_, host, max(1, summary.maxTasks())) if host else None
