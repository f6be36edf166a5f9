"""The temporary directory of one JVM: native libraries that it unpacks, sockets to its Python workers.

It lies in the machine's own temporary directory, because the name of a socket has room for about 100 characters. Its
lock is held by the JVM to its end, so that the next start can delete what killed ones have left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 30


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
    within = within or _temporary()
    parent = within / f"headrace-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    if parent.stat().st_uid != os.getuid():
        # Someone else made it first, and could exchange what is in it.
        parent = Path(tempfile.mkdtemp(prefix="headrace-", dir=within))
    for old in parent.iterdir():
        with suppress(OSError):
            _delete_if_left(old)
    path = Path(tempfile.mkdtemp(prefix="jvm-", dir=parent))
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Scratch(path, lock)


def _temporary() -> Path:
    """Returns the user's temporary directory, or the machine's if sockets would have names that are too long there.

    On macOS they would: a user's own one has 49 characters, and what follows it here some 70 more.
    """
    own, shared = Path(tempfile.gettempdir()), Path("/tmp")
    too_long = len(os.fsencode(own)) > _LONGEST and os.access(shared, os.W_OK | os.X_OK)
    return shared if too_long else own


def _delete_if_left(directory: Path) -> None:
    # No O_CREAT: a directory without a lock is just being made.
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
