"""Lock of a directory: one process at a time owns it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EAGAIN
from pathlib import Path
from typing import Any

from headrace.app.directories import make_directory, unusable
from headrace.errors import LockError, StateDirectoryError

LOCK = "lock"
"""Name of the file. It is never deleted: a waiter for a deleted file would not see the owner of a new one."""


def applications_in(state_dir: Path) -> list[str]:
    """Returns the names of the applications that have run with a state directory."""
    return sorted(path.parent.name for path in state_dir.glob(f"*/{LOCK}"))


class DirectoryLock:
    """Holds a directory for an application; made by ``lock_directory``.

    It is the operating system that keeps the lock, so it is gone with the process, however that ends. The file says who
    has it, or had it last. What processes that the owner has started may still do is fenced by the journal.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Gives the directory free; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def write_owner(self, application: str) -> None:
        """Writes the owner of the lock to the file."""
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
    """Locks a directory, which is created if missing; raises an error that names the owner if it is locked."""
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


def _in_use(path: Path, application: str, owner: dict[str, Any]) -> LockError:
    who = f"process {owner['pid']} on {owner['host']}" if {"pid", "host"} <= owner.keys() else "another process"
    if owner.get("pid") == os.getpid() and owner.get("host") == socket.gethostname():
        who = "another Streams of this process"
    return LockError(
        f"application '{application}': '{path.parent}' is in use by {who}; only one instance runs an application: stop "
        "the other one, or give this one another application_id or state_dir"
    )
