"""``headrace grow``: the command, its refusals, and a process that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import local_engine
from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command
from tests.cli.counting import build

KEYS = 20_000
TARGET = "tests.cli.counting:build"
GROW = ("grow", "counting", TARGET, "--topic")


@pytest.fixture(autouse=True)
def _counted(log: EmbeddedLog, state_dir: Path) -> None:
    """Lets the application count every key once."""
    log.create_topic("in", partitions=2)
    count(log, state_dir, 1_000)


def count(log: EmbeddedLog, state_dir: Path, time_ms: int) -> None:
    log.append("in", [(None, time_ms, b"%d" % number, b"1", ()) for number in range(KEYS)])
    config = StreamsConfig.of({"application_id": "counting", "state_dir": str(state_dir)})
    builder = StreamsBuilder(config)
    build(builder)
    Streams(builder.build(config), config, log=log, engine=local_engine).run(until_end=True)


def last_counts(log: EmbeddedLog) -> set[int]:
    found: dict[bytes | None, bytes | None] = {}
    for partition in range(log.partitions_of("out")):
        found.update({key: value for _, _, key, value, _ in log.read("out", partition, 0)})
    assert len(found) == KEYS
    return {int.from_bytes(value or b"", "big") for value in found.values()}


def test_it_grows_an_application(headrace: Command, log: EmbeddedLog, state_dir: Path) -> None:
    done = headrace(*GROW, "in=6")
    assert "store 'counts': 20,000 rows, of which 13," in done.err
    assert "application 'counting' had 2 tasks and has 6" in done.err
    assert "done in " in done.err
    count(log, state_dir, 2_000)
    assert last_counts(log) == {2}


@pytest.mark.spark
def test_it_grows_an_application_on_spark(headrace: Command, log: EmbeddedLog, state_dir: Path) -> None:
    done = headrace(*GROW, "in=6", "--spark", "--set", "spark.master=local[2,4]")
    assert "application 'counting' had 2 tasks and has 6" in done.err
    count(log, state_dir, 2_000)
    assert last_counts(log) == {2}


def test_state_counts_rows_again_with_the_next_batch(headrace: Command, log: EmbeddedLog, state_dir: Path) -> None:
    assert [line.split()[:2] for line in headrace("state", "counting").lines[1:3]] == [
        ["0_0", "counts"],
        ["0_1", "counts"],
    ]
    headrace(*GROW, "in=6")
    done = headrace("state", "counting")
    assert "was changed and has not run since; the next batch counts" in done.err
    assert "counts" not in done.out
    count(log, state_dir, 2_000)
    found = headrace("state", "counting", "--json").json["tasks"]
    assert (len(found), sum(task["stores"]["counts"] for task in found)) == (6, KEYS)


def test_it_says_how_to_get_spark(headrace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "headrace.spark.parallel_map", raising=False)
    done = headrace(*GROW, "in=6", "--spark", code=1)
    assert "run `pip install 'headrace[spark]'`" in done.err


def test_it_says_why_not(headrace: Command) -> None:
    done = headrace(*GROW, "in=5", code=1)
    assert "'in' has 2 partitions and cannot get 5: only with a whole multiple" in done.err
    done = headrace(*GROW, "in", code=2)
    assert "write TOPIC=PARTITIONS, for example orders=12; found 'in'" in done.err


@pytest.mark.parametrize("line", [b"topic 'in' has", b"task 0_2 has", b"task 0_0 has"])
def test_a_process_that_is_killed_is_followed_by_another_one(
    line: bytes, headrace: Command, log: EmbeddedLog, state_dir: Path
) -> None:
    command = [sys.executable, "-m", "headrace.cli", *GROW, "in=6"]
    process = subprocess.Popen(
        command, env={**os.environ, "HEADRACE_STATE_DIR": str(state_dir)}, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    with process.stderr as lines:
        for told in lines:
            if told.startswith(line):
                process.kill()
                break
        process.wait()
    headrace(*GROW, "in=6")
    count(log, state_dir, 2_000)
    assert last_counts(log) == {2}
    assert log.partitions_of("counting-counts-changelog") == 6
