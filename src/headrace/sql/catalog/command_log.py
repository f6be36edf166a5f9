"""The command topic: every statement that has changed the catalogue, in the one order that all servers follow.

A statement is tried out before it is appended, so a bad one never gets here. Two servers may still append statements at
once that do not go together: then the later one fails, on every server alike, and is left out by all.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from headrace.errors import TopicExistsError
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_VERSION = 1


def _is_mapping_of(kind: type) -> Callable[[object], bool]:
    return lambda found: isinstance(found, dict) and all(isinstance(each, kind) for each in found.values())


def _is_text(found: object) -> bool:
    return isinstance(found, str)


_PARTS: Mapping[str, Callable[[object], bool]] = {
    "id": _is_text,
    "statement": _is_text,
    "settings": _is_mapping_of(object),
    "topics": _is_mapping_of(int),
    "schemas": _is_mapping_of(int),
    "deletes": _is_mapping_of(str),
}


@dataclass(frozen=True)
class Command:
    """A statement that was accepted, and all that decides what it does."""

    text: str
    """With its variables replaced."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """What was set for it beyond the settings of the server."""
    topics: Mapping[str, int] = field(default_factory=dict)
    """The partitions of the topics that it asked for."""
    schemas: Mapping[str, int] = field(default_factory=dict)
    """The numbers of the registered schemas that columns were inferred from, by subject."""
    deletes: Mapping[str, str] = field(default_factory=dict)
    """The topics that it deletes, with what tells them from others of the same names."""
    id: str = field(default_factory=lambda: uuid4().hex)

    def to_bytes(self) -> bytes:
        """Returns the command as it is written.

        >>> command = Command("DROP STREAM S DELETE TOPIC", {"a": 1}, {"in": 4}, {"in-value": 3}, {"in": "9"})
        >>> Command.from_bytes(command.to_bytes()) == command
        True
        """
        content = {
            "version": _VERSION,
            "id": self.id,
            "statement": self.text,
            "settings": dict(self.settings),
            "topics": dict(self.topics),
            "schemas": dict(self.schemas),
            "deletes": dict(self.deletes),
        }
        return json.dumps(content).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Command:
        """Returns the command that was written; raises ``ValueError`` if it is none of this version."""
        try:
            content: Any = json.loads(data)
        except RecursionError as error:
            message = "no command: it is nested too deeply"
            raise ValueError(message) from error
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            message = f"no command of version {_VERSION}: {data[:200]!r}"
            raise ValueError(message)
        content = {"schemas": {}, "deletes": {}, **content}
        for name, is_right in _PARTS.items():
            if not is_right(content.get(name)):
                message = f"the command has no '{name}', or a wrong one"
                raise ValueError(message)
        return cls(
            content["statement"],
            content["settings"],
            content["topics"],
            content["schemas"],
            content["deletes"],
            content["id"],
        )


def command_topic(service_id: str) -> str:
    """Returns the name of the topic that all servers of one service share.

    >>> command_topic("default_")
    '_headrace_sql_default__commands'
    """
    return f"_headrace_sql_{service_id}_commands"


class CommandLog:
    """The commands of a service in a log."""

    def __init__(self, log: TopicLog, service_id: str) -> None:
        self._log = log
        self.topic = command_topic(service_id)

    def create(self) -> None:
        """Makes the topic if it is not there."""
        with suppress(TopicExistsError):
            # Nothing of it may ever be removed: a new server needs it from the beginning.
            self._log.create_topic(self.topic, configs={"cleanup.policy": "delete", "retention.ms": -1})

    @property
    def end(self) -> int:
        """The offset that the next command gets."""
        return self._log.end_offsets([(self.topic, 0)])[self.topic, 0]

    def append(self, command: Command) -> int:
        """Writes a command; returns its offset."""
        now_ms = time.time_ns() // 1_000_000
        written = self._log.append(self.topic, [(0, now_ms, command.id.encode(), command.to_bytes(), ())])
        return written[0][0]

    def read(self, start: int) -> list[tuple[int, Command | None]]:
        """Returns commands from an offset on, an empty list at the end; None stands for one that cannot be read."""
        found: list[tuple[int, Command | None]] = []
        for offset, _, _, value, _ in self._log.read(self.topic, 0, start):
            try:
                found.append((offset, Command.from_bytes(value or b"")))
            except ValueError as error:
                logger.error("%s, offset %d: left out: %s", self.topic, offset, error)
                found.append((offset, None))
        return found

    def wait(self, position: int, timeout: timedelta) -> bool:
        """Waits until there is something at the position; False when the time is over."""
        return self._log.wait_for_data({(self.topic, 0): position}, timeout)
