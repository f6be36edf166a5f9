"""A thread for the batches of an application, which can be left behind.

A function of the user that never returns holds up its application and no other; but no thread can be ended from
outside. So batches have a thread of their own, which can be left behind: whatever it does then, nothing of its batch is
committed, as if the process had been killed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable


class LeftBehind(BaseException):
    """Raised in a thread whose work nobody waits for any more."""


class Commits:
    """Either a batch is committed, or its thread is left behind: never both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_committing = False
        self.is_over = False
        """Whether the thread was left behind."""

    def begin(self) -> None:
        """Called when a batch has run; from here to ``end`` nobody is left behind."""
        with self._changed:
            if self.is_over:
                raise LeftBehind
            self._is_committing = True

    def end(self) -> None:
        with self._changed:
            self._is_committing = False
            self._changed.notify_all()

    def leave_behind(self, thread: threading.Thread) -> None:
        """Lets nothing more be committed. A loop in Python ends by this; a call that blocks goes on, unheard."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_committing)
            self.is_over = True
            if thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(LeftBehind))


class BatchThread:
    """A thread that runs batches, and its end: by itself, or because nobody waits for it any more."""

    def __init__(self, work: Callable[[Commits], None], name: str) -> None:
        self._commits = Commits()
        self._failure: BaseException | None = None
        self._over = threading.Event()
        # A daemon: a function that never returns must not keep the process alive.
        self._thread = threading.Thread(target=self._run, args=(work,), name=f"headrace-batches-{name}", daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[Commits], None]) -> None:
        try:
            work(self._commits)
        except BaseException as error:
            self._failure = error
        finally:
            self._over.set()

    def leave_behind(self) -> None:
        """Makes ``wait`` return, and what the thread does from now on nobody's business; from any thread."""
        if not self._over.is_set():
            self._commits.leave_behind(self._thread)
            self._over.set()

    def wait(self) -> None:
        """Waits for the end; raises what it failed of."""
        self._over.wait()
        if self._failure is not None and not self._commits.is_over:
            raise self._failure
