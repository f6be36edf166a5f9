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
from headrace.batches.restore import count_unfollowed, find_restores, follow_changelogs
from headrace.batches.working_copy import WorkingCopy

logger = logging.getLogger(__name__)

_LOOK_S = 1.0
"""Pause between two looks at changelogs that have nothing new."""


class StandbyCopy:
    """Follows the changelogs of one task in a thread, until it is closed."""

    def __init__(self, application: Application, place: TaskPlace, *, is_awaited: bool = False) -> None:
        self.is_awaited = is_awaited
        """Whether the task starts from this copy: then its reads count as a part of the task's restore."""
        self._application = application
        self._place = place
        self._journal = application.log.task_journal(
            application.id, application.incarnation, place.name, application.layout.own_changelogs(place)
        )
        self._copy: WorkingCopy | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._restores: dict[str, StoreRestore] = {}
        self._unfollowed = 0
        self.has_failed = False
        """Whether it follows no more, because of an error."""
        self._thread = threading.Thread(target=self._follow, name=f"headrace-standby-{place.name}", daemon=True)

    def open(self) -> WorkingCopy:
        """Opens the copy, and finds out what it lacks; once it is open this does nothing."""
        with self._lock:
            if self._copy is None:
                layout, log, place = self._application.layout, self._application.log, self._place
                copy = layout.copy_of(place, self._application.directory)
                try:
                    found = find_restores(layout, place, self._journal, log, copy)
                    self._unfollowed = count_unfollowed(layout, place, log)
                except BaseException:
                    copy.close()
                    raise
                self._restores = {each.store: each for each in found}
                self._copy = copy
            return self._copy

    @property
    def restores(self) -> list[StoreRestore]:
        """How far each store is, as of the last page."""
        return list(self._restores.values())

    @property
    def lag(self) -> int:
        """Records of changelogs that it lacks, as of the last look."""
        return sum(each.left for each in self.restores)

    @property
    def distance(self) -> int | None:
        """Records that the task would read before it runs, also for stores of which there is no copy.

        None if that is not known: the copy is not open yet, or does not follow any more.
        """
        return None if self._copy is None or self.has_failed else self.lag + self._unfollowed

    def start(self) -> None:
        """Follows the changelogs from now on, in the background; also the copy is opened there."""
        self._thread.start()

    def _follow(self) -> None:
        layout, log = self._application.layout, self._application.log
        try:
            copy = self.open()
            while not self._over.is_set():
                for each in follow_changelogs(layout, self._place, self._journal, log, copy):
                    before = self._restores.get(each.store)
                    if before is not None:
                        each = each._replace(start=before.start, records=before.records + each.records)
                    self._restores[each.store] = each
                    if self._over.is_set():
                        return
                self._over.wait(_LOOK_S)
        except Exception as error:
            # The process that runs the task restores it, and tells what is wrong.
            logger.warning("the copy of task %s does not follow: %s", self._place.name, error)
            self.has_failed = True
            self._restores = {}

    def close(self) -> None:
        """Ends it at the next page; the copy stays, as far as it has come."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            copy, self._copy = self._copy, None
        if copy is not None:
            copy.close()
