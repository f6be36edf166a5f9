"""Cyclic garbage of a Python worker, collected between Spark's tasks without a walk through the state."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_EVERY_S = 5.0
_MANY = 500_000
"""Objects that have come and not gone since the last collection, and are reason enough for the next one."""
_WHOLE_EVERY_S = 600.0


class WorkerGarbage:
    """Stands in for the module ``gc`` in pyspark's daemon, which has a worker collect after every task.

    Rows of stores are objects, which the collector would walk through every time: 0.4 s per micro-batch with the
    100,000 rows of a join of two streams. What has outlived a collection is put out of its sight, so that it walks
    through what is new; and it waits some seconds, after which most rows of such a join are gone. Now and then
    everything is looked at: what has become garbage later is found then.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = clock()
        self._whole_due = self._due + _WHOLE_EVERY_S

    def collect(self) -> int:
        """Collects what has become garbage since the last time, if it is time to; returns how many objects it was."""
        now = self._clock()
        if now < self._due and gc.get_count()[0] < _MANY:
            return 0
        self._due = now + _EVERY_S
        if now >= self._whole_due:
            gc.unfreeze()
            self._whole_due = now + _WHOLE_EVERY_S
        found = gc.collect()
        gc.freeze()
        return found
