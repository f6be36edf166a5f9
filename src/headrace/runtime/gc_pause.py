"""Pause of Python's cyclic garbage collector during a batch."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet


class _Pauses:
    """The pauses of all threads: there is one collector, which is off from the first of them to the last.

    A thread that is left behind may never end its pause, so it has none any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[object, threading.Thread] = {}
        self._left: WeakSet[threading.Thread] = WeakSet()
        self._was_enabled = False

    def begin(self, pause: object) -> None:
        thread = threading.current_thread()
        with self._lock:
            if thread in self._left:
                return
            if not self._threads:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._threads[pause] = thread

    def end(self, pause: object) -> None:
        with self._lock:
            self._end([pause])

    def leave(self, thread: threading.Thread) -> None:
        with self._lock:
            self._left.add(thread)
            self._end([pause for pause, of in self._threads.items() if of is thread])

    def _end(self, pauses: list[object]) -> None:
        ended = [self._threads.pop(pause) for pause in pauses if pause in self._threads]
        if ended and not self._threads and self._was_enabled:
            gc.enable()


_pauses = _Pauses()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switches the cyclic collector off for as long as a batch runs, and on again if it was on.

    Records make no cycles and are freed by their reference counts; but a batch makes so many objects that the
    collector would walk through all of them again and again, for nothing. What cycles user code makes wait for the end
    of the batch.
    """
    pause = object()
    try:
        _pauses.begin(pause)
        yield
    finally:
        _pauses.end(pause)


def end_pauses_of(thread: threading.Thread) -> None:
    """Ends the pauses of a thread that is left behind, and lets it make no others."""
    _pauses.leave(thread)
