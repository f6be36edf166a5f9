"""Temporary directory of one JVM: native libraries that it unpacks, sockets to its Python workers.

It lies in the machine's own temporary directory, because the name of a socket has room for about 100 characters. Its
lock is held by the JVM to its end, so that the next start can delete what killed ones have left.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.spark.private_directory import is_private, own_temporary_directory

_PREFIX = "jvm-"
_OWN_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
"""The names that ``mkdtemp`` makes."""


@dataclass(frozen=True)
class Scratch:
    """A temporary directory of a JVM to be."""

    path: Path
    lock: int
    """A descriptor that the JVM has to inherit."""

    def release(self) -> None:
        """Closes this process's descriptor; the JVM has its own by now, or never started."""
        os.close(self.lock)


def new_scratch(within: Path | None = None) -> Scratch:
    """Makes a directory, and deletes those whose JVM is gone."""
    parent = own_temporary_directory(within)
    for old in parent.iterdir():
        if _OWN_NAME.fullmatch(old.name) and is_private(old):
            with suppress(OSError):
                _delete_if_left(old)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Scratch(path, lock)


def _delete_if_left(directory: Path) -> None:
    # No O_CREAT: a directory without a lock is just being made.
    lock = os.open(directory / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Links are deleted, never followed.
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
