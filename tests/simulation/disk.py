"""Disk of a machine in memory: folders, notes and environments of working copies, in place of files and LMDB.

An environment can be opened by several processes at once, as LMDB's can. Who has one open keeps it when its folder is
deleted; who opens the folder again gets a new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Row
from headrace.state.engines.environment import OWN
from headrace.state.engines.memory import MemoryEnvironment
from tests.simulation.threads import World

Rows = dict[bytes, bytes]


@dataclass(eq=False)
class _Files:
    """The content of an environment: maps that are replaced, never changed."""

    number: int
    engines: dict[str, Rows] = field(default_factory=dict)
    writes: int = 0


class Disk:
    """What a machine keeps while its processes come and go."""

    def __init__(self) -> None:
        self.notes: dict[str, list[bytes]] = {}
        self.environments: dict[str, _Files] = {}
        self._numbers = 0

    def open(self, path: str) -> _Files:
        found = self.environments.get(path)
        if found is None:
            self._numbers += 1
            found = self.environments[path] = _Files(self._numbers)
        return found

    def delete(self, path: str) -> bool:
        inside = f"{path}/"
        found = False
        for known in (self.notes, self.environments):
            for each in [each for each in known if each == path or each.startswith(inside)]:
                del known[each]
                found = True
        return found


class DiskPath:
    """A path on a machine's disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path

    def __truediv__(self, name: str) -> DiskPath:
        return DiskPath(self.disk, f"{self.path}/{name}")

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def with_name(self, name: str) -> DiskPath:
        return DiskPath(self.disk, f"{self.path.rpartition('/')[0]}/{name}")

    def read_text(self, encoding: str = "") -> str:
        found = self.disk.notes.get(self.path)
        if found is None:
            raise FileNotFoundError(self.path)
        return found[0].decode()

    def write_text(self, text: str, encoding: str = "") -> None:
        self.disk.notes[self.path] = [text.encode()]

    def unlink(self, *, missing_ok: bool = False) -> None:
        self.disk.notes.pop(self.path, None)

    def __str__(self) -> str:
        return self.path


class Os:
    """In place of the module ``os`` where working copies are kept."""

    O_RDWR, O_CREAT, O_CLOEXEC, O_NOFOLLOW = os.O_RDWR, os.O_CREAT, os.O_CLOEXEC, os.O_NOFOLLOW

    @staticmethod
    def open(path: DiskPath, _flags: int, _mode: int) -> list[bytes]:
        return path.disk.notes.setdefault(path.path, [b""])

    @staticmethod
    def pwrite(file: list[bytes], data: bytes, _at: int) -> None:
        file[0] = data

    @staticmethod
    def close(_file: list[bytes]) -> None:
        pass

    @staticmethod
    def stat(path: DiskPath) -> Any:
        found = path.disk.environments.get(path.path.removesuffix("/data.mdb"))
        if found is None:
            raise FileNotFoundError(path.path)
        return SimpleNamespace(st_ino=found.number, st_size=found.writes, st_mtime_ns=found.writes)


class Shutil:
    """In place of the module ``shutil`` where working copies are kept."""

    @staticmethod
    def rmtree(path: DiskPath, *, ignore_errors: bool = False) -> None:
        World.scheduler.step(f"delete {path}")
        if not path.disk.delete(path.path) and not ignore_errors:
            raise FileNotFoundError(path.path)


class DiskEnvironment:
    """Engines in a folder; see ``headrace.state.engines.environment.Environment``."""

    kind: ClassVar[str] = "lmdb"

    def __init__(self, path: DiskPath) -> None:
        World.scheduler.step(f"open {path}")
        self._path = path
        self.files = path.disk.open(path.path)
        self.pinned: dict[str, Rows] | None = None

    def engine(self, name: str) -> DiskEngine:
        if name not in self.files.engines:
            self.files.engines = {**self.files.engines, name: {}}
            self.files.writes += 1
        return DiskEngine(self, name)

    def rows(self, name: str) -> Rows:
        return (self.files.engines if self.pinned is None else self.pinned).get(name, {})

    def names(self) -> list[str]:
        return sorted(self.files.engines)

    def apply(self, *steps: Mapping[str, Changes]) -> None:
        World.scheduler.step(f"write {self._path}")
        self._apply(steps)
        World.scheduler.step(f"written {self._path}")

    def apply_if(self, key: bytes, value: bytes, *steps: Mapping[str, Changes]) -> bool:
        World.scheduler.step(f"write {self._path}")
        if self.files.engines.get(OWN, {}).get(key) != value:
            return False
        self._apply(steps)
        World.scheduler.step(f"written {self._path}")
        return True

    def _apply(self, steps: tuple[Mapping[str, Changes], ...]) -> None:
        engines = dict(self.files.engines)
        for changes in steps:
            for name, each in changes.items():
                rows = dict(engines.get(name, {}))
                for start, stop in each.ranges:
                    for key in [key for key in rows if start <= key < stop]:
                        del rows[key]
                for key, value in each.rows.items():
                    if value is None:
                        rows.pop(key, None)
                    else:
                        rows[key] = value
                engines[name] = rows
        self.files.engines = engines
        self.files.writes += 1

    def pin(self) -> None:
        self.pinned = self.files.engines

    def unpin(self) -> None:
        self.pinned = None

    def flush(self) -> None:
        pass

    def disk_bytes(self) -> int:
        return 0

    def metrics(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass


class DiskEngine:
    """One map of an environment, as far as working copies use it."""

    def __init__(self, environment: DiskEnvironment, name: str) -> None:
        self._environment = environment
        self._name = name

    def get(self, key: bytes) -> bytes | None:
        return self._environment.rows(self._name).get(key)

    def scan(self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False) -> Iterator[Row]:
        rows = self._environment.rows(self._name)
        for key in sorted(rows, reverse=reverse):
            if (start is None or key >= start) and (stop is None or key < stop):
                yield key, rows[key]

    def count(self) -> int:
        return len(self._environment.rows(self._name))

    def apply(self, changes: Changes) -> None:
        self._environment.apply({self._name: changes})

    def close(self) -> None:
        pass


def open_store(kind: str, directory: DiskPath, _config: object) -> DiskEnvironment | MemoryEnvironment:
    """In place of ``headrace.state.engines.environment.open_store``."""
    return MemoryEnvironment() if kind == "in_memory" else DiskEnvironment(directory)
