"""Global stores of a view: kept from their own topics, by the processors that the topology gives them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.config import StreamsConfig
from headrace.runtime.global_task import make_global_task
from headrace.state import StoreBuilder
from headrace.state.engines.changes import Changes
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.log import Raw, ReadableLog
from headrace.topology.topology import Topology
from headrace.views.replica import Replica, engine_name
from headrace.views.viewed_stores import Part

WHOLE = -1
"""The partition under which the rows of a global store lie."""


class GlobalFeed:
    """The task that keeps the global stores of a replica."""

    def __init__(self, topology: Topology, config: StreamsConfig, log: ReadableLog, replica: Replica) -> None:
        self._host = _Host(topology, config, log, replica)
        made = make_global_task(topology, config, self._host)
        assert made is not None, "only topologies with global stores get here"
        self._task = made

    def feed(self, records: Mapping[tuple[str, int], Sequence[Raw]]) -> dict[str, Changes]:
        """Processes records by topic and partition; returns what they change, by engine."""
        for (topic, partition), raws in records.items():
            self._task.add_records(topic, partition, list(raws))
        self._task.process_all()
        self._task.commit()
        self._task.take_outputs()
        return {engine_name((name, WHOLE)): engine.changes() for name, engine in self._task.engines().items()}

    def settle(self) -> None:
        """Forgets the changes, which have been written."""
        for engine in self._task.engines().values():
            engine.rollback()

    def reload(self) -> None:
        """Goes on with what the replica has."""
        self.settle()
        for store in self._task.stores.values():
            store.reload()

    def close(self) -> None:
        self._task.close()


class _Host:
    """Host of the task of global stores."""

    def __init__(self, topology: Topology, config: StreamsConfig, log: ReadableLog, replica: Replica) -> None:
        self._topology, self._config, self._log, self._replica = topology, config, log, replica
        self.global_stores: Mapping[str, Any] = {}

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def topic_name(self, topic: str) -> str:
        return self._topology.full_topic_name(topic, self._config.application_id)

    def partitions_of(self, topic: str) -> int:
        return self._log.partitions_of(topic)

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        part: Part = (builder.name, WHOLE)
        return OverlayEngine(self._replica.engine(part))
