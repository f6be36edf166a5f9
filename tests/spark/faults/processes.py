"""The processes of an application, found by a mark in their environment, and what can be done to them.

Linux only: it is read from /proc.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "HEADRACE_FAULT_RUN"
_DAEMONS = "headrace.spark.daemon", "pyspark.daemon"
"""In the command of the process from which Python workers are forked, and in theirs: ours, or Spark's on clusters."""


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    @property
    def is_python(self) -> bool:
        """Whether it is a Python worker, or the daemon from which workers are forked."""
        return _is_daemon(self.command)

    @property
    def is_worker(self) -> bool:
        """Whether it is a Python worker: a fork of the daemon, which the JVM has started."""
        return self.is_python and _is_daemon(_command(self.parent))

    @property
    def is_driver(self) -> bool:
        """Whether it is the JVM of the driver."""
        return "org.apache.spark.deploy.SparkSubmit" in self.command

    @property
    def is_executor(self) -> bool:
        return "CoarseGrainedExecutorBackend" in self.command

    def kill(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def marked(mark: str) -> list[Process]:
    """Returns all processes whose environment has the mark; dead ones that nobody waits for are not among them."""
    wanted = f"{MARK}={mark}".encode()
    return [process for process in _all() if wanted in _read(process.pid, "environ").split(b"\0")]


def wait_for_end(mark: str, seconds: float) -> float:
    """Waits until no process has the mark; returns how long it took."""
    begun = time.monotonic()
    while left := marked(mark):
        if time.monotonic() - begun > seconds:
            found = "\n".join(f"{process.pid} {process.command[:200]}" for process in left)
            message = f"these processes are still there after {seconds} s:\n{found}"
            raise AssertionError(message)
        time.sleep(0.05)
    return time.monotonic() - begun


@contextmanager
def no_room(processes: list[Process], size: int) -> Iterator[None]:
    """Lets the system refuse every write behind ``size`` bytes of any file, as a full disk would, for a while.

    It takes no privilege, unlike a small file system.
    """
    before: dict[int, tuple[int, int]] = {}
    for process in processes:
        with suppress(ProcessLookupError):
            before[process.pid] = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, before[process.pid][1]))
    try:
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def _all() -> Iterator[Process]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (command := _command(int(entry.name))):
            stat = _read(int(entry.name), "stat").rpartition(b")")[2].split()
            if stat:
                yield Process(int(entry.name), int(stat[1]), command)


def _is_daemon(command: str) -> bool:
    return any(daemon in command for daemon in _DAEMONS)


def _command(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
