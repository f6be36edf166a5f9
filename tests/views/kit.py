"""Applications whose tasks run in this process, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import EmbeddedLog, Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology
from headrace.views import Position, PositionBound
from tests.json_records import json_outputs

SOON = timedelta(seconds=20)
"""After which a test is taken to hang."""


class Place:
    """A log, by default one in the directory, and an application that runs on it in this process."""

    def __init__(self, directory: Path, log: DurableLog | None = None, /, **partitions: int) -> None:
        self.directory = directory
        self.log: DurableLog = EmbeddedLog(directory / "log", sync="none") if log is None else log
        for topic, count in partitions.items():
            self.log.create_topic(topic, partitions=count)

    def config(self, **settings: Any) -> StreamsConfig:
        known = {"application_id": "app", "state_dir": str(self.directory), "log_sync": "none"}
        return StreamsConfig.of({**known, **settings})

    def streams(self, build: Callable[[StreamsBuilder], Any], **settings: Any) -> Streams:
        config = self.config(**settings)
        return Streams(topology_of(build, config), config, log=self.log, engine=local_engine)

    def write(self, topic: str, records: Iterable[tuple[str | None, Any, int]]) -> PositionBound:
        """Appends records of key, JSON value and timestamp; returns the bound of who wants to read them."""
        return PositionBound.at(Position.after(topic, self.log.append(topic, json_outputs(records))))

    def close(self) -> None:
        self.log.close()


def topology_of(build: Callable[[StreamsBuilder], Any], config: StreamsConfig | None = None) -> Topology:
    builder = StreamsBuilder() if config is None else StreamsBuilder(config)
    build(builder)
    return builder.build() if config is None else builder.build(config)
