"""A standby copy: a working copy that follows its changelogs without running the task.

It is how a task is restored before it takes part in micro-batches, so that a long restore holds up nobody, and how a
further copy is kept at hand on another machine.
"""

from __future__ import annotations

import logging
import threading

from headrace.batches.application import Application
from headrace.batches.layout import TaskPlace
from headrace.batches.reports import StoreRestore
from headrace.batches.restore import find_restores, follow_changelogs
from headrace.errors import StreamsError

logger = logging.getLogger(__name__)

_LOOK_S = 0.2
"""Pause between two looks at changelogs that have nothing new."""


class StandbyCopy:
    """Follows the changelogs of one task in a thread, until it is closed."""

    def __init__(self, application: Application, place: TaskPlace) -> None:
        self._application = application
        self._place = place
        layout = application.layout
        self._journal = application.log.task_journal(
            application.id, application.incarnation, place.name, layout.own_changelogs(place)
        )
        self._copy = layout.copy_of(place, application.directory)
        self._over = threading.Event()
        try:
            found = find_restores(layout, place, self._journal, application.log, self._copy)
        except BaseException:
            self._copy.close()
            raise
        self._restores = {each.store: each for each in found}
        self._thread = threading.Thread(target=self._follow, name=f"headrace-standby-{place.name}", daemon=True)

    @property
    def restores(self) -> list[StoreRestore]:
        """How far each store is, as of the last page."""
        return list(self._restores.values())

    @property
    def lag(self) -> int:
        """Records of changelogs that it lacks, as of the last look."""
        return sum(each.left for each in self.restores)

    def start(self) -> None:
        self._thread.start()

    def _follow(self) -> None:
        layout, log = self._application.layout, self._application.log
        while not self._over.is_set():
            try:
                for each in follow_changelogs(layout, self._place, self._journal, log, self._copy):
                    before = self._restores.get(each.store)
                    if before is not None:
                        each = each._replace(start=before.start, records=before.records + each.records)
                    self._restores[each.store] = each
                    if self._over.is_set():
                        return
            except StreamsError as error:
                # Whoever runs the task restores it, and is told what is wrong.
                logger.warning("the copy of task %s does not follow: %s", self._place.name, error)
                self._restores.clear()
                return
            self._over.wait(_LOOK_S)

    def close(self) -> None:
        """Ends it at the next page; the copy stays, as far as it has come."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._copy.close()
