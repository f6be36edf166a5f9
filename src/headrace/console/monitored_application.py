"""The application, as the web server sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.config import StreamsConfig
from headrace.metrics.names import Metrics
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class Failed:
    """A failure of the application, and when it was."""

    at_ms: int
    message: str


class MonitoredApplication(Protocol):
    """Interface of an application to the web server, for any time and any thread."""

    @property
    def config(self) -> StreamsConfig: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def state_name(self) -> str: ...
    @property
    def state_since_ms(self) -> int: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def started_ms(self) -> int | None: ...
    @property
    def failures(self) -> Sequence[Failed]:
        """The last failures, the newest first."""
        ...

    @property
    def log(self) -> TopicLog: ...
    def metrics(self) -> Metrics: ...
