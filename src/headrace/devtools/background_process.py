"""Processes that outlive the one that starts them, such as those of servers for development."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from headrace.errors import LockError, StreamsError

_STEP_S = 0.1


@dataclass(frozen=True)
class Server:
    """A server in the background."""

    address: str
    """Where it answers; empty as long as it is starting."""
    pid: int
    directory: str
    words: str
    """Part of its command by which its process is known: the number may belong to another one by now."""


@dataclass(frozen=True)
class Service:
    """A kind of server of which one can run in a directory; a note there lets another process find and stop it."""

    name: str
    """As messages call it."""
    command: str
    """The command whose ``stop`` stops it."""
    file: str
    """Name of the note."""
    start_timeout_s: float
    stop_timeout_s: float

    def start(
        self, command: Sequence[str], directory: Path, words: str, output: Path, address: Callable[[], str | None]
    ) -> Server:
        """Starts a process that outlives this one; returns once ``address`` does not return None."""
        server = Server("", launch(command, output), str(directory), words)
        self._write_note(server)
        try:
            server = replace(server, address=self._wait(server, output, address))
            self._write_note(server)
        except BaseException:
            self.stop(directory)
            raise
        return server

    def check_none_runs(self, directory: Path) -> None:
        """Raises LockError if one runs in the directory."""
        running = self.find(directory)
        if running is not None:
            on = f" on {running.address}" if running.address else ""
            message = (
                f"a {self.name} runs in '{directory}' already, as process {running.pid}{on}; use it, or stop it with "
                f"'{self.command} stop'"
            )
            raise LockError(message)

    def find(self, directory: Path) -> Server | None:
        """Returns the server that runs in a directory."""
        try:
            found = Server(**json.loads((directory.expanduser() / self.file).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if is_running(found.pid, found.words) else None

    def stop(self, directory: Path) -> Server | None:
        """Stops the server of a directory and waits until it is gone; None if there was none."""
        running = self.find(directory)
        if running is not None:
            end(running.pid, running.words, patience_s=self.stop_timeout_s)
            (Path(running.directory) / self.file).unlink(missing_ok=True)
        return running

    def _write_note(self, server: Server) -> None:
        (Path(server.directory) / self.file).write_text(json.dumps(asdict(server)), encoding="utf-8")

    def _wait(self, server: Server, output: Path, address: Callable[[], str | None]) -> str:
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            time.sleep(_STEP_S)
            found = address()
            if found is not None:
                return found
            if not is_running(server.pid, server.words):
                said = last_lines(output.read_text(encoding="utf-8", errors="replace"))
                message = f"the {self.name} ended while it was starting: {said}"
                raise StreamsError(message)
        message = f"the {self.name} did not answer within {self.start_timeout_s:.0f} s; see '{output}'"
        raise StreamsError(message)


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
