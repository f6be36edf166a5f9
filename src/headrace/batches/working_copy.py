"""The working copy of a task's stores: rows next to the worker, with the offsets of the changelogs that they are from.

The changelogs are the truth; a copy only saves reading them again. It is written now and then, with rows that are
committed, so what changes again or expires within seconds is never written. Whatever looks wrong (another history,
another boot of the machine, a file that somebody else has touched) is thrown away.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex

import msgspec

from headrace.errors import ProcessorStateError
from headrace.state.changes import Changes
from headrace.state.disk import LmdbEnvironment, Transaction
from headrace.state.overlay import OverlayEngine

_OWN = "."
"""Name of the engine that says what the copy is; stores have other names."""
_STATE, _OPENER = b"state", b"opener"
_SEAL, _RUNNING, _RESTORING = "seal", "running", "restoring"
_NOTE_LENGTH = 64
_STALE_S = 60.0
"""A note of a restoration that is older was left by a process that is gone."""
_WRITE_EVERY_S = 10.0
_WRITE_ROWS = 100_000
"""Committed rows that wait in memory at the most, for a time and in number."""


class Applied(msgspec.Struct, array_like=True, frozen=True):
    """How far the copy of a store is."""

    topic_id: str
    offset: int
    """The next record of the changelog that is not in it."""


class CopyState(msgspec.Struct, array_like=True):
    """What lies in a copy, as of one transaction."""

    boot: str = ""
    written_ms: int = 0
    stores: dict[str, Applied] = {}


@dataclass(frozen=True)
class CopyInfo:
    """The content of a folder, for people who look at the state of an application."""

    task: str
    stores: Mapping[str, int]
    """Rows by store."""
    size: int
    """Bytes of the file."""


class WorkingCopy:
    """The stores of one task in a folder, opened by one process at a time: the last one to open it may write."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if not _is_sealed(directory):
            _delete(directory)
        self._make()
        if self.state.boot != boot_id():
            # Rows are not forced to the disk, so a machine that has crashed may have lost any of them.
            self.wipe()

    def _make(self) -> None:
        self._environment = LmdbEnvironment(self._directory)
        self._seal = _Note(self._directory / _SEAL)
        self._running = _Note(self._directory / _RUNNING)
        self._own = self._environment.engine(_OWN)
        self._settled: dict[str, OverlayEngine] = {}
        found = self._own.get(_STATE)
        self.state = CopyState(boot_id()) if found is None else msgspec.msgpack.decode(found, type=CopyState)
        self._opener = token_hex(8).encode()
        self._environment.apply({_OWN: Changes(rows={_OPENER: self._opener})})
        self._sealed()
        self._wait_until = time.monotonic() + _WRITE_EVERY_S

    def wipe(self) -> None:
        """Begins anew, with no rows."""
        self.close()
        _delete(self._directory)
        self._make()
        self.state = CopyState(boot_id())

    def engine(self, store: str) -> OverlayEngine:
        """Returns where a store's committed rows are: on the disk, or in memory until they are written there."""
        engine = self._settled.get(store)
        if engine is None:
            engine = self._settled[store] = OverlayEngine(self._environment.engine(store))
            self._sealed()
        return engine

    def rows(self) -> int:
        """Returns how many rows all stores have on the disk."""
        return sum(self._environment.engine(store).count() for store in self._settled)

    def is_untouched(self) -> bool:
        """Returns whether the file is as this process has left it."""
        return _is_sealed(self._directory)

    def settle(self, changes: Mapping[str, Changes], applied: Mapping[str, Applied]) -> None:
        """Takes over what is committed; it is written when much has come together, or some time has passed."""
        for store, each in changes.items():
            self.engine(store).apply(each)
        self.state.stores = {**self.state.stores, **applied}
        waiting = sum(engine.size for engine in self._settled.values())
        if waiting > _WRITE_ROWS or (waiting and time.monotonic() > self._wait_until):
            self.write()

    def write(self) -> None:
        """Writes the rows that wait in memory, with how far that brings the copy, unless somebody else has it now."""
        state = CopyState(boot_id(), time.time_ns() // 1_000_000, self.state.stores)
        changes = {store: each for store, engine in self._settled.items() if (each := engine.changes())}
        own = Changes(rows={_STATE: msgspec.msgpack.encode(state)})
        engines = {store: self._environment.engine(store) for store in changes}

        def write(transaction: Transaction) -> bool:
            if transaction.get(_OPENER, db=self._own.database) != self._opener:
                return False
            for store, each in changes.items():
                engines[store].write(transaction, each)
            self._own.write(transaction, own)
            return True

        if not self._environment.write(write):
            message = f"the working copy '{self._directory}' was opened by another process; it goes on there"
            raise ProcessorStateError(message)
        self.state = state
        for engine in self._settled.values():
            engine.rollback()
        self._sealed()
        self._wait_until = time.monotonic() + _WRITE_EVERY_S

    def begin(self, batch_id: int) -> None:
        """Says that a batch runs on the copy, and reads all of it from one state."""
        self._running.write(str(batch_id))
        self._environment.pin()

    def end(self) -> None:
        """Says that the batch is over, well or not: the process is still alive."""
        self._environment.unpin()
        self._running.write("")

    def note_restoring(self, left: int) -> None:
        """Says how many records are still to be restored; 0 when all are."""
        note = self._directory / _RESTORING
        with suppress(OSError):
            if left:
                note.write_text(str(left), encoding="utf-8")
            else:
                note.unlink(missing_ok=True)

    def _sealed(self) -> None:
        self._seal.write(_look(self._directory))

    def close(self) -> None:
        self._environment.close()
        self._seal.close()
        self._running.close()


def died_in(directory: Path, batch_id: int) -> bool:
    """Returns whether a process that ran this batch on the copy has died: then the copy may be what killed it."""
    try:
        return _noted(directory / _RUNNING) == str(batch_id)
    except OSError:
        return False


def restoring(directory: Path) -> dict[str, int]:
    """Returns the tasks of an application whose stores are being restored here, each with how many records it lacks.

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
        rows = {store: environment.engine(store).count() for store in stores}
        return CopyInfo(directory.name, rows, environment.file.stat().st_size)
    finally:
        environment.close()


@cache
def boot_id() -> str:
    """Returns what tells one run of the machine from the next, as far as the system says it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _delete(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        message = f"the working copy '{directory}' is damaged and cannot be deleted: {error}; delete it"
        raise ProcessorStateError(message) from error


def _look(directory: Path) -> str:
    """Returns how the file with the rows looks. It changes only when somebody writes to it; readers leave it alone."""
    found = os.stat(directory / "data.mdb")
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"


class _Note:
    """A file with a short text. It stays open: a new file takes milliseconds, and this is written in every batch."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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
