"""A standby copy: a working copy that follows its changelogs without running the task.

It is how a task is restored before it takes part in micro-batches, so that a long restore holds up nobody, and how a
further copy is kept at hand on another machine.
"""

from __future__ import annotations

import logging
import threading

from headrace.batches.application import Application
from headrace.batches.layout import TaskPlace
from headrace.batches.restore import follow_changelogs, restore_lag
from headrace.errors import StreamsError

logger = logging.getLogger(__name__)

_LOOK_S = 0.2
"""Pause between two looks at changelogs that have nothing new."""


class StandbyCopy:
    """Follows the changelogs of one task in a thread, until it is closed."""

    def __init__(self, application: Application, place: TaskPlace) -> None:
        self._application = application
        self._place = place
        self._copy = application.layout.copy_of(place, application.directory)
        self._over = threading.Event()
        try:
            self.lag = restore_lag(application.layout, place, application.log, self._copy)
            """Records of changelogs that it lacks, as of the last look."""
        except BaseException:
            self._copy.close()
            raise
        self._thread = threading.Thread(target=self._follow, name=f"headrace-standby-{place.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _follow(self) -> None:
        layout, log = self._application.layout, self._application.log
        while not self._over.is_set():
            try:
                for left in follow_changelogs(layout, self._place, log, self._copy):
                    self.lag = left
                    if self._over.is_set():
                        return
            except StreamsError as error:
                # Whoever runs the task restores it, and is told what is wrong.
                logger.warning("the copy of task %s does not follow: %s", self._place.name, error)
                self.lag = 0
                return
            self._over.wait(_LOOK_S)

    def close(self) -> None:
        """Ends it at the next page; the copy stays, as far as it has come."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._copy.close()
