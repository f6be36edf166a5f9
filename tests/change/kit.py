"""Applications that a test runs in this process until they have read everything, and changes between the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from headrace import Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

Build = Callable[[StreamsBuilder], Any]
Row = tuple[str, Any, int]
"""Key, JSON value and timestamp."""


class Program:
    """A topology under a name, on a log."""

    def __init__(self, log: DurableLog, directory: Path, build: Build, name: str = "app", **settings: Any) -> None:
        self.log = log
        self.build = build
        self.config = StreamsConfig.of(
            {"application_id": name, "state_dir": str(directory), "commit.interval.ms": 0, **settings}
        )

    @property
    def topology(self) -> Topology:
        builder = StreamsBuilder(self.config)
        self.build(builder)
        return builder.build(self.config)

    def run(self) -> None:
        """Runs until everything is read that is there."""
        Streams(self.topology, self.config, log=self.log, engine=local_engine).run(until_end=True)


def write(log: DurableLog, topic: str, rows: Iterable[Row]) -> None:
    log.append(
        topic,
        [
            (None, time_ms, key.encode(), None if value is None else json.dumps(value).encode(), ())
            for key, value, time_ms in rows
        ],
    )


def read_by_key(log: DurableLog, topic: str) -> dict[bytes, list[tuple[int, bytes | None]]]:
    """Returns times and values of each key in their order; keys keep their partitions, so this is all that counts."""
    found: dict[bytes, list[tuple[int, bytes | None]]] = {}
    for partition in range(log.partitions_of(topic)):
        target = (topic, partition)
        start, end = log.begin_offsets([target])[target], log.end_offsets([target])[target]
        while start < end and (page := log.read(topic, partition, start, end)):
            for _, time_ms, key, value, _ in page:
                found.setdefault(key or b"", []).append((time_ms, value))
            start = page[-1][0] + 1
    return found
