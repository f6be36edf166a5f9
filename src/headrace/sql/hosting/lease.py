"""Lease of a service: of several servers on one log, which share nothing else, one runs the persistent queries.

The holder writes to a topic again and again. Who has heard nothing of it for some time claims the lease. Each record
names the offset of the one that it follows, so that of two claims the first counts, for everybody who reads. The lease
only keeps servers from disturbing each other: whoever comes late, because it was frozen, is fenced by the journals.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from headrace.errors import StreamsError, TopicExistsError
from headrace.private_directory import make_directories
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0
_LEASE_SECONDS = 5.0
"""How long nothing may be heard of the holder."""
_LOOK_SECONDS = 0.5
_NOTHING = -1
_CONFIGS = {"cleanup.policy": "delete", "retention.ms": 3_600_000, "segment.ms": 600_000}


def lease_topic(service_id: str) -> str:
    """Returns the name of the topic.

    >>> lease_topic("default_")
    '_headrace_sql_default__servers'
    """
    return f"_headrace_sql_{service_id}_servers"


def server_id(directory: Path) -> str:
    """Returns the name of the server whose directory this is, the same at every start.

    Who has the directory knows that the server that had it before has ended, and goes on with its lease at once.
    """
    path = directory / "server-id"
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        make_directories(path.parent)
        path.write_text(uuid4().hex, encoding="utf-8")
        return path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Entry:
    """A record of the topic: who holds the lease from there on, or ``None`` if it was given back."""

    offset: int
    holder: str | None


class LeaseHistory:
    """History of the lease: the records of its topic, in their order."""

    def __init__(self) -> None:
        self.last = _Entry(_NOTHING, None)
        self._is_certain = False
        """Whether the last record follows one that was read; the first ones of a topic may be cut off."""

    # Any: JSON.
    def apply(self, offset: int, record: Any) -> bool:
        """Takes a record; returns whether it counts."""
        kind, server, follows = record["kind"], record["server"], record["follows"]
        if follows == self.last.offset:
            self._is_certain = True
        elif (self._is_certain or kind == "claim") and self.last.offset != _NOTHING:
            return False
        self.last = _Entry(offset, None if kind == "release" else server)
        return True


class Lease:
    """The lease as one server sees it, kept by a thread; ``tell`` is called when the server gets or loses it."""

    def __init__(self, log: TopicLog, service_id: str, server: str) -> None:
        self._log = log
        self._topic = lease_topic(service_id)
        self._server = server
        self._history = LeaseHistory()
        self._position = 0
        self._heard = time.monotonic()
        self._written = 0.0
        self._is_first = True
        self.tell: Callable[[], None] = lambda: None
        self.is_held = False
        """Whether this server runs the queries of the service."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="headrace-sql-lease", daemon=True)

    def start(self) -> None:
        """Looks for the holder, and becomes it if there is none; then goes on in a thread."""
        with suppress(TopicExistsError):
            self._log.create_topic(self._topic, configs=_CONFIGS)
        self._look()
        self._thread.start()

    def close(self) -> None:
        """Gives the lease back, so that the next server need not wait."""
        self._stopping.set()
        if not self._thread.is_alive():
            return
        self._thread.join()
        if self.is_held:
            with suppress(StreamsError):
                self._write("release")
            self._set_held(held=False)

    def _keep(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                self._look()
            except Exception as error:
                # The log is away: whoever reaches it goes on.
                logger.warning("%s cannot be read or written: %s", self._topic, error)

    def _look(self) -> None:
        """Reads what is new, and writes what is to be said now."""
        self._read()
        holder = self._history.last.holder
        now = time.monotonic()
        if holder == self._server and not self._is_first:
            if now - self._written >= _BEAT_SECONDS:
                self._write("beat")
        elif holder in (None, self._server) or now - self._heard > _LEASE_SECONDS:
            # At the first look a holder of this name is the server that had this directory before.
            self._write("claim")
        self._is_first = False
        self._set_held(held=self._history.last.holder == self._server)

    def _write(self, kind: str) -> None:
        record = {"kind": kind, "server": self._server, "follows": self._history.last.offset}
        self._written = time.monotonic()
        self._log.append(self._topic, [(0, time.time_ns() // 1_000_000, None, json.dumps(record).encode(), ())])
        self._read()

    def _read(self) -> None:
        target = self._topic, 0
        # Old records are deleted, also while this process is frozen.
        self._position = max(self._position, self._log.begin_offsets([target])[target])
        while found := self._log.read(*target, self._position):
            for offset, _, _, value, _ in found:
                self._position = offset + 1
                try:
                    counts = self._history.apply(offset, json.loads(value or b"null"))
                except (ValueError, LookupError, TypeError) as error:
                    logger.error("%s, offset %d: left out: %s", self._topic, offset, error)
                    continue
                if counts:
                    self._heard = time.monotonic()

    def _set_held(self, *, held: bool) -> None:
        if held != self.is_held:
            self.is_held = held
            logger.info("this server %s the queries", "runs" if held else "no longer runs")
            self.tell()
