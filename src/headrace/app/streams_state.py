"""The states of an application, as Kafka Streams names them, and the listener of their changes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from headrace.app.callbacks import Callbacks
from headrace.app.latch import Latch


class StreamsState(Enum):
    """State of an application in its life cycle.

    >>> StreamsState.CREATED.can_become(StreamsState.REBALANCING)
    True
    >>> StreamsState.NOT_RUNNING.can_become(StreamsState.REBALANCING)
    False
    """

    CREATED = "CREATED"
    """Made, and not started."""
    REBALANCING = "REBALANCING"
    """Starting, or starting again after a failure; or tasks with work are restored, or move to another executor."""
    RUNNING = "RUNNING"
    """Has finished its first micro-batch with all of its tasks, and goes on."""
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    """Stopping."""
    NOT_RUNNING = "NOT_RUNNING"
    """Has stopped, because it was closed or had nothing more to do."""
    PENDING_ERROR = "PENDING_ERROR"
    """Stopping after a failure."""
    ERROR = "ERROR"
    """Has stopped after a failure."""

    def can_become(self, new: StreamsState) -> bool:
        """Tells whether the new state may follow this one."""
        return new in _NEXT[self]

    @property
    def has_not_started(self) -> bool:
        return self is StreamsState.CREATED

    @property
    def is_running_or_rebalancing(self) -> bool:
        return self in (StreamsState.RUNNING, StreamsState.REBALANCING)

    @property
    def is_shutting_down(self) -> bool:
        return self in (StreamsState.PENDING_SHUTDOWN, StreamsState.PENDING_ERROR)

    @property
    def has_completed_shutdown(self) -> bool:
        return self in (StreamsState.NOT_RUNNING, StreamsState.ERROR)

    @property
    def has_started_or_finished_shutting_down(self) -> bool:
        return self.is_shutting_down or self.has_completed_shutdown


_NEXT = {
    StreamsState.CREATED: {StreamsState.REBALANCING, StreamsState.PENDING_SHUTDOWN},
    StreamsState.REBALANCING: {StreamsState.RUNNING, StreamsState.PENDING_SHUTDOWN, StreamsState.PENDING_ERROR},
    StreamsState.RUNNING: {
        StreamsState.REBALANCING,
        StreamsState.RUNNING,
        StreamsState.PENDING_SHUTDOWN,
        StreamsState.PENDING_ERROR,
    },
    StreamsState.PENDING_SHUTDOWN: {StreamsState.NOT_RUNNING},
    StreamsState.NOT_RUNNING: set[StreamsState](),
    StreamsState.PENDING_ERROR: {StreamsState.ERROR},
    StreamsState.ERROR: set[StreamsState](),
}

StateListener: TypeAlias = Callable[[StreamsState, StreamsState], object]
"""Called with the new state and the one before."""


class StateChanges:
    """The state of one application. Its listener hears of every change, in order, one at a time.

    A change that happens while the listener runs, in another thread or caused by the listener itself, is told when it
    returns, by the thread that is telling already: so nobody waits for anybody.
    """

    def __init__(self, callbacks: Callbacks) -> None:
        self.listener: StateListener | None = None
        self.ended = Latch()
        """Set once the last state is reached and the listener has heard of it."""
        self._state = StreamsState.CREATED
        self.since_ms = int(time.time() * 1000)
        """When the state has changed last."""
        self._callbacks = callbacks
        # Reentrant: a signal handler may close the application while its own thread is in here.
        self._lock = threading.RLock()
        self._untold: deque[tuple[StreamsState, StreamsState]] = deque()
        self._telling = False

    @property
    def state(self) -> StreamsState:
        return self._state

    def become(self, new: StreamsState) -> StreamsState | None:
        """Changes the state and returns the one before; None says that the new one may not follow it."""
        with self._lock:
            old = self._state
            if not old.can_become(new):
                return None
            if new is not old:
                self.since_ms = int(time.time() * 1000)
            self._state = new
            self._untold.append((new, old))
        self._tell()
        return old

    def _tell(self) -> None:
        while self._untold:
            with self._lock:
                if self._telling or not self._untold:
                    return
                self._telling = True
                new, old = self._untold.popleft()
            try:
                if self.listener is not None:
                    self._callbacks.call("the state listener", self.listener, new, old)
            finally:
                self._telling = False
            if new.has_completed_shutdown:
                self.ended.set()
