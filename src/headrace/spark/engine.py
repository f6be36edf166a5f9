"""The engine of an application on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.batches.engine import BatchEngine, EngineListener
from headrace.config import StreamsConfig
from headrace.spark.executor import make_executor
from headrace.spark.session import check_master
from headrace.spark.shipping import check_shippable
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology


def spark_engine(
    topology: Topology,
    config: StreamsConfig,
    log: DurableLog,
    *,
    listener: EngineListener,
    directory: Path,
    keep_open: Sequence[int] = (),
) -> BatchEngine:
    """Makes an engine that runs every micro-batch as a Spark job; see ``headrace.app.engine.Engine``."""
    check_shippable(topology, config)
    check_master(config)
    return BatchEngine(
        topology,
        config,
        log,
        listener=listener,
        directory=directory,
        keep_open=keep_open,
        make_executor=make_executor,
    )
