"""Executors of a cluster as Spark tells of them, bit by bit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headrace.spark.assignment import LiveExecutor
from headrace.spark.cluster import Cluster


def test_an_executor_counts_when_it_is_known_where_it_is() -> None:
    # What Spark has heard of first is the executor's memory.
    summaries = iter([("", 0), ("10.0.0.7:4040", 2)])

    def summary(id_: str) -> Any:
        host_port, tasks = next(summaries)
        return SimpleNamespace(hostPort=lambda: host_port, maxTasks=lambda: tasks)

    context: Any = SimpleNamespace(
        getExecutorIds=lambda: SimpleNamespace(mkString=lambda separator: "1"),
        statusStore=lambda: SimpleNamespace(executorSummary=summary),
    )
    cluster = Cluster(SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context)))  # type: ignore[arg-type]
    assert cluster.executors() == []
    assert cluster.executors() == [LiveExecutor("1", "10.0.0.7", 2)]
    # Nothing of it changes any more.
    assert cluster.executors() == [LiveExecutor("1", "10.0.0.7", 2)]
