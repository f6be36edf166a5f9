"""One thread that waits for new records, on behalf of all queries of a process.

Every query waits for its own topics most of the time. On a log that can only be asked again and again, a hundred idle
queries would ask a hundred times as often as one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headrace.topics.log import Offsets, TopicLog, TopicPartition

_SLICE = timedelta(milliseconds=50)
"""How long a query may wait unheard if it begins to wait while the thread is busy with others."""
_NUDGE_SECONDS = 0.1
_LONG_SECONDS = 0.5
"""A query that waits for ``_NUDGE_SECONDS`` only wants to look then whether it should stop. ``wake`` tells it, so it
waits for ``_LONG_SECONDS`` instead."""


class _Waiter:
    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self.positions = dict(positions)
        self.woken = threading.Event()


class SharedWaiting:
    """A log whose ``wait_for_data`` is shared; everything else is that of the log, also where it arrives pickled."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._changed = threading.Condition()
        self._waiters: set[_Waiter] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self._watch, name="headrace-sql-waiting", daemon=True)
        self._thread.start()

    # Any: whatever the log has.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same_log, (self._log,)

    def wait_for_data(self, positions: Mapping[TopicPartition, int], timeout: timedelta) -> bool:
        """Waits until a partition has something at its position or behind; False when the time is over."""
        if _is_due(positions, self._log.end_offsets(positions)):
            return True
        seconds = timeout.total_seconds()
        waiter = _Waiter(positions)
        with self._changed:
            self._waiters.add(waiter)
            self._changed.notify_all()
        try:
            return waiter.woken.wait(_LONG_SECONDS if seconds >= _NUDGE_SECONDS else seconds)
        finally:
            with self._changed:
                self._waiters.discard(waiter)

    def wake(self) -> None:
        """Wakes all waiting threads."""
        with self._changed:
            for waiter in self._waiters:
                waiter.woken.set()

    def stop_waiting(self) -> None:
        """Ends the thread; the log stays open."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiters or self._is_closed)
                if self._is_closed:
                    return
                waiters = list(self._waiters)
            together: Offsets = {}
            for waiter in waiters:
                for target, position in waiter.positions.items():
                    together[target] = min(position, together.get(target, position))
            try:
                if self._log.wait_for_data(together, _SLICE):
                    ends = self._log.end_offsets(together)
                    for waiter in waiters:
                        if _is_due(waiter.positions, ends):
                            waiter.woken.set()
            except Exception:
                # A topic may be gone. The query that waits for it finds that out when it asks.
                for waiter in waiters:
                    waiter.woken.set()


def _is_due(positions: Mapping[TopicPartition, int], ends: Offsets) -> bool:
    return any(ends[target] > position for target, position in positions.items())


def _same_log(log: TopicLog) -> TopicLog:
    return log
