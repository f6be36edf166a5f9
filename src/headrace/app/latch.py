"""Latch: a flag that is set once and can be waited for."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue

_LOOK = 1.0


class Latch:
    """Like ``threading.Event``, but a signal handler may set it at any moment.

    An event has a lock that is not reentrant: a handler that runs while its own thread is about to wait would wait for
    itself. A ``SimpleQueue`` has none.

    >>> latch = Latch()
    >>> latch.wait(0), latch.set(), latch.wait(0)
    (False, None, True)
    """

    def __init__(self) -> None:
        self._is_set = False
        self._tokens: SimpleQueue[None] = SimpleQueue()

    @property
    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._tokens.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set; False when the time is over. None waits for ever."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._is_set:
            left = _LOOK if deadline is None else min(deadline - time.monotonic(), _LOOK)
            try:
                # The system may give a signal to any thread, and then does not wake this one; the handler runs in the
                # main thread all the same, so that one must look now and then.
                self._tokens.get(timeout=max(left, 0))
            except Empty:
                if left <= 0:
                    return self._is_set
            else:
                # One token serves all threads that wait, one after the other.
                self._tokens.put(None)
        return True
