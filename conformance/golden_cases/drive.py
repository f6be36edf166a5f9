"""Runs a case on an engine and notes what the format of the cases records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

from golden_cases.case import Case, GoldenNode
from golden_cases.dsl_build import STRING
from golden_cases.effects import Effects
from golden_cases.undone import Causes, UndoneDriver
from headrace import ProcessorStateError, StreamsConfig, StreamsError, Topology
from headrace.testing import TopologyTestDriver
from headrace.testing.store_getters import StoreGetters

Row = list[Any]
# A step gave records (topic, key, value, timestamp, headers) or {"error": class, "cause": class}.
Outcome = list[tuple[Any, ...]] | dict[str, str]


@dataclass
class Observed:
    """What a run gave."""

    steps: list[Outcome] = field(default_factory=list)
    effects: list[Effects] = field(default_factory=list)
    stores: dict[str, list[Row]] | None = None
    dropped: int | None = None
    failure: BaseException | None = None
    """What ended the run early, for the report."""


@cache
def config_of(cache_bytes: int, emit_interval_ms: int, optimization: str) -> StreamsConfig:
    return StreamsConfig.of(
        {
            "application.id": "golden",
            "statestore.cache.max.bytes": cache_bytes,
            "default.key.serde": STRING,
            "default.value.serde": STRING,
            "topology.optimization": optimization,
            "emit.interval.ms": emit_interval_ms,
        }
    )


def config(case: Case, *, optimization: str = "none") -> StreamsConfig:
    return config_of(case["config"]["cache_bytes"], case["config"]["emit_interval_ms"], optimization)


# A subclass comes before its base.
_JAVA_NAMES: tuple[tuple[type[BaseException], str], ...] = (
    (ProcessorStateError, "ProcessorStateException"),
    (StreamsError, "StreamsException"),
    (TypeError, "NullPointerException"),
)


def java_name(error: BaseException) -> str:
    """Returns the Java class that stands for an exception of ours."""
    return next((name for kind, name in _JAVA_NAMES if isinstance(error, kind)), type(error).__name__)


def innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def run_on_driver(case: Case, topology: Topology, settings: StreamsConfig, effects: Effects) -> Observed:
    """Runs a case as it was recorded: one task, a record at a time."""
    return _run(TopologyTestDriver(topology, settings, initial_wall_clock_ms=0), case, effects)


def run_on_disk(case: Case, topology: Topology, settings: StreamsConfig, effects: Effects) -> Observed:
    """The same as ``run_on_driver``, with persistent stores in files."""
    with TemporaryDirectory() as directory:
        driver = TopologyTestDriver(topology, settings, initial_wall_clock_ms=0, state_dir=directory)
        return _run(driver, case, effects)


def run_in_rocksdb(case: Case, topology: Topology, settings: StreamsConfig, effects: Effects) -> Observed:
    """The same as ``run_on_disk``, in RocksDB."""
    return run_on_disk(case, topology, replace(settings, default_dsl_store="rocksdb"), effects)


def run_batched(case: Case, topology: Topology, settings: StreamsConfig, effects: Effects) -> Observed:
    """The same as ``run_on_driver``, with a task per sub-topology and a micro-batch per step."""
    return _run(TopologyTestDriver(topology, settings, initial_wall_clock_ms=0, batched=True), case, effects)


def run_without(causes: Causes, case: Case, topology: Topology, settings: StreamsConfig, effects: Effects) -> Observed:
    """The same as ``run_batched``, without some causes of differences."""
    return _run(UndoneDriver(topology, settings, causes), case, effects)


def _run(driver: TopologyTestDriver, case: Case, effects: Effects) -> Observed:
    """Applies the steps of a case to a test driver, reading all output topics after each."""
    observed = Observed()
    try:
        inputs = {name: driver.create_input_topic(name, STRING, STRING) for name in case["topics"]}
        outputs = {name: driver.create_output_topic(name, STRING, STRING) for name in sorted(case["outputs"])}
        for step in case["steps"]:
            try:
                _apply(driver, inputs, step)
                driver.commit()
            except Exception as error:
                observed.failure = error
                observed.steps.append({"error": java_name(error), "cause": java_name(innermost(error))})
                observed.effects.append(effects[:])
                return observed
            observed.steps.append([row for name, topic in outputs.items() for row in _records(name, topic)])
            observed.effects.append(effects[:])
            effects.clear()
        observed.stores = {name: rows(driver, case, node) for name, node in store_nodes(case)}
        observed.dropped = int(driver.metrics()["dropped-records-total"])
    finally:
        driver.close()
    return observed


def _apply(driver: TopologyTestDriver, inputs: dict[str, Any], step: GoldenNode) -> None:
    if "advance_ms" in step:
        driver.advance_wall_clock_time(timedelta(milliseconds=step["advance_ms"]))
        return
    headers = tuple((name, value.encode()) for name, value in step.get("headers", ()))
    inputs[step["topic"]].pipe_input(step["key"], step["value"], timestamp_ms=step["ts"], headers=headers)


def _records(name: str, topic: Any) -> Iterator[tuple[Any, ...]]:
    for record in topic.read_records():
        headers = tuple((header, value.decode()) for header, value in record.headers)
        yield name, record.key, record.value, record.timestamp_ms, headers


def store_nodes(case: Case) -> Iterable[tuple[str, GoldenNode]]:
    """Yields the explicitly named stores whose content is recorded, each with the node that makes it."""
    recorded = case.get("stores") or {}
    made = {"add_state_store", "add_global_store"} if case["api"] == "papi" else None
    for node in case["nodes"]:
        if node.get("store") in recorded and (made is None or node["op"] in made):
            yield node["store"], node


def rows(driver: StoreGetters, case: Case, node: GoldenNode) -> list[Row]:
    """Returns the content of the store that a node makes, as the cases record it."""
    return sorted(_rows(driver, case, node), key=sort_key)


def sort_key(row: Row) -> str:
    return json.dumps(row)


def _rows(driver: StoreGetters, case: Case, node: GoldenNode) -> Iterator[Row]:
    name = node["store"]
    windows = node.get("windows", {}).get("type")
    if windows == "session":
        for windowed, value in driver.get_session_store(name).fetch_keys(None, None):
            yield [windowed.key, windowed.window.start_ms, windowed.window.end_ms, value, None]
    elif windows is not None:
        for windowed, row in driver.get_timestamped_window_store(name).all():
            yield [windowed.key, windowed.window.start_ms, windowed.window.end_ms, row.value, row.timestamp_ms]
    elif node.get("type") == "window":
        for windowed, value in driver.get_window_store(name).all():
            yield [windowed.key, windowed.window.start_ms, windowed.window.end_ms, value, None]
    elif "versioned_ms" in node:
        yield from _versioned_rows(driver, case, name)
    elif node["op"] in _PLAIN_STORES:
        for key, value in driver.get_key_value_store(name).all():
            yield [key, value, None]
    else:
        for key, row in driver.get_timestamped_key_value_store(name).all():
            yield [key, row.value, row.timestamp_ms]


_PLAIN_STORES = {"process", "process_values", "add_state_store", "add_global_store"}


def _versioned_rows(driver: StoreGetters, case: Case, name: str) -> Iterator[Row]:
    # A versioned store has no scan: ask for every key that the case could have made.
    store = driver.get_versioned_key_value_store(name)
    for key in possible_keys(case):
        found = store.get(key)
        if found is not None:
            yield [key, found.value, found.timestamp_ms]


def possible_keys(case: Case) -> set[str]:
    """Returns the keys and values of a case's records and stores, and their parts that key selectors cut out."""
    records = [step for step in case["steps"] if "topic" in step]
    records += [record for step in case["expected"] if isinstance(step, list) for record in step]
    texts = {text for record in records for text in (record["key"], record["value"]) if text is not None}
    texts |= {row[0] for stored in case["stores"].values() for row in stored}
    return texts | {part for text in texts for part in (text[:1], text[-1:], f"{text}0", f"{text}1")} | {"k", "null"}


Engine = Callable[[Case, Topology, StreamsConfig, Effects], Observed]
ENGINES: dict[str, Engine] = {
    "batched": run_batched,
    "disk": run_on_disk,
    "driver": run_on_driver,
    "rocksdb": run_in_rocksdb,
}
