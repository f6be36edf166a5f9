"""Feeds records to a topology step by step and notes what each step gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace import Serdes, StreamsBuilder, StreamsConfig
from headrace.testing import TopologyTestDriver

Row = tuple[str | None, str | None, int]
"""Key, value and timestamp of a record that came out."""


class Step(NamedTuple):
    """One record that goes in."""

    topic: str
    key: str | None
    value: str | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


STRING = Serdes.string()


def config(**settings: Any) -> StreamsConfig:
    values = {"cache": 0, **settings}
    return StreamsConfig(
        application_id="test",
        default_key_serde=STRING,
        default_value_serde=STRING,
        statestore_cache_max_bytes=values.pop("cache"),
        **values,
    )


def pair(left: str | None, right: str | None) -> str:
    return f"{left or 'null'},{right or 'null'}"


class Run(NamedTuple):
    """What a run gave: the rows of each step, and how many records were dropped."""

    steps: list[list[Row]]
    dropped: int

    @property
    def rows(self) -> list[Row]:
        return [row for step in self.steps for row in step]


def run(build: Callable[[StreamsBuilder], None], steps: Iterable[Step], settings: StreamsConfig | None = None) -> Run:
    """Runs a topology that writes to the topic "out"."""
    settings = settings or config()
    builder = StreamsBuilder()
    build(builder)
    given: list[list[Row]] = []
    with TopologyTestDriver(builder.build(settings), settings, initial_wall_clock_ms=0) as driver:
        output = driver.create_output_topic("out", STRING, STRING)
        for step in steps:
            topic = driver.create_input_topic(step.topic, STRING, STRING)
            topic.pipe_input(step.key, step.value, timestamp_ms=step.timestamp_ms, headers=step.headers)
            given.append([(record.key, record.value, record.timestamp_ms or 0) for record in output.read_records()])
        return Run(given, int(driver.metrics()["dropped-records-total"]))
