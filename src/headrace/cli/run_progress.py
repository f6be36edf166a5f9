"""The progress of a running application: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import click
from rich.console import Console
from rich.spinner import Spinner
from rich.text import Text

from headrace.app.engine import Batch
from headrace.app.progress import Counts, state_word
from headrace.cli.engine_log import LiveOutput
from headrace.cli.printing import note

_SECONDS_BETWEEN_LINES = 10.0
# By the summary, or the error that ends the command.
_TOLD_OTHERWISE = frozenset({"NOT_RUNNING", "PENDING_ERROR", "ERROR"})


class RunProgress(LiveOutput):
    """Listens to an application and shows what it does."""

    def __init__(self, application: str, *, quiet: bool, as_json: bool) -> None:
        self._application = application
        self._as_json = as_json
        self._quiet = quiet
        self._said = time.monotonic()
        self._state = "starting"
        self._counts = Counts()
        self._spinner = Spinner("dots")
        is_drawn = sys.stderr.isatty() and not quiet and not (as_json and sys.stdout.isatty())
        super().__init__(Console(stderr=True) if is_drawn else None, transient=True)

    def on_batch(self, batch: Batch) -> None:
        """Counts a micro-batch. Called from the engine's thread."""
        self._counts.add(batch)
        if self._as_json:
            click.echo(json.dumps(_plain(batch)))
        now = time.monotonic()
        if self._live is None and not self._quiet and now - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = now
            note(self.line())

    # Any: states are an enum of the application's module.
    def on_state(self, new: Any, _old: Any) -> None:
        """Remembers the state. Called from any thread."""
        self._state = state_word(new.name, again=self._counts.last is not None)
        if self._live is None and not self._quiet and new.name not in _TOLD_OTHERWISE:
            note(f"{self._application}: {self._state}")

    def line(self) -> str:
        """Returns the progress as one line."""
        doing = self._log.last if self._state == "starting" else ""
        return self._counts.line(self._application, self._state, doing)

    def summary(self) -> str:
        """Returns the summary for the end."""
        return self._counts.summary(self._application)

    def _render(self) -> Spinner:
        self._spinner.update(text=Text(self.line(), no_wrap=True, overflow="ellipsis"))
        return self._spinner


def _plain(batch: Batch) -> dict[str, Any]:
    # What single tasks did is in the metrics.
    names = [field.name for field in fields(batch) if field.name != "tasks"]
    return {name: _jsonable(getattr(batch, name)) for name in names}


def _jsonable(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
