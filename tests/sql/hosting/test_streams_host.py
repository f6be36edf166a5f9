"""The host of persistent queries."""

from __future__ import annotations

import threading
from pathlib import Path

from headrace import EmbeddedLog
from headrace.sql.hosting.streams_host import StreamsHost
from tests.sql.places import SOON


class _ClosedJustBefore(threading.Event):
    """An event that is cleared by a thread that has seen nothing of what another one does in between."""

    def __init__(self, host: StreamsHost) -> None:
        super().__init__()
        self._host = host

    def clear(self) -> None:
        self._host._is_closed = True
        self.set()
        super().clear()


def test_host_that_is_closed_while_it_looks_around_ends(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log", sync="none") as log:
        host = StreamsHost(log, {"state.dir": str(tmp_path)}, service_id="s_")
        before, host._wake = host._wake, _ClosedJustBefore(host)
        before.set()
        host._thread.join(SOON.total_seconds())
        assert not host._thread.is_alive()
        host.close()
