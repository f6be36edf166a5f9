"""Cyclic garbage of a Python worker, collected between Spark's tasks without a walk through the state."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_EVERY_S = 5.0
_AT_LEAST_EVERY_S = 60.0
_MANY = 500_000
"""Objects that have come and not gone since the last collection, and are reason enough for the next one."""
_MOST = 4_000_000
_LITTLE = 0.01
"""The share of garbage among what is new that was not worth the walk."""
_WHOLE_EVERY_S = 600.0


class WorkerGarbage:
    """Stands in for the module ``gc`` in pyspark's daemon, which has a worker collect after every task.

    Rows of stores are objects, which the collector would walk through every time: 0.4 s per micro-batch with the
    100,000 rows of a join of two streams. What has outlived a collection is put out of its sight, so that it walks
    through what is new; and it waits some seconds, after which most rows of such a join are gone. Where it finds next
    to nothing, as records make no cycles, it waits for longer, and for more. Now and then everything is looked at: what
    has become garbage later is found then.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._every_s = _EVERY_S
        self._many = _MANY
        self._due = clock()
        self._whole_due = self._due + _WHOLE_EVERY_S

    def collect(self) -> int:
        """Collects what has become garbage since the last time, if it is time to; returns how many objects it was."""
        # Spark has switched the collector on if it has read a broadcast value: then it would walk through all of a
        # micro-batch when that is over.
        gc.disable()
        now, new = self._clock(), gc.get_count()[0]
        if now < self._due and new < self._many:
            return 0
        if now >= self._whole_due:
            gc.unfreeze()
            self._whole_due = now + _WHOLE_EVERY_S
        found = gc.collect()
        gc.freeze()
        if found > _LITTLE * new:
            self._every_s, self._many = _EVERY_S, _MANY
        elif new >= self._many:
            self._many = min(2 * self._many, _MOST)
        else:
            self._every_s = min(2 * self._every_s, _AT_LEAST_EVERY_S)
        self._due = now + self._every_s
        return found


GARBAGE = WorkerGarbage()
"""Of this process. Spark has it collected after its tasks, and a ``WorkServer`` after work for other processes."""
