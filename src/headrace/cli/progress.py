"""Live counter of a command, shown if stderr is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

_REFRESHES_PER_SECOND = 8


class Counter:
    """Counts, and shows the count with its rate. Elsewhere than on a terminal it only counts."""

    def __init__(self, noun: str, *, total: int | None = None, quiet: bool = False) -> None:
        self.count = 0
        self._noun = noun
        self._total = total
        self._started = time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty() and not quiet:
            self._live = Live(
                console=Console(stderr=True),
                get_renderable=self._line,
                refresh_per_second=_REFRESHES_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def add(self, number: int) -> None:
        self.count += number

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self._started, 1e-9)

    def _line(self) -> Text:
        of = "" if self._total is None else f" of {self._total:,}"
        return Text(f"{self.count:,}{of} {self._noun}, {self.count / self.seconds:,.0f}/s")

    def __enter__(self) -> Counter:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
