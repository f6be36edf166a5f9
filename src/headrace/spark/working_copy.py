"""The working copy of a task's stores: files next to the workers, brought to the committed version before each batch.

A copy can always be rebuilt from the chunks, so it is never waited for: rows are not forced to the disk, and whatever
looks wrong (another history, another boot of the machine, a file that somebody else has touched) is thrown away.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from headrace.errors import ProcessorStateError
from headrace.spark.chunks import EMPTY, ChunkLog, StoreChanges, Version
from headrace.state.changes import Changes
from headrace.state.disk import LmdbEngine, LmdbEnvironment

_OWN = "."
"""Name of the engine that has the version of the copy; stores have other names."""
_VERSION, _BOOT = b"version", b"boot"
_SEAL = "seal"
_RUNNING = "running"
_RESTORING = "restoring"
_NOTE_LENGTH = 64
_UNKNOWN = Version(-1, "")
_AT_ONCE = 100_000
"""Rows that are restored in one transaction."""
_STALE_S = 60.0
"""A note of a restoration that is older was left by a process that is gone."""


@dataclass(frozen=True)
class CopyInfo:
    """What lies in a folder: for people who look at the state of an application."""

    task: str
    version: Version
    stores: Mapping[str, int]
    """Rows by store."""
    size: int
    """Bytes of the file."""


class WorkingCopy:
    """The stores of one task in a folder. ``check`` and ``catch_up`` come first in every batch."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if not _is_sealed(directory):
            self._delete()
        self._make()
        self.version = self._read_version()

    def _make(self) -> None:
        self._environment = LmdbEnvironment(self._directory)
        self._seal = _Note(self._directory / _SEAL)
        self._running = _Note(self._directory / _RUNNING)
        self._own = self.engine(_OWN)

    def _delete(self) -> None:
        try:
            shutil.rmtree(self._directory)
        except FileNotFoundError:
            pass
        except OSError as error:
            message = f"the working copy '{self._directory}' is damaged and cannot be deleted: {error}; delete it"
            raise ProcessorStateError(message) from error

    def _read_version(self) -> Version:
        boot, version = self._own.get(_BOOT), self._own.get(_VERSION)
        if version is None or boot != boot_id():
            return EMPTY if version is None and boot is None else _UNKNOWN
        return _unpack(version)

    def engine(self, store: str) -> LmdbEngine:
        """Returns the engine of a store. A store that is new changes the file, so it is sealed again."""
        engine = self._environment.engine(store)
        if not self.is_untouched():
            self._seal.write(_look(self._directory))
        return engine

    def rows(self, stores: Iterable[str]) -> int:
        """Returns how many rows some stores have together."""
        return sum(self._environment.engine(store).count() for store in stores)

    def is_untouched(self) -> bool:
        """Returns whether the file is as the last one who wrote to it has left it."""
        return _is_sealed(self._directory)

    def catch_up(self, log: ChunkLog) -> int:
        """Brings the copy to the version of the chunks: by those it misses, or all of them; returns how many rows."""
        # Another process may have brought it further.
        self.version = self._read_version()
        chunks = log.after(self.version)
        if chunks is None:
            self.close()
            self._delete()
            self._make()
            self.version = EMPTY
            chunks = log.everything()
        steps: list[StoreChanges] = []
        restored, rows, version = 0, 0, self.version
        note = self._directory / _RESTORING
        try:
            for version, chunk in chunks:
                steps.append(chunk.unpacked())
                rows += chunk.rows
                if rows >= _AT_ONCE:
                    # The version says how far it has come, so a copy that is left here can be completed.
                    self._write(steps, version)
                    restored, steps, rows = restored + rows, [], 0
                    note.write_text(str(log.rows_after(version)), encoding="utf-8")
            if version != self.version:
                self._write(steps, version)
        finally:
            note.unlink(missing_ok=True)
        return restored + rows

    def settle(self, changes: StoreChanges, before: Version, version: Version) -> bool:
        """Writes the changes of a batch that Spark has committed; False if the copy is not where the batch began."""
        found = self._read_version()
        if found == before:
            self._write([changes], version)
        self.version = self._read_version()
        return self.version == version

    def _write(self, steps: list[StoreChanges], version: Version) -> None:
        own: dict[bytes, bytes | None] = {_VERSION: _pack(version), _BOOT: boot_id()}
        self._environment.apply(*steps, {_OWN: Changes(rows=own)})
        self.version = version
        self._seal.write(_look(self._directory))

    def begin(self, attempt: str) -> None:
        """Says that a batch runs on the copy, and reads all of it from one state."""
        self._running.write(attempt)
        self._environment.pin()

    def end(self) -> None:
        """Says that the batch is over, well or not: the process is still alive."""
        self._environment.unpin()
        self._running.write("")

    def close(self) -> None:
        self._environment.close()
        self._seal.close()
        self._running.close()


def died_in(directory: Path, batch: str) -> bool:
    """Returns whether a process that ran this batch on the copy has died: then the copy may be what killed it."""
    try:
        return _noted(directory / _RUNNING) == batch
    except OSError:
        return False


def restoring(directory: Path) -> dict[str, int]:
    """Returns the tasks of an application whose copies are being restored here, each with about how many rows it lacks.

    Only those that take long say so.
    """
    found: dict[str, int] = {}
    for note in directory.glob(f"*/{_RESTORING}"):
        try:
            if time.time() - note.stat().st_mtime < _STALE_S:
                found[note.parent.name] = int(note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # It has just ended, or is being written.
            continue
    return found


def discard(directory: Path) -> None:
    """Deletes a copy that nobody has open."""
    shutil.rmtree(directory, ignore_errors=True)


def describe(directory: Path) -> CopyInfo:
    """Returns what a folder holds; it may be in use."""
    environment = LmdbEnvironment(directory)
    try:
        stores = [name for name in environment.names() if name != _OWN]
        version = environment.engine(_OWN).get(_VERSION)
        return CopyInfo(
            directory.name,
            EMPTY if version is None else _unpack(version),
            {store: environment.engine(store).count() for store in stores},
            environment.file.stat().st_size,
        )
    finally:
        environment.close()


@cache
def boot_id() -> bytes:
    """Returns what tells one run of the machine from the next, as far as the system says it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b"unknown"


def _pack(version: Version) -> bytes:
    return json.dumps(version).encode()


def _unpack(data: bytes) -> Version:
    return Version(*json.loads(data))


def _look(directory: Path) -> str:
    """Returns how the file with the rows looks. It changes only when somebody writes to it; readers leave it alone."""
    found = os.stat(directory / "data.mdb")
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"


class _Note:
    """A file with a short text. It stays open: a new file takes milliseconds, and this is written in every batch."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            message = f"'{path}' cannot be written: {error}; choose a state_dir that can"
            raise ProcessorStateError(message) from error

    def write(self, text: str) -> None:
        # Always as long, so that nothing is left of what was there before.
        os.pwrite(self._file, text.ljust(_NOTE_LENGTH).encode(), 0)

    def close(self) -> None:
        os.close(self._file)


def _noted(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip()


def _is_sealed(directory: Path) -> bool:
    try:
        return _noted(directory / _SEAL) == _look(directory)
    except OSError:
        # A copy that never was finished, or none at all.
        return False
