from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.devtools.demo.results import Results
from headrace.devtools.demo.tills import Tills
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import Output
from tests.cli.conftest import Command


@pytest.mark.spark
def test_demo_shows_results_and_ends_by_itself(headrace: Command) -> None:
    done = headrace("demo", "--seconds", 5, "--rate", 100, "--keep")
    assert re.search(r"[\d,]+ purchases in, [\d,]+ records out, \d+ micro-batch", done.out)
    assert re.search(r"first result after \d+\.\d s", done.out)
    assert re.search(r"from append to visible result: p50 [\d,]+ ms, p99 [\d,]+ ms at 100 purchases/s", done.out)
    assert re.search(r"^ *\d+\.\d s  in [\d,]+, out [\d,]+, records/s", done.out, re.MULTILINE)
    found = re.search(r"the log and the state are in (\S+);", done.out)
    assert found is not None
    try:
        read, written = (
            headrace("consume", topic, "--state-dir", found[1]).lines for topic in ("transactions", "rewards")
        )
        assert len(read) >= 100
        assert sum("points" in line for line in written) > 0
    finally:
        shutil.rmtree(found[1])


@pytest.mark.spark
def test_ctrl_c_ends_the_demo_before_the_first_result(tmp_path: Path) -> None:
    # As `make demo` starts it: with the Python of an environment that is not active in the shell.
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    python.with_name("activate").touch()
    path = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "headrace").exists()]
    environment = {"PATH": os.pathsep.join(path), "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [python, "-m", "headrace.cli", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert "it was stopped before the first result" in out
    assert "\n  . venv/bin/activate\n" in out
    assert not list(tmp_path.glob("headrace-demo-*"))


def test_missing_java_is_told_in_a_line(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "headrace.cli", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"error: Spark needs Java 17 or newer; .*\n", done.stderr)


def test_latency_is_that_of_purchases_after_the_first_result(log: EmbeddedLog) -> None:
    for topic in ("patterns", "rewards", "free-coffees"):
        log.create_topic(topic)
    results = Results(log)
    assert not results.catch_up()
    log.append("patterns", [_pattern(0)])
    assert results.catch_up()
    assert results.latency_ms(0.5) is None
    log.append("patterns", [_pattern(time.time_ns() // 1_000_000 + 1_000)])
    assert results.catch_up()
    latency_ms = results.latency_ms(0.5)
    assert latency_ms is not None
    assert latency_ms <= 0
    assert [result.key for result in results.latest["patterns"]] == ["ada", "ada"]


def test_the_first_lot_of_purchases_is_small(log: EmbeddedLog) -> None:
    log.create_topic("transactions", partitions=2)
    tills = Tills(log, rate=100_000)
    tills.sell_first()
    tills.close()
    ends = log.end_offsets([("transactions", 0), ("transactions", 1)])
    assert sum(ends.values()) == tills.written == 500


def _pattern(timestamp_ms: int) -> Output:
    return None, timestamp_ms, b"ada", b'{"zip_code":"10115","item":"rake","total_cents":1999}', ()
