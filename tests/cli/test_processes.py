"""The command as a process: pipes that break, Ctrl-C, typing, odd locales."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.topics.embedded import EmbeddedLog

SOON = 30
PIPE = subprocess.PIPE


def start(state_dir: Path, *args: str, **options: int) -> subprocess.Popen[bytes]:
    # A locale that knows no umlaut; what is printed is UTF-8 all the same.
    env = {**os.environ, "HEADRACE_STATE_DIR": str(state_dir), "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "headrace.cli", *args]
    return subprocess.Popen(command, env=env, stderr=PIPE, bufsize=0, **options)  # type: ignore[call-overload, no-any-return]  # bytes by default


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=SOON)
    return process.returncode, out or b"", err


@pytest.fixture
def filled(log: EmbeddedLog) -> EmbeddedLog:
    log.create_topic("in")
    log.append("in", [(None, n, None, b'"%d \xc3\xa4"' % n + b" " * 200, ()) for n in range(20_000)])
    return log


def test_exit_codes(state_dir: Path) -> None:
    assert finish(start(state_dir, "--version", stdout=PIPE))[0] == 0
    assert finish(start(state_dir, "consume", "nothing", stdout=PIPE))[0] == 1
    code, _, err = finish(start(state_dir, "frob", stdout=PIPE))
    assert code == 2
    assert err.startswith(b"error: No such command 'frob'")


def test_a_reader_that_has_seen_enough_ends_it_quietly(state_dir: Path, filled: EmbeddedLog) -> None:
    process = start(state_dir, "consume", "in", "--records", stdout=PIPE)
    assert process.stdout is not None
    process.stdout.read(100)
    process.stdout.close()
    process.stdout = None
    assert finish(process) == (0, b"", b"")


def test_ctrl_c_ends_follow_cleanly(state_dir: Path, filled: EmbeddedLog) -> None:
    process = start(state_dir, "consume", "in", "--follow", "--last", "1", stdout=PIPE)
    assert process.stdout is not None
    assert process.stdout.read(10).startswith('"19999 ä'.encode()[:9])
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (0, b"")


def test_what_is_typed_is_written_without_waiting_for_more(state_dir: Path, log: EmbeddedLog) -> None:
    log.create_topic("in")
    process = start(state_dir, "produce", "in", "--value-format", "string", stdin=PIPE)
    follower = start(state_dir, "consume", "in", "--value-format", "string", "--follow", "-n", "1", stdout=PIPE)
    assert process.stdin is not None
    process.stdin.write("größer\nno line end".encode())
    # Only the first line is over; its reader ends when it has it.
    assert finish(follower) == (0, "größer\n".encode(), b"")
    process.stdin.close()
    process.stdin = None
    assert finish(process) == (0, b"", b"wrote 2 records to 'in'\n")


def test_import_of_the_commands_loads_no_spark(state_dir: Path) -> None:
    script = "import sys, headrace.cli; print(*[n for n in ('pyspark', 'pandas', 'pyarrow') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
