"""Instances that answer over HTTP without an application: views of a log, and what a test says of the others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace import StreamsConfig
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology
from headrace.views.metadata import HostInfo
from headrace.views.views import Views


class RunningInstance:
    """Views of everything, stepped by the test."""

    def __init__(
        self,
        log: TopicLog,
        topology: Topology,
        config: StreamsConfig,
        *,
        tasks: Sequence[str] | None = None,
        is_active: Callable[[str], bool] | None = None,
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="headrace-views-")
        self.log = log
        self.kept = Views(topology, config, log, Path(self._directory.name), tasks=tasks, is_active=is_active)
        self.kept.catch_up()
        self._active = is_active or (lambda _task: True)
        self.host = HostInfo("here", 1)
        self.others: list[HostInfo] = []
        self.failure: Exception | None = None

    def views(self) -> Views:
        if self.failure is not None:
            raise self.failure
        return self.kept

    def is_active(self, store: str, partition: int) -> bool:
        viewed = self.kept.viewed(store)
        return viewed.is_global or self._active(f"{viewed.subtopology}_{partition}")

    def holders(self, store: str, partition: int) -> Sequence[HostInfo]:
        return self.others

    def close(self) -> None:
        self.kept.close()
        self._directory.cleanup()


def rows_of(body: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(row["key"], row["value"]) for row in body["rows"]]
