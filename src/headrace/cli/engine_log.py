"""Log handler for a command that runs an application: keeps the last message, passes warnings on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType

_LOGGER = logging.getLogger("headrace")
_FAILURE = "headrace.app.streams"


class EngineLog(logging.Handler):
    """Remembers the last message, which says what a start is busy with, and hands on warnings.

    The failure of an application is not among them: it ends the command, which tells it once and without a traceback.
    """

    def __init__(self, warn: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self._warn = warn
        self._before = (_LOGGER.level, _LOGGER.propagate)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            self.last = record.getMessage()
        elif not (record.name == _FAILURE and record.levelno >= logging.ERROR):
            self._warn(f"{record.levelname.lower()}: {record.getMessage()}")

    def __enter__(self) -> EngineLog:
        self._before = (_LOGGER.level, _LOGGER.propagate)
        _LOGGER.addHandler(self)
        _LOGGER.setLevel(logging.INFO)
        # Without a handler of the program's own, Python would print warnings once more.
        _LOGGER.propagate = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LOGGER.removeHandler(self)
        _LOGGER.level, _LOGGER.propagate = self._before
