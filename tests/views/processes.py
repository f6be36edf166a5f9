"""Processes of ``headrace view``, of which each keeps a share of the views of ``tests.views.counting``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.views.kit import Place

HEARTBEAT = 0.2
SOON = 40.0
ROOT = Path(__file__).parents[2]


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Looks again and again: other processes tell nobody when they are done."""
    deadline = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Processes:
    """The processes, of which each serves what it keeps: over HTTP, or by a function of the tests."""

    def __init__(self, place: Place, standbys: int, *, lease: float, server: str | None = None) -> None:
        self._place = place
        self._options = ["--standbys", str(standbys), "--heartbeat", str(HEARTBEAT), "--lease", str(lease)]
        self._options += ["--http", "localhost:0"] if server is None else ["--server", server]
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        command = [sys.executable, "-m", "headrace.cli", "view", "tests/views/counting.py:build", "-a", "app"]
        command += ["--state-dir", str(self._place.directory), "--set", "log.sync=none", "--name", name]
        command += [*self._options, "--json"]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with (self._place.directory / f"{name}.out").open("ab") as out:
            self.running[name] = subprocess.Popen(
                command, stdout=out, stderr=out, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
            )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
        codes = {name: process.wait(SOON) for name, process in self.running.items()}
        assert set(codes.values()) <= {0}, {name: self.output(name) for name in codes}

    def output(self, name: str) -> str:
        return (self._place.directory / f"{name}.out").read_text(encoding="utf-8")
