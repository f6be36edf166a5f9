"""The task that keeps the global stores of a topology: one per host, fed by all partitions of their topics."""

from __future__ import annotations

from dataclasses import replace

from headrace.config import StreamsConfig
from headrace.handlers import LogAndContinueExceptionHandler
from headrace.runtime.task import Task, TaskId
from headrace.runtime.task_state import Host
from headrace.topology.nodes import SourceNode
from headrace.topology.topology import Topology

GLOBAL = TaskId(-1, 0)


def make_global_task(topology: Topology, config: StreamsConfig, host: Host) -> Task | None:
    """Returns the global task of a topology, or None if it has no global stores."""
    if not topology.global_stores:
        return None
    names = [name for part in topology.subtopologies() if part.is_global for name in part.nodes]
    # A global store takes records with their own timestamps, and skips those it cannot read.
    nodes = [
        replace(node, timestamp_extractor=None) if isinstance(node, SourceNode) else node
        for node in (topology.nodes[name] for name in names)
    ]
    config = replace(config, deserialization_exception_handler=LogAndContinueExceptionHandler())
    stores = topology.global_stores.values()
    task = Task(GLOBAL, nodes, topology.children, [store.builder for store in stores], config, host)
    for store in stores:
        for partition in range(host.partitions_of(store.topic)):
            task.add_partition(store.source, store.topic, partition)
    return task
