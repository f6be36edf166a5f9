"""A directory belongs to one process at a time."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EAGAIN
from pathlib import Path
from typing import Any

from headrace.app.places import make_directory, unusable
from headrace.errors import LockError, StateDirectoryError

LOCK = "lock"
"""Name of the file. It is never deleted: who waits for a deleted file would not see the owner of a new one."""

_ORPHANS_S = 30.0
"""How long a start waits for what a killed process has left: its JVM ends by itself, within about a second."""
_POLL_S = 0.05


class DirectoryLock:
    """Holds a directory for an application; made by ``lock_directory``.

    It is the operating system that keeps the lock, so it is gone with the process, however that ends, and with the
    processes to which its descriptor was handed down. The file says who has it, or had it last.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @property
    def descriptor(self) -> int:
        """For a child that may still write after this process was killed: it holds the lock as well."""
        assert self._descriptor is not None, "the lock is held"
        return self._descriptor

    def release(self) -> None:
        """Gives the directory free; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # A child that lives on, such as the JVM that waits for the next application, has no part in it any more.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def write_owner(self, application: str) -> None:
        """Says in the file who has the lock."""
        owner = {"application": application, "pid": os.getpid(), "host": socket.gethostname()}
        self._write(json.dumps(owner).encode() + b"\n")

    def _write(self, content: bytes) -> None:
        assert self._descriptor is not None, "the lock is held"
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, content, 0)
            os.fsync(self._descriptor)
        except OSError as error:
            raise unusable(self._path, error, "written") from error


def lock_directory(directory: Path, application: str) -> DirectoryLock:
    """Takes a directory, which is made if it is not there, or says who has it."""
    make_directory(directory)
    path = directory / LOCK
    descriptor = _open_locked(path, application)
    lock = DirectoryLock(path, descriptor)
    try:
        before = _owner(descriptor).get("application", application)
        if before != application:
            message = (
                f"'{directory}' belongs to the application '{before}', and this is '{application}'; "
                "give each application its own state_dir"
            )
            raise StateDirectoryError(message)
        lock.write_owner(application)
    except BaseException:
        lock.release()
        raise
    return lock


@contextmanager
def locked(directory: Path, application: str) -> Iterator[DirectoryLock]:
    """Holds a directory for a while."""
    lock = lock_directory(directory, application)
    try:
        yield lock
    finally:
        lock.release()


def _open_locked(path: Path, application: str) -> int:
    deadline = time.monotonic() + _ORPHANS_S
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise unusable(path, error, "opened") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_the_file(descriptor, path):
                return descriptor
        except OSError as error:
            owner = _owner(descriptor)
            os.close(descriptor)
            if error.errno in (EAGAIN, EACCES):
                if _has_died(owner) and time.monotonic() < deadline:
                    time.sleep(_POLL_S)
                    continue
                raise _in_use(path, application, owner) from None
            raise unusable(path, error, "locked") from error
        # Somebody has deleted the file, with its directory perhaps, after it was opened here.
        os.close(descriptor)
        make_directory(path.parent)


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _owner(descriptor: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(descriptor, 10_000, 0))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _has_died(owner: dict[str, Any]) -> bool:
    """Tells whether the owner is gone, so that only what it has started can have the lock."""
    if owner.get("host") != socket.gethostname() or not isinstance(pid := owner.get("pid"), int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _in_use(path: Path, application: str, owner: dict[str, Any]) -> LockError:
    who = f"process {owner['pid']} on {owner['host']}" if {"pid", "host"} <= owner.keys() else "another process"
    if owner.get("pid") == os.getpid() and owner.get("host") == socket.gethostname():
        who = "another Streams of this process"
    return LockError(
        f"application '{application}': '{path.parent}' is in use by {who}; only one instance runs an application: stop "
        "the other one, or give this one another application_id or state_dir"
    )
