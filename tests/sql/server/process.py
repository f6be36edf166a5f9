"""A server in a process of its own, which can be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.sql.server.kit import SOON


class ServerProcess:
    """A server that keeps everything in a directory and runs queries in its process."""

    def __init__(self, directory: Path, *settings: str) -> None:
        command = [sys.executable, "-m", "headrace.cli", "sql", "server", "--engine", "process"]
        command += ["--listen", "localhost:0", "--state-dir", str(directory)]
        for setting in ("log.sync=none", *settings):
            command += ["--set", setting]
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        found = re.search(r"http://[\w.]+:\d+", said)
        assert found, said + self._process.stderr.read()
        self.url = found[0]

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self, number: int) -> int:
        """Sends a signal, unless it has ended already, waits for the end, and returns the exit code."""
        self._process.send_signal(number)
        assert self._process.stderr is not None
        try:
            return self._process.wait(SOON.total_seconds())
        except subprocess.TimeoutExpired:
            # It says where all its threads are.
            self._process.send_signal(signal.SIGABRT)
            message = f"the server does not end:\n{self._process.stderr.read()}"
            raise AssertionError(message) from None
        finally:
            self._process.stderr.close()
