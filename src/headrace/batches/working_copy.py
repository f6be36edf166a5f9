"""The working copy of a task's stores: rows next to the worker, with the offsets of the changelogs that they are from.

The changelogs are the truth; a copy only saves reading them again. It is written now and then, with rows that are
committed, so what changes again or expires within seconds is never written. Whatever looks wrong (another history,
another boot of the machine, a file that somebody else has touched) is thrown away.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import msgspec

from headrace.config import StreamsConfig
from headrace.errors import ProcessorStateError, RetriableError
from headrace.private_directory import make_directories
from headrace.state.engines.changes import Changes
from headrace.state.engines.environment import (
    DISK_ENGINES,
    IN_MEMORY,
    OWN,
    Environment,
    Kind,
    open_environment,
    open_store,
)
from headrace.state.engines.overlay import OverlayEngine

logger = logging.getLogger(__name__)

_STATE, _OPENER = b"state", b"opener"
_SEAL, _RUNNING, _RESTORING = "seal", "running", "restoring"
_OF_JOINS = "-joins"
_LAYOUT = 1
"""Version of the layout of rows. It changes when stores lay their rows out in another way: then copies start over."""
_NOTE_LENGTH = 64
_MOST_FOLDERS = 8
_STALE_S = 60.0
"""A note of a restoration that is older was left by a process that is gone."""


class _Patience(NamedTuple):
    """For how long, and how many, committed rows wait in memory before they are written."""

    seconds: float
    rows: int


_LASTING = _Patience(10.0, 100_000)
_JOINS = _Patience(inf, 400_000)
"""What a join of two streams remembers goes by itself, and all of it is in memory anyway."""


class CopyTakenError(ProcessorStateError, RetriableError):
    """Another process has opened the working copy, or deleted it: an attempt at the task that was given up, perhaps.

    The next process to open it may write, so the task is tried again.
    """


class Applied(msgspec.Struct, array_like=True, frozen=True):
    """Position of a store's copy in its changelog."""

    topic_id: str
    offset: int
    """The next record of the changelog that is not in it."""


class CopyState(msgspec.Struct, array_like=True):
    """State of a working copy, as of one transaction."""

    origin: str = ""
    """See ``copy_origin``."""
    current_ms: int = 0
    """When it was known last that nothing was missing; for a copy that is restored from nothing, when that began."""
    stores: dict[str, Applied] = {}
    lineage: str = ""
    """Of the task whose rows they are: after a reset, offsets of the same topic may mean other rows."""


@dataclass(frozen=True)
class CopyInfo:
    """The content of a folder, for people who look at the state of an application."""

    task: str
    stores: Mapping[str, int]
    """Rows by store."""
    size: int
    """Bytes of the files."""


class WorkingCopy:
    """The stores of one task in a folder, opened by one process at a time: the last one to open it may write.

    ``kinds`` say in which engine each store is kept: each has an environment of its own in the folder. So have the
    stores in ``joins``, whose rows are written only when there are many: most of them expire before.
    """

    def __init__(
        self, directory: Path, kinds: Mapping[str, Kind], config: StreamsConfig, *, joins: Collection[str] = ()
    ) -> None:
        self._directory = directory
        folders = {store: f"{kind}{_OF_JOINS}" if store in joins else kind for store, kind in kinds.items()}
        self._parts: dict[str, _EnginePart] = {}
        for folder, kind in sorted({(folders[store], kind) for store, kind in kinds.items()}):
            patience = _JOINS if folder.endswith(_OF_JOINS) else _LASTING
            self._parts[folder] = _EnginePart(directory / folder, kind, config, patience)
        self._of = {store: self._parts[folder] for store, folder in folders.items()}
        try:
            make_directories(directory)
            self._running = _Note(directory / _RUNNING)
        except BaseException:
            for part in self._parts.values():
                part.close()
            raise

    def wipe(self, stores: Collection[str]) -> None:
        """Begins anew, with no rows of these stores, nor of those that are written together with them."""
        for part in self._parts.values():
            if any(self._of[store] is part for store in stores):
                part.wipe()

    def engine(self, store: str) -> OverlayEngine:
        """Returns where a store's committed rows are: below, or in memory until they are written there."""
        return self._of[store].engine(store)

    def applied(self, store: str) -> Applied | None:
        """Returns how far a store is."""
        return self._of[store].state.stores.get(store)

    def current_ms(self, store: str) -> int:
        """Returns when it was known last that nothing was missing in a store."""
        return self._of[store].state.current_ms

    def note_current(self) -> None:
        """Takes notice that nothing is missing now; it is written with the next rows."""
        for part in self._parts.values():
            part.state.current_ms = _now_ms()

    def belong_to(self, lineage: str) -> None:
        """Makes it a copy of the task of this lineage; rows of another one are dropped."""
        for part in self._parts.values():
            if part.state.lineage not in ("", lineage):
                part.wipe()
            part.state.lineage = lineage

    def note(self, applied: Mapping[str, Applied]) -> None:
        """Takes notice of how far stores are; it is written with their rows."""
        for store, each in applied.items():
            self._of[store].state.stores[store] = each

    def is_untouched(self) -> bool:
        """Returns whether the files are as a process has left them that knows how to write them."""
        return all(part.is_untouched() for part in self._parts.values())

    def settle(self, changes: Mapping[str, Changes], applied: Mapping[str, Applied]) -> None:
        """Takes committed changes; writes them once they are many, or after some time."""
        for store, each in changes.items():
            self.engine(store).apply(each)
        self.note(applied)
        self.note_current()
        for part in self._parts.values():
            part.write_if_due()

    def write(self) -> None:
        """Writes the rows held in memory and their offsets, unless another process has the copy now."""
        for part in self._parts.values():
            part.write()

    def begin(self, batch_id: int) -> None:
        """Says that a batch runs on the copy, and reads all of it from one state."""
        self._running.write(str(batch_id))
        for part in self._parts.values():
            part.environment.pin()

    def end(self) -> None:
        """Says that the batch is over, well or not: the process is still alive."""
        for part in self._parts.values():
            part.environment.unpin()
        self._running.write("")

    def metrics(self) -> dict[str, Mapping[str, float]]:
        """Returns figures of the engines on disk, by their kinds."""
        found: dict[str, dict[str, float]] = {}
        for part in self._parts.values():
            if part.kind != IN_MEMORY:
                figures = found.setdefault(part.kind, {})
                for name, value in part.environment.metrics().items():
                    figures[name] = figures.get(name, 0) + value
        return dict(found)

    def note_restoring(self, left: int) -> None:
        """Says how many records are still to be restored; 0 when all are."""
        note = self._directory / _RESTORING
        with suppress(OSError):
            if left:
                note.write_text(str(left), encoding="utf-8")
            else:
                note.unlink(missing_ok=True)

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        self._running.close()


class _EnginePart:
    """The stores of a copy that are kept in one engine."""

    def __init__(self, directory: Path, kind: Kind, config: StreamsConfig, patience: _Patience) -> None:
        self._directory = directory
        self.kind = kind
        self._config = config
        self._patience = patience
        if kind == "lmdb" and not _is_sealed(directory):
            _delete(directory)
        self._open()
        if self.state.origin != copy_origin():
            self.wipe()

    def _open(self) -> None:
        self.environment = self._open_environment()
        self._seal = _Note(self._directory / _SEAL) if self.kind == "lmdb" else None
        self._settled: dict[str, OverlayEngine] = {}
        self.state = self._read_state()
        self._opener = token_hex(8).encode()
        self.environment.apply({OWN: Changes(rows={_OPENER: self._opener})})
        self._write_seal()
        self._due = time.monotonic() + self._patience.seconds

    def _read_state(self) -> CopyState:
        found = self.environment.engine(OWN).get(_STATE)
        if found is None:
            return CopyState(copy_origin(), _now_ms())
        try:
            return msgspec.msgpack.decode(found, type=CopyState)
        except msgspec.MsgspecError:
            logger.warning("the working copy '%s' is damaged, or of another version; it starts over", self._directory)
            return CopyState()

    def _open_environment(self) -> Environment:
        """Opens the files, or others beside them if a process that hangs still has them: RocksDB is for one alone."""
        first = self._directory
        for number in range(1, _MOST_FOLDERS):
            try:
                return open_store(self.kind, self._directory, self._config)
            except ProcessorStateError as error:
                if self.kind != "rocksdb":
                    raise
                logger.warning("%s; another folder is used", error)
                self._directory = first.with_name(f"{first.name}-{number}")
        return open_store(self.kind, self._directory, self._config)

    def wipe(self) -> None:
        if self.environment.engine(OWN).get(_OPENER) != self._opener:
            raise self._taken_error()
        self.close()
        _delete(self._directory)
        self._open()

    def engine(self, store: str) -> OverlayEngine:
        engine = self._settled.get(store)
        if engine is None:
            engine = self._settled[store] = OverlayEngine(self.environment.engine(store))
            self._write_seal()
        return engine

    def is_untouched(self) -> bool:
        return self._seal is None or _is_sealed(self._directory)

    def write_if_due(self) -> None:
        waiting = sum(engine.size for engine in self._settled.values())
        if waiting > self._patience.rows or (waiting and time.monotonic() > self._due):
            self.write()

    def write(self) -> None:
        state = CopyState(copy_origin(), self.state.current_ms, self.state.stores, self.state.lineage)
        changes = {store: each for store, engine in self._settled.items() if (each := engine.changes())}
        own = {OWN: Changes(rows={_STATE: msgspec.msgpack.encode(state)})}
        if not self.environment.apply_if(_OPENER, self._opener, changes, own):
            raise self._taken_error()
        self.state = state
        for engine in self._settled.values():
            engine.rollback()
        self._write_seal()
        self._due = time.monotonic() + self._patience.seconds

    def _taken_error(self) -> CopyTakenError:
        return CopyTakenError(f"the working copy '{self._directory}' was opened by another process; it goes on there")

    def _write_seal(self) -> None:
        if self._seal is not None:
            try:
                self._seal.write(_file_signature(self._directory))
            except FileNotFoundError as error:
                message = f"the working copy '{self._directory}' was deleted by another process; it goes on there"
                raise CopyTakenError(message) from error

    def close(self) -> None:
        self.environment.close()
        if self._seal is not None:
            self._seal.close()


def died_running(directory: Path, batch_id: int) -> bool:
    """Returns whether a process that ran this batch on the copy has died: then the copy may be what killed it."""
    try:
        return _read_note_file(directory / _RUNNING) == str(batch_id)
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
    """Deletes a copy that no process has open."""
    shutil.rmtree(directory, ignore_errors=True)


def describe(directory: Path, config: StreamsConfig) -> CopyInfo:
    """Returns what a folder holds; LMDB's files may be in use."""
    rows: dict[str, int] = {}
    size = 0
    for kind, folder in product(DISK_ENGINES, ("", _OF_JOINS)):
        path = directory / f"{kind}{folder}"
        if not path.is_dir():
            continue
        environment = open_environment(kind, path, config)
        try:
            rows |= {store: environment.engine(store).count() for store in environment.names() if store != OWN}
            size += environment.disk_bytes()
        finally:
            environment.close()
    return CopyInfo(directory.name, rows, size)


@cache
def boot_id() -> str:
    """Returns what tells one run of the machine from the next, as far as the system says it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def copy_origin() -> str:
    """Returns what a copy must come from to be used: this run of the machine, and this layout of rows.

    Rows are not forced to the disk, so a machine that has crashed may have lost any of them.
    """
    return f"{boot_id()}-{_LAYOUT}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _delete(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        message = f"the working copy '{directory}' is damaged and cannot be deleted: {error}; delete it"
        raise ProcessorStateError(message) from error


def _file_signature(directory: Path) -> str:
    """Returns inode, size and mtime of the file with the rows: they change when it is written, not when it is read."""
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


def _read_note_file(path: Path) -> str:
    return path.read_text(encoding="utf-8").rstrip()


def _is_sealed(directory: Path) -> bool:
    try:
        return _read_note_file(directory / _SEAL) == _file_signature(directory)
    except OSError:
        # A copy that never was finished, or none at all.
        return False
