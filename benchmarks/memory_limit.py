"""Bound on the memory of a process by a control group: heap and page cache together.

A limit on the address space (``RLIMIT_AS``) would not do: it counts a file that is mapped as a whole, and leaves the
page cache, in which such a file really lies, alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_bytes(text: str) -> int:
    """Returns a number of bytes from text.

    >>> parse_bytes("2g"), parse_bytes("512m")
    (2147483648, 536870912)
    """
    found = re.fullmatch(r"(\d+)([kmg]?)b?", text.strip().lower())
    if found is None:
        message = f"memory must be a number with k, m or g, as in 2g; found {text!r}"
        raise ValueError(message)
    return int(found[1]) * _UNITS[found[2]]


def place_of_group(root: Path, groups: str) -> tuple[Path, str]:
    r"""Returns the folder of a process's own group, and the file with its limit; ``groups`` is ``/proc/self/cgroup``.

    >>> place_of_group(Path("/sys/fs/cgroup"), "4:memory:/mine\n0::/")
    (PosixPath('/sys/fs/cgroup/memory/mine'), 'memory.limit_in_bytes')
    >>> place_of_group(Path("/sys/fs/cgroup"), "0::/mine")
    (PosixPath('/sys/fs/cgroup/mine'), 'memory.max')
    """
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return root / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
    unified = next(line for line in groups.splitlines() if line.startswith("0::"))
    return root / unified.removeprefix("0::").lstrip("/"), "memory.max"


@contextmanager
def memory_group(limit: int, *, root: Path = Path("/sys/fs/cgroup"), groups: str | None = None) -> Iterator[Path]:
    """Makes a group with a limit below the own one, for ``join_group``, and removes it in the end.

    Raises ``OSError`` where that is not allowed.
    """
    if groups is None:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    own, limit_name = place_of_group(root, groups)
    group = own / f"headrace-benchmark-{os.getpid()}"
    group.mkdir()
    try:
        if limit_name == "memory.max" and not (group / limit_name).exists():
            (own / "cgroup.subtree_control").write_text("+memory", encoding="utf-8")
        (group / limit_name).write_text(str(limit), encoding="utf-8")
        yield group
    finally:
        group.rmdir()


def join_group(group: Path) -> None:
    """Puts this process into a group."""
    (group / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
