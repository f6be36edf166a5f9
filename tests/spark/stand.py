"""A log, and applications that run on it, on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import EmbeddedLog, Streams, StreamsBuilder, StreamsConfig
from headrace.batches.reports import BatchReport
from headrace.topics.journal import DurableLog
from tests.json_records import json_outputs

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

LONG = timedelta(minutes=2)
MASTER = "local[2,2]"


class Stand:
    """A log with topics, and applications that run on it until their input is used up."""

    def __init__(self, directory: Path, log: EmbeddedLog | KafkaLog) -> None:
        self.directory = directory
        self.log: DurableLog = log
        # This is all that an application is told of Kafka.
        self.servers = None if isinstance(log, EmbeddedLog) else log.bootstrap_servers
        self.batches: list[BatchReport] = []
        self._read: dict[tuple[str, int], int] = {}

    def topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        self.log.create_topic(
            name, partitions=partitions, configs={key.replace("_", "."): value for key, value in configs.items()}
        )

    def write(self, topic: str, *records: tuple[str | None, Any, int]) -> None:
        """Appends records of key, JSON value and timestamp."""
        self.log.append(topic, json_outputs(records))

    def config(self, **settings: Any) -> StreamsConfig:
        known = {"application_id": "app", "state_dir": str(self.directory), "spark.master": MASTER}
        if self.servers is not None:
            known["bootstrap_servers"] = self.servers
        return StreamsConfig.of({**known, **settings})

    def streams(self, build: Callable[[StreamsBuilder], Any], **settings: Any) -> Streams:
        builder = StreamsBuilder()
        build(builder)
        streams = Streams(builder.build(), self.config(**settings), log=self.log if self.servers is None else None)
        streams.add_batch_listener(self.batches.append)
        return streams

    def run(self, build: Callable[[StreamsBuilder], Any], **settings: Any) -> Streams:
        """Processes everything that is there."""
        streams = self.streams(build, **settings).start(until_end=True)
        assert streams.wait(LONG)
        return streams

    def read(self, topic: str) -> list[tuple[str | None, Any, int]]:
        """Returns what was written to a topic since the last call, partition by partition."""
        found: list[tuple[str | None, Any, int]] = []
        for partition in range(self.log.describe_topic(topic).partitions):
            for offset, time_ms, key, value, _ in self.log.read(
                topic, partition, self._read.get((topic, partition), 0)
            ):
                self._read[topic, partition] = offset + 1
                found.append(
                    (None if key is None else key.decode(), None if value is None else json.loads(value), time_ms)
                )
        return found
