"""Line on the terminal that says what a start is busy with, for programs that have not set up logging.

A start takes seconds, and says what it does with ``logger.info``. A program with handlers for it shows that in its own
way; one without would show nothing at all.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_LOGGER = logging.getLogger("headrace")
_SECONDS_BETWEEN = 0.2
_CLEAR = "\r\x1b[K"


@contextmanager
def start_line(application: str, is_starting: Callable[[], bool]) -> Iterator[None]:
    """Shows what is logged while ``is_starting``, in one line of standard error, and then nothing any more.

    Does nothing if that is no terminal, or if the program logs.
    """
    if _LOGGER.hasHandlers() or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    line = _StartLine(application, is_starting)
    line.begin()
    try:
        yield
    finally:
        line.end()


class _StartLine(logging.Handler):
    def __init__(self, application: str, is_starting: Callable[[], bool]) -> None:
        super().__init__(logging.INFO)
        self._application = application
        self._is_starting = is_starting
        self._doing = "starting"
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._level = _LOGGER.level
        self._thread = threading.Thread(target=self._show, name="headrace-start-line", daemon=True)

    def begin(self) -> None:
        _LOGGER.addHandler(self)
        _LOGGER.setLevel(logging.INFO)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            self._doing = record.getMessage()
        else:
            # As Python does for a program without handlers.
            self._write(f"{_CLEAR}{record.getMessage()}\n")

    def _show(self) -> None:
        while not self._over.wait(_SECONDS_BETWEEN) and self._is_starting():
            self._write(f"{_CLEAR}{self._application}: {self._doing}, {time.monotonic() - self._begun:.0f} s")
        self._write(_CLEAR)
        _LOGGER.removeHandler(self)
        _LOGGER.setLevel(self._level)

    def _write(self, text: str) -> None:
        # Whatever has become of the terminal.
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
