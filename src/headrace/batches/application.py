"""An application as the processes see it that run its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.batches.layout import Layout
from headrace.topics.journal import DurableLog


@dataclass(frozen=True)
class Application:
    """The same in all processes, and in all micro-batches of a run."""

    key: str
    """Tells it from others on the same executor."""
    layout: Layout
    log: DurableLog
    directory: Path
    """Where its working copies are, on each machine its own."""
    incarnation: int
    """Of the driver: tasks of an earlier one are fenced."""

    @property
    def id(self) -> str:
        return self.layout.config.application_id
