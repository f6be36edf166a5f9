"""Making of the class-data archive in the background, by a process of its own, for the next start.

The application that has found none starts that process when it has run for a while, or when it ends: also an
application that is killed later has made the archive, and its own start is not slowed down.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from pathlib import Path

from headrace.spark.class_archive import ClassArchive

logger = logging.getLogger(__name__)

_WAIT_S = 20.0
"""From the start of an application: its first results come first."""
_NEEDED_BYTES = 1 << 30
"""The process with its JVM has some 500 MB at its largest; an application must not die of it."""


def archive_later(archive: ClassArchive, class_path: str) -> None:
    """Has a missing archive made in a while, or at the end of this process, whichever comes first."""
    if archive.directory is None or archive.path is not None:
        return
    once = threading.Lock()

    def make() -> None:
        if once.acquire(blocking=False) and archive.path is None and _free_memory() >= _NEEDED_BYTES:
            _start(class_path)

    timer = threading.Timer(_WAIT_S, make)
    timer.name = "headrace-class-archive"
    timer.daemon = True
    timer.start()
    atexit.register(make)


def _start(class_path: str) -> None:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    null = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in range(3)]
    try:
        # Not a subprocess.Popen: nobody waits for it, and it may live longer than this process.
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "headrace.spark.prepare", class_path],
            {**os.environ, "PYTHONPATH": path},
            file_actions=null,
            setpgroup=0,
        )
    except OSError as error:
        logger.debug("no class archive is made: %s", error)


def _free_memory() -> int:
    """Returns the memory that is left for another process; much if the system does not tell."""
    found = [1 << 60]
    try:
        text = Path("/proc/meminfo").read_text()
        found.append(int(text.partition("MemAvailable:")[2].split()[0]) * 1024)
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError, IndexError):
        pass
    return min(found)
