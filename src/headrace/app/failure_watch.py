"""Watch for failed tasks: tells of them while other tasks of their micro-batches go on, which may be for long."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from headrace.batches.failure_note import take_failure_note

logger = logging.getLogger("headrace.app.failing")
"""A logger of its own: a failure is logged again at the end of the application, which may take a while."""

_EVERY_S = 1.0


class FailureWatch:
    """Looks for the notes of all applications of a process, in one thread: a SQL server has a hundred of them."""

    def __init__(self, every_s: float = _EVERY_S) -> None:
        self._every_s = every_s
        self._changed = threading.Condition()
        self._directories: set[Path] = set()
        self._is_watching = False

    def add(self, directory: Path) -> None:
        """Watches an application from now on; what an earlier run has left is forgotten."""
        take_failure_note(directory)
        with self._changed:
            self._directories.add(directory)
            if not self._is_watching:
                threading.Thread(target=self._watch, name="headrace-failures", daemon=True).start()
                self._is_watching = True

    def remove(self, directory: Path) -> None:
        """Watches an application no more."""
        with self._changed:
            self._directories.discard(directory)
            self._changed.notify_all()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._directories, self._every_s)
                if not self._directories:
                    self._is_watching = False
                    return
                watched = list(self._directories)
            for directory in watched:
                # Most batches end at once when a task has failed, and so does the application, which tells it itself.
                failure = take_failure_note(directory, age_s=self._every_s)
                if failure is not None:
                    logger.error("%s; the micro-batch ends when its other tasks have ended", failure)


failure_watch = FailureWatch()
"""That of this process."""
