"""Log of a command that runs an application: the last message for a live line, warnings above it."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from headrace.cli.printing import note

_LOGGER = logging.getLogger("headrace")
_FAILURE = "headrace.app.streams"
_REFRESHES_PER_SECOND = 8


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


class LiveOutput(ABC):
    """Output of a command while an application runs: a live display, if there is a terminal, and notes above it."""

    def __init__(self, terminal: Console | None, *, transient: bool = False) -> None:
        self._log = EngineLog(self.note)
        self._live: Live | None = None
        if terminal is not None:
            # Draws at once: all that `_render` needs has to be there.
            self._live = Live(
                console=terminal,
                get_renderable=self._render,
                refresh_per_second=_REFRESHES_PER_SECOND,
                transient=transient,
                redirect_stdout=False,
                # What functions of the application print stands above it, too.
                redirect_stderr=sys.stderr.isatty(),
            )

    @abstractmethod
    def _render(self) -> RenderableType:
        """Returns what the live display shows now."""

    def note(self, message: str) -> None:
        """Prints a note, above the live display."""
        if self._live is not None:
            self._live.console.print(Text(message))
        else:
            note(message)

    def __enter__(self) -> Self:
        self._log.__enter__()
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        self._log.__exit__(kind, error, trace)
