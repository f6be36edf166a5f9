"""Signal handling: SIGINT and SIGTERM close an application; a second Ctrl-C ends the process at once."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_END = 0
"""No signal has this number."""


@contextmanager
def closing_on_signals(close: Callable[[], object]) -> Iterator[list[int]]:
    """Calls ``close`` in a thread of its own when a signal arrives; gives the list of those that have.

    Handlers belong to the main thread: in another one nothing is done. Those that were there before come back in the
    end, and a signal that was ignored stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    main = threading.get_ident()
    received: list[int] = []
    impatient = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and impatient.is_set():
            # What is not committed is done again at the next start.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def watch() -> None:
        closer = threading.Thread(target=close, name="headrace-closing", daemon=True)
        while (number := wakes.recv(1)[0]) != _END:
            if number not in taken:
                continue
            if not received:
                received.append(number)
                logger.info("closing, because of %s; Ctrl-C ends the process at once", signal.Signals(number).name)
                closer.start()
            elif number == signal.SIGINT and not impatient.is_set():
                # A second Ctrl-C means that the user does not want to wait. A SIGTERM that follows is more likely one
                # that a parent process passes on.
                # Only the main thread may bring the system's own handler back, and may have to be woken for it.
                impatient.set()
                signal.pthread_kill(main, signal.SIGINT)
        if received:
            closer.join()

    before = {number: signal.getsignal(number) for number in SIGNALS}
    # A handler that is None was set by code that is not Python's, and could not be brought back.
    taken = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    wakes, woken = socket.socketpair()
    with wakes, woken:
        watcher = threading.Thread(target=watch, name="headrace-signals", daemon=True)
        watcher.start()
        # A handler runs in the main thread, once that does something. The kernel may give the signal to another thread,
        # and the main one would go on waiting; what is written here is read at once, whichever thread got it.
        woken.settimeout(0)
        descriptor = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        try:
            for number in taken:
                signal.signal(number, handle)
            yield received
        finally:
            for number in taken:
                signal.signal(number, before[number])
            signal.set_wakeup_fd(descriptor)
            woken.send(bytes([_END]))
            watcher.join()
