"""Runs a topology on Headrace's driver as the generator ran it on Kafka's, and takes down the same things."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headrace import (
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    Topology,
    TopologyTestDriver,
)
from tests.kafka_streams import more_runs, runs
from tests.kafka_streams.raw import plain, read, show

# Both register their topologies when they are imported.
RUN_MODULES = (runs, more_runs)

VARIANTS = {
    "plain": {"statestore.cache.max.bytes": 0, "topology.optimization": "none"},
    "cached": {"statestore.cache.max.bytes": 10 * 1024 * 1024, "topology.optimization": "none"},
    "optimized": {"statestore.cache.max.bytes": 0, "topology.optimization": "all"},
}
_HANDLERS = {
    "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler": LogAndContinueExceptionHandler(),
    "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler": (
        LogAndContinueProcessingExceptionHandler()
    ),
}

Row = list[Any]
Topics = dict[str, list[Row]]


@dataclass
class Observed:
    """What a run gave, under the fixture's names."""

    describe: str
    outputs: list[Topics] = field(default_factory=list)
    effects: list[list[str]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    produced: list[str] = field(default_factory=list)
    dropped: int | None = None
    failure: Exception | None = None


def config(variant: str, settings: dict[str, str], **more: Any) -> StreamsConfig:
    handlers = {key: _HANDLERS[value] for key, value in settings.items()}
    fixed = {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "emit.interval.ms": 0,
    }
    return StreamsConfig.of({**fixed, **VARIANTS[variant], **handlers, **more})


def run(name: str, case: dict[str, Any], variant: str) -> Observed:
    settings = config(variant, case["config"])
    effects: list[str] = []
    topology = _build(name, settings, effects)
    observed = Observed(str(topology.describe()).rstrip())
    try:
        driver = TopologyTestDriver(topology, settings, initial_wall_clock_ms=0)
    except Exception as error:
        observed.failure = error
        return observed
    with driver:
        _observe(driver, observed, effects)
        for step in case["steps"]:
            try:
                _apply(driver, step)
            except Exception as error:
                observed.failure = error
                observed.effects.append(effects[:])
                return observed
            _observe(driver, observed, effects)
        observed.answers = [plain(_ask(driver, *query)) for query in case["queries"]]
        observed.stores = sorted(driver.get_all_state_stores())
        observed.produced = sorted(driver.produced_topic_names())
        observed.dropped = int(driver.metrics()["dropped-records-total"])
    return observed


def _build(name: str, settings: StreamsConfig, effects: list[str]) -> Topology:
    if name in runs.PAPI:
        return runs.PAPI[name](effects)
    builder = StreamsBuilder(settings)
    runs.DSL[name](builder, effects)
    return builder.build()


def _apply(driver: TopologyTestDriver, step: Row) -> None:
    if len(step) == 1:
        driver.advance_wall_clock_time(timedelta(milliseconds=step[0]))
        return
    topic, key, value, timestamp_ms, *headers = step
    pairs = tuple((name, text.encode()) for name, text in (headers[0] if headers else ()))
    driver.pipe_raw(topic, read(key), read(value), timestamp_ms=timestamp_ms, headers=pairs)


def _observe(driver: TopologyTestDriver, observed: Observed, effects: list[str]) -> None:
    topics = {
        topic: [_row(*output) for output in driver.take_outputs(topic, driver.unread(topic))]
        for topic in sorted(driver.produced_topic_names())
    }
    observed.outputs.append({topic: rows for topic, rows in topics.items() if rows})
    observed.effects.append(effects[:])
    effects.clear()


def _row(_partition: int | None, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Any) -> Row:
    shown = [[name, show(content)] for name, content in headers]
    return [show(key), show(value), timestamp_ms, *([shown] if shown else [])]


def _ask(driver: TopologyTestDriver, store: str, call: str, arguments: list[Any]) -> Any:
    given = [*arguments, Serdes.string()] if call == "prefix_scan" else arguments
    return getattr(driver.get_state_store(store), call)(*given)
