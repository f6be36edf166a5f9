"""Answers to statements that change something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headrace.sql.server.entities.entity import Entity


@dataclass(frozen=True)
class CommandStatus:
    """Status of a command: SUCCESS, ERROR, or TERMINATED for the query that it started."""

    status: str
    message: str
    query_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class CurrentStatus(Entity):
    """A command and its status."""

    kind: ClassVar[str] = "currentStatus"
    command_id: str
    command_status: CommandStatus
    command_sequence_number: int


@dataclass(frozen=True, kw_only=True)
class TerminatedQuery(Entity):
    """A push query that was ended."""

    kind: ClassVar[str] = "terminate_query"
    query_id: str
    was_terminated: bool


@dataclass(frozen=True, kw_only=True)
class WarningEntity(Entity):
    """A statement that had nothing to do, and why."""

    kind: ClassVar[str] = "warning_entity"
    message: str


@dataclass(frozen=True, kw_only=True)
class AssertedTopic(Entity):
    """A topic is there, or is not, as was asserted."""

    kind: ClassVar[str] = "assert_topic"
    topic_name: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class AssertedSchema(Entity):
    """A schema is there, or is not, as was asserted."""

    kind: ClassVar[str] = "assert_schema"
    subject: str | None
    id: int | None
    exists: bool
