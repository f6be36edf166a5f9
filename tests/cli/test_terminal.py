"""Commands on a terminal: live lines that are gone in the end, and what stays."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace import StreamsBuilder
from headrace.topics.embedded import EmbeddedLog

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n)")


@dataclass(frozen=True)
class Seen:
    """All that was drawn on the terminal, a line each time that it was drawn anew, and the exit code."""

    code: int
    text: str


def on_terminal(state_dir: Path, *args: str, **environment: str) -> Seen:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "HEADRACE_STATE_DIR": str(state_dir), "TERM": "xterm", "COLUMNS": "120", **environment},
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            some = os.read(ours, 65536)
        # Linux says so when the other side is closed; macOS returns nothing.
        except OSError:
            break
        if not some:
            break
        drawn += some
    os.close(ours)
    return Seen(process.wait(), _CONTROL.sub("", drawn.decode()).replace("\r", "\n"))


@pytest.mark.parametrize("command", [["run", "tests.cli.counting:build"], ["demo"]], ids=["run", "demo"])
def test_commands_that_run_applications_end_with_one_line_if_spark_cannot_start(
    command: list[str], state_dir: Path, log: EmbeddedLog, tmp_path: Path
) -> None:
    log.create_topic("in")
    seen = on_terminal(state_dir, *command, JAVA_HOME=str(tmp_path), PATH=str(tmp_path), TMPDIR=str(tmp_path))
    assert seen.code == 1
    assert re.search(r"error: Spark needs Java 17 or newer; .*\n$", seen.text)
    assert "AttributeError" not in seen.text


def test_records_are_counted_while_they_are_written(state_dir: Path) -> None:
    seen = on_terminal(state_dir, "generate", "purchases", "sales", "--count", "2000")
    assert seen.code == 0
    assert "2,000 of 2,000 records, " in seen.text
    assert "wrote 2,000 records to 'sales'" in seen.text


def peeking(builder: StreamsBuilder) -> None:
    builder.stream("in").peek(lambda key, value: print(f"seen: {key} {value}")).to("out")


@pytest.mark.spark
def test_run_shows_what_a_start_is_busy_with_and_what_functions_print(state_dir: Path, log: EmbeddedLog) -> None:
    log.create_topic("in")
    log.append("in", [(None, 0, b"k", b'"v"', ())])
    seen = on_terminal(state_dir, "run", f"{__name__}:peeking", "--until-end", "--console")
    assert seen.code == 0
    lines = seen.text.splitlines()
    assert any(re.search(r"^. test_terminal: starting Java, \d s$", line) for line in lines)
    # Each stands on a line of its own, above that of the progress.
    assert any(re.search(r"^console: http://localhost:\d+/console/$", line) for line in lines)
    assert "seen: k v" in lines
    assert re.search(r"^test_terminal: 1 record read, 1 written, 1 micro-batch in .* s$", lines[-1])


@pytest.mark.spark
def test_batches_as_json_are_no_part_of_a_live_line(state_dir: Path, log: EmbeddedLog) -> None:
    log.create_topic("in")
    log.append("in", [(None, 0, b"k", b'"v"', ())])
    seen = on_terminal(state_dir, "run", "tests.cli.counting:build", "--until-end", "--json")
    batches = [line for line in seen.text.splitlines() if line.startswith("{")]
    assert [json.loads(line)["records_in"] for line in batches] == [1]


@pytest.mark.spark
def test_demo_draws_its_tables(state_dir: Path) -> None:
    seen = on_terminal(state_dir, "demo", "--seconds", "2")
    assert seen.code == 0
    assert "Purchases on Spark" in seen.text
    assert "Free coffees" in seen.text
    assert re.search(r"[\d,]+ purchases in, ", seen.text)
