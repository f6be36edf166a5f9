"""The thread in which the batches of an application run, and which can be left behind.

A function of the user that never returns holds up its application and no other; but no thread can be ended from
outside. So batches have a thread of their own, which can be left behind: whatever it does then, nothing of its batch is
committed, as if the process had been killed.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.runtime.gc_pause import end_pauses_of

logger = logging.getLogger(__name__)

_COMMIT_SECONDS = 5.0
"""How long ``abandon`` waits for a commit of the thread."""


class Abandoned(BaseException):
    """Raised in an abandoned thread."""


class CommitGuard:
    """Either a batch is committed, or its thread is left behind: never both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_committing = False
        self._has_ended = False
        self.is_over = False
        """Whether the thread was left behind."""

    def check(self) -> None:
        """Checks for abandonment before any visible effect: a user function may have caught the exception."""
        with self._changed:
            if self.is_over:
                raise Abandoned

    def begin(self) -> None:
        """Called when a batch has run; from here to ``end`` the thread cannot be abandoned."""
        with self._changed:
            self.check()
            self._is_committing = True

    def end(self) -> None:
        with self._changed:
            self._is_committing = False
            self._changed.notify_all()

    @contextmanager
    def committing(self) -> Iterator[None]:
        """What lies between ``begin`` and ``end``."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def close(self) -> None:
        """Called when the thread has nothing more to do: its number may soon be that of another thread."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def abandon(self, thread: threading.Thread) -> bool:
        """Lets nothing more be committed. A loop in Python ends by this; a call that blocks goes on, unheard.

        False says that the thread is not left behind, since it is at its end, or a commit takes long.
        """
        # Without the lock: what was raised in the thread may have kept it from giving the lock back.
        if self.is_over:
            return True
        with self._changed:
            if not self._changed.wait_for(lambda: not self._is_committing, _COMMIT_SECONDS):
                logger.warning("%s: a batch is being committed; the end waits for it", thread.name)
                return False
            if self._has_ended:
                return False
            self.is_over = True
            if thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Abandoned))
        return True


class BatchThread:
    """A thread that runs batches, until it ends or is abandoned."""

    def __init__(self, work: Callable[[CommitGuard], None], name: str) -> None:
        self._commits = CommitGuard()
        self._failure: BaseException | None = None
        self._over = threading.Event()
        # A daemon: a function that never returns must not keep the process alive.
        self._thread = threading.Thread(target=self._run, args=(work,), name=f"headrace-batches-{name}", daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[CommitGuard], None]) -> None:
        try:
            try:
                work(self._commits)
            except Abandoned:
                raise
            except BaseException as error:
                # The traceback of a failure that nobody will hear of would keep alive all that the batch had.
                if not self._commits.is_over:
                    self._failure = error
            self._commits.close()
        except Abandoned:
            return
        self._over.set()

    def abandon(self) -> None:
        """Makes ``wait`` return, and what the thread does from now on nobody's business; from any thread.

        A batch that is being committed is waited for, but not for long; from its own thread it is not waited for.
        """
        if self._over.is_set() or threading.current_thread() is self._thread:
            return
        if self._commits.abandon(self._thread):
            self._failure = None
            end_pauses_of(self._thread)
            self._over.set()

    @property
    def name(self) -> str:
        return self._thread.name

    def is_alive(self, patience: float) -> bool:
        """Tells whether the thread is still there; one that is about to end is given some seconds."""
        self._thread.join(patience)
        return self._thread.is_alive()

    def wait(self) -> None:
        """Waits for the end; raises what it failed of."""
        self._over.wait()
        if self._failure is not None and not self._commits.is_over:
            raise self._failure
