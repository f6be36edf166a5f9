"""Housekeeping of the embedded log: retention, compaction, putting small blobs together."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from headrace.errors import StreamsError
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_PAUSE = 5.0
_BREATH = 0.05


class Housekeeping:
    """Cleans the log in small steps while the application runs; a broker does that by itself."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if isinstance(self._log, EmbeddedLog):
            self._thread = threading.Thread(target=self._work, name="headrace-housekeeping", daemon=True)
            self._thread.start()
        return self

    def _work(self) -> None:
        assert isinstance(self._log, EmbeddedLog), "other logs have no thread"
        while not self._over.wait(_PAUSE):
            try:
                while self._log.clean().more and not self._over.wait(_BREATH):
                    pass
            except StreamsError as error:
                # It can wait: nothing depends on it but the size of the log.
                logger.warning("the log could not be cleaned: %s", error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
