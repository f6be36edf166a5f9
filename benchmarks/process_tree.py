"""What a process and everything that it has started use, read from ``/proc``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """What one part of an application uses."""

    processes: int = 0
    resident: int = 0
    """Bytes in memory, shared files included: pages of the log that was read count here while memory is plenty."""
    private: int = 0
    """Bytes of its own, which nothing but the process itself can give back."""
    descriptors: int = 0
    sockets: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.processes + other.processes,
            self.resident + other.resident,
            self.private + other.private,
            self.descriptors + other.descriptors,
            self.sockets + other.sockets,
        )


def tree(root: int) -> list[int]:
    """Returns a process and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for process in _processes():
        fields = _stat(process)
        if fields:
            children.setdefault(int(fields[1]), []).append(process)
    found = [root]
    for process in found:
        found.extend(children.get(process, ()))
    return found


def cpu_seconds(root: int) -> float:
    """Returns the processor time of a tree since it began; that of descendants that have ended is counted."""
    total = 0
    for process in tree(root):
        fields = _stat(process)
        if fields:
            total += sum(int(ticks) for ticks in fields[11:15])
    return total / _TICKS_PER_SECOND


def wait_until_gone(processes: Iterable[int], seconds: float = 60.0) -> None:
    """Waits until processes have ended, as a JVM does some time after the Python that has started it."""
    deadline = time.monotonic() + seconds
    while any((_PROC / str(process)).exists() for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)


def usage(root: int) -> dict[str, Usage]:
    """Returns what the driver, the JVM and the Python workers of an application use."""
    parts = {"driver": Usage(), "jvm": Usage(), "workers": Usage()}
    for process in tree(root):
        try:
            name = (_PROC / str(process) / "comm").read_text().strip()
            part = "driver" if process == root else "jvm" if name == "java" else "workers"
            parts[part] += _usage(process)
        except OSError:
            continue
    return parts


def _usage(process: int) -> Usage:
    directory = _PROC / str(process)
    sizes = {}
    for line in (directory / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            sizes[name] = int(value.split()[0]) * 1024
    links = []
    for descriptor in (directory / "fd").iterdir():
        try:
            links.append(os.readlink(descriptor))
        except OSError:
            continue
    sockets = sum(link.startswith("socket:") for link in links)
    return Usage(1, sizes.get("VmRSS", 0), sizes.get("RssAnon", 0), len(links), sockets)


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def _stat(process: int) -> list[str]:
    """Returns the fields of a process from its state on; nothing if it has ended."""
    try:
        text = (_PROC / str(process) / "stat").read_text()
    except OSError:
        return []
    # The name before may hold blanks and parentheses.
    return text.rpartition(")")[2].split()
