"""Processes that outlive the one that starts them, such as those of servers for development."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_STEP_S = 0.1


def launch(command: Sequence[str], output: Path) -> int:
    """Starts a process that is nobody's child and writes to a file; returns its number."""
    # A session of its own: an interrupt in the terminal is not meant for it.
    done = subprocess.run(
        ["/bin/sh", "-c", 'output=$1; shift; "$@" >"$output" 2>&1 </dev/null & echo $!', "sh", str(output), *command],
        stdout=subprocess.PIPE,
        text=True,
        cwd=output.parent,
        start_new_session=True,
        check=True,
    )
    return int(done.stdout)


def is_running(pid: int, words: str) -> bool:
    """Tells whether a process still has these words in its command: its number may belong to another one by now."""
    done = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return words in done.stdout


def end(pid: int, words: str, *, patience_s: float) -> None:
    """Asks a process to end, and waits until it is gone; after some time it is killed."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while is_running(pid, words):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(_STEP_S)


def last_lines(text: str) -> str:
    """Returns the end of what a process has said."""
    return "\n".join(text.strip().splitlines()[-8:]) or "it said nothing"
