"""History in Parquet and live records on Kafka: seed and first run are killed, and nothing is missing or twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace import StreamsBuilder, StreamsConfig
from headrace.app.description import Description
from headrace.testing import TopologyTestDriver
from headrace.topics.log import Output
from tests.spark.faults.processes import MARK, marked, wait_for_end

if TYPE_CHECKING:
    from headrace.topics.kafka import KafkaLog

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PROGRAM = """
from datetime import timedelta

from headrace import Consumed, Grouped, Materialized, Produced, Serdes, TimeWindows

STRING, JSON, LONG = Serdes.string(), Serdes.json(), Serdes.long()

def build(builder):
    orders = builder.stream("orders", Consumed(key_serde=STRING, value_serde=JSON))
    by_item = orders.group_by(lambda user, order: order["item"], Grouped(key_serde=STRING, value_serde=JSON))
    sold = by_item.aggregate(lambda: 0, lambda item, order, sum: sum + order["count"],
                             materialized=Materialized("sold", key_serde=STRING, value_serde=JSON))
    sold.to_stream().to("sold", Produced(key_serde=STRING, value_serde=JSON))
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=500))
    visits = orders.group_by_key(Grouped(key_serde=STRING, value_serde=JSON)).windowed_by(windows).count()
    named = visits.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}")
    named.to("visits", Produced(key_serde=STRING, value_serde=LONG))
"""
CUT_MS, RECORDS, PARTITIONS = 4_000, 6_000, 2
SETTINGS = {"statestore.cache.max.bytes": "0", "max.batch.records": "300", "spark.master": "local[2,2]"}
OUTPUTS = ("sold", "visits")
PATIENCE_S = 180.0

Results = dict[tuple[str, bytes | None], tuple[int, bytes | None]]
"""How many results a key has, and the last one, by topic and key. Every order gives one result in each topic."""


def order(number: int) -> tuple[str, dict[str, Any], int]:
    return f"user-{number * 7 % 61}", {"item": f"item-{number * 11 % 37}", "count": number % 5}, number


def raw(number: int) -> Output:
    key, value, time_ms = order(number)
    return None, time_ms, key.encode(), json.dumps(value).encode(), ()


def write_history(path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [order(number) for number in range(CUT_MS)]
    columns = {
        "key": [key for key, _, _ in rows],
        "value": [value for _, value, _ in rows],
        "timestamp": [time_ms for _, _, time_ms in rows],
    }
    pyarrow.parquet.write_to_dataset(pyarrow.table(columns), path)


def add(results: Results, topic: str, output: tuple[Any, ...]) -> None:
    _, _, key, value, _ = output
    count, _ = results.get((topic, key), (0, None))
    results[topic, key] = (count + 1, value)


def expected_results() -> Results:
    """Returns what an application writes after the cut that has read everything."""
    found: dict[str, Any] = {}
    exec(PROGRAM, found)
    config = StreamsConfig.of({"application_id": "app"})
    builder = StreamsBuilder(config)
    found["build"](builder)
    results: Results = {}
    with TopologyTestDriver(builder.build(config), config, partitions=PARTITIONS) as driver:
        driver.pipe_raw_batch("orders", [raw(number) for number in range(CUT_MS)])
        for topic in OUTPUTS:
            driver.take_outputs(topic, driver.unread(topic))
        driver.pipe_raw_batch("orders", [raw(number) for number in range(CUT_MS, RECORDS)])
        for topic in OUTPUTS:
            for output in driver.take_outputs(topic, driver.unread(topic)):
                add(results, topic, output)
    return results


def results_in(log: KafkaLog) -> Results:
    results: Results = {}
    for topic in OUTPUTS:
        for partition in range(PARTITIONS):
            for output in log.read(topic, partition, 0):
                add(results, topic, output)
    return results


class Command:
    """A command of ``headrace`` on Kafka, in a process of its own, which can be killed with all that it has started."""

    def __init__(self, log: KafkaLog, directory: Path, *arguments: str) -> None:
        place = ["--bootstrap-servers", log.bootstrap_servers, "--state-dir", str(directory / "state")]
        settings = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        self._mark = os.urandom(8).hex()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", *arguments, "-a", "app", *place, *settings],
            env={**os.environ, MARK: self._mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill_when(self, is_time: Callable[[], bool]) -> bool:
        """Kills everything as soon as it is time, or never; returns whether it did not end before."""
        deadline = time.monotonic() + PATIENCE_S
        while self._process.poll() is None and not is_time():
            assert time.monotonic() < deadline, "the time to kill it never came"
        was_running = self._process.poll() is None
        for process in marked(self._mark):
            process.kill()
        self._process.communicate()
        wait_for_end(self._mark, PATIENCE_S)
        return was_running

    def wait(self) -> None:
        _, said = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, said
        wait_for_end(self._mark, PATIENCE_S)


def test_seed_and_first_run_that_are_killed_give_what_reading_everything_gives(kafka: KafkaLog, tmp_path: Path) -> None:
    program, history = tmp_path / "shop.py", tmp_path / "history"
    program.write_text(PROGRAM, encoding="utf-8")
    write_history(history)
    for topic in ("orders", *OUTPUTS):
        kafka.create_topic(topic, partitions=PARTITIONS)
    kafka.append("orders", [raw(number) for number in range(CUT_MS, RECORDS)])
    seed = ("backfill", f"{program}:build", "--input", f"orders={history}", "--seed", "--cut", str(CUT_MS))
    run = ("run", f"{program}:build", "--until-end", "--quiet")

    def has_begun() -> bool:
        return Description.read(kafka, "app") is not None

    def has_results() -> bool:
        return any(kafka.end_offsets([("sold", each) for each in range(PARTITIONS)]).values())

    assert Command(kafka, tmp_path, *seed).kill_when(has_begun)
    Command(kafka, tmp_path, *seed).wait()
    assert results_in(kafka) == {}
    assert Command(kafka, tmp_path, *run).kill_when(has_results)
    Command(kafka, tmp_path, *run).wait()
    assert results_in(kafka) == expected_results()
