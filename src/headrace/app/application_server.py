"""The server of an application: what it shows of itself, and the address that it leaves in its directory."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headrace.app.store_queries import OwnViews
from headrace.config import StreamsConfig
from headrace.console.monitored_application import Failed
from headrace.console.recorder import Recorder
from headrace.errors import missing_package
from headrace.metrics.names import Metrics
from headrace.topics.log import TopicLog
from headrace.topology.topology import Topology
from headrace.views.metadata import HostInfo
from headrace.views.views import Views

if TYPE_CHECKING:
    from headrace.http.server import Listening, Server

logger = logging.getLogger(__name__)

ADDRESS = "http.json"
"""File in the application's directory that says where it is served, while it is."""
_FAILURES = 20


class ServedApplication(Protocol):
    """The application whose server it is."""

    @property
    def config(self) -> StreamsConfig: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def is_paused(self) -> bool: ...
    def metrics(self) -> Metrics: ...


class ApplicationView:
    """An application as its server sees it; see ``MonitoredApplication`` and ``Instance``."""

    def __init__(
        self,
        subject: ServedApplication,
        own_views: OwnViews,
        state: Callable[[], tuple[str, int]],
        now_ms: Callable[[], int],
    ) -> None:
        self._subject = subject
        self._own_views = own_views
        self._state = state
        self._now_ms = now_ms
        self._log: TopicLog | None = None
        self._failures: deque[Failed] = deque(maxlen=_FAILURES)
        self._paused_ms: int | None = None
        self.started_ms: int | None = None

    def open(self, log: TopicLog) -> None:
        self._log = log
        self.started_ms = self._now_ms()

    def failed(self, error: BaseException) -> None:
        """Remembers a failure."""
        self._failures.appendleft(Failed(self._now_ms(), str(error)))

    def paused(self) -> None:
        """Remembers when it was paused, or went on."""
        self._paused_ms = self._now_ms()

    @property
    def config(self) -> StreamsConfig:
        return self._subject.config

    @property
    def topology(self) -> Topology:
        return self._subject.topology

    @property
    def state_name(self) -> str:
        return self._state()[0]

    @property
    def state_since_ms(self) -> int:
        return max(self._state()[1], self._paused_ms or 0)

    @property
    def is_paused(self) -> bool:
        return self._subject.is_paused

    @property
    def failures(self) -> Sequence[Failed]:
        return tuple(self._failures)

    @property
    def log(self) -> TopicLog:
        assert self._log is not None, "the server starts when the log is open"
        return self._log

    def metrics(self) -> Metrics:
        return self._subject.metrics()

    def views(self) -> Views:
        return self._own_views.views()

    @property
    def host(self) -> HostInfo:
        return self._own_views.own_host()

    def is_active(self, store: str, partition: int) -> bool:
        """It is: the application has all of its stores."""
        return True

    def holders(self, store: str, partition: int) -> Sequence[HostInfo]:
        return ()


class ApplicationServer:
    """The server of one application, from its start to its end; without an address there is none."""

    def __init__(self, seen: ApplicationView, listen: str | None) -> None:
        self.seen = seen
        self._listen = listen
        self._recorder: Recorder | None = None
        self._server: Server | None = None
        self._file: Path | None = None

    @property
    def url(self) -> str | None:
        """Where the console is; None while it is not served."""
        return None if self._server is None else self._server.url

    def check(self) -> None:
        """Complains about an address or files that cannot be used, and about packages that are missing."""
        if self._listen is not None:
            self._listening()

    def _listening(self) -> Listening:
        try:
            from headrace.http.server import Listening
        except ImportError as error:
            raise missing_package(error, "http.listen is set, and serving", "http") from error
        return Listening.of(self._listen or "", self.seen.config)

    def open(self, log: TopicLog, directory: Path) -> None:
        """Starts to serve, and leaves the address in the directory."""
        self.seen.open(log)
        if self._listen is None:
            return
        listening = self._listening()
        from headrace.console.asgi_application import make_application
        from headrace.http.server import Server

        config = self.seen.config
        token = config.http_token
        recorder = Recorder(self.seen)
        application = make_application(self.seen, self.seen, recorder, token=token, listening=listening)
        server = Server(application, listening, formatter=config.http_formatter)
        if (danger := listening.exposure(token)) is not None:
            logger.warning("%s: %s", server.url, danger)
        self._recorder, self._server = recorder, server
        recorder.start()
        server.start()
        self._file = directory / ADDRESS
        self._file.write_text(json.dumps({"url": server.url, "needs_token": token is not None}), encoding="utf-8")
        logger.info("application '%s' is served at %s", config.application_id, server.url)

    # Any: see Batch.
    def on_batch(self, batch: Any) -> None:
        if self._recorder is not None:
            self._recorder.on_batch(batch)

    def close(self) -> None:
        """Stops to serve; more than once is once."""
        server, recorder, file = self._server, self._recorder, self._file
        self._server = self._recorder = self._file = None
        if file is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)
        if server is not None:
            server.stop()
        if recorder is not None:
            recorder.stop()


def served_at(directory: Path) -> dict[str, Any] | None:
    """Returns where the application of a directory is served, as it has left it there; None if it is not."""
    try:
        found = json.loads((directory / ADDRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("url"), str) else None
