"""Cyclic garbage of a Python worker, collected after each of Spark's tasks without a walk through the state."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_WHOLE_EVERY_S = 600.0


class WorkerGarbage:
    """Stands in for the module ``gc`` in pyspark's daemon, which has a worker collect after every task.

    Rows of stores are objects, which the collector would walk through every time: 0.4 s per micro-batch with the
    100,000 rows of a join of two streams. What has outlived a collection is put out of its sight, so that it walks
    through what is new. Now and then everything is looked at: what has become garbage later is found then.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = clock() + _WHOLE_EVERY_S

    def collect(self) -> int:
        """Collects what has become garbage since the last time; returns how many objects that were."""
        if self._clock() >= self._due:
            gc.unfreeze()
            self._due = self._clock() + _WHOLE_EVERY_S
        found = gc.collect()
        gc.freeze()
        return found
