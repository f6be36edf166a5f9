"""Line on the terminal that says what an application does, for programs that have not set up logging.

A start takes seconds, and says what it does with ``logger.info``; then there are figures, as ``headrace run`` shows
them. A program with handlers for the log shows all that in its own way; one without would show nothing at all.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from headrace.app.progress import Counts

_LOGGER = logging.getLogger("headrace")
_SECONDS_BETWEEN = 0.2
_CLEAR = "\r\x1b[K"


@contextmanager
def start_line(application: str, state: Callable[[], str]) -> Iterator[Counts | None]:
    """Shows in one line of standard error what is logged at the start, then figures, and a summary at the end.

    Gives what micro-batches are to be added to. Shows nothing, and gives None, if standard error is no terminal, or if
    the program logs.
    """
    if _LOGGER.hasHandlers() or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    line = _StartLine(application, state)
    line.begin()
    try:
        yield line.counts
    except BaseException:
        line.end("")
        raise
    line.end(f"{line.counts.summary(application)}\n" if line.counts.batches else "")


class _StartLine(logging.Handler):
    def __init__(self, application: str, state: Callable[[], str]) -> None:
        super().__init__(logging.INFO)
        self.counts = Counts()
        self._application = application
        self._state = state
        self._doing = "starting"
        self._over = threading.Event()
        self._level = _LOGGER.level
        self._thread = threading.Thread(target=self._show, name="headrace-start-line", daemon=True)

    def begin(self) -> None:
        _LOGGER.addHandler(self)
        _LOGGER.setLevel(logging.INFO)
        self._thread.start()

    def end(self, last: str) -> None:
        self._over.set()
        self._thread.join()
        self._write(f"{_CLEAR}{last}")
        _LOGGER.removeHandler(self)
        _LOGGER.setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            self._doing = record.getMessage()
        else:
            # As Python does for a program without handlers.
            self._write(f"{_CLEAR}{record.getMessage()}\n")

    def _show(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN):
            state = self._state()
            doing = self._doing if state.startswith("starting") else ""
            self._write(f"{_CLEAR}{self.counts.line(self._application, state, doing)}"[: _columns()])

    def _write(self, text: str) -> None:
        # Whatever has become of the terminal.
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


def _columns() -> int:
    # A line that is wrapped could not be cleared.
    return shutil.get_terminal_size().columns - 1 + len(_CLEAR)
