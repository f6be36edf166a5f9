"""Sink request: the target of a query's rows, as the statement around it names it."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.sql.catalog import SourceDefinition
from headrace.sql.catalog.with_properties import WithProperties


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """The sink of ``CREATE STREAM|TABLE … AS SELECT`` or ``INSERT INTO … SELECT``."""

    name: str
    kind: str
    """STREAM or TABLE."""
    topic: str
    properties: WithProperties = field(default_factory=WithProperties)
    existing: SourceDefinition | None = None
    """The stream that ``INSERT INTO`` writes to; its columns and formats are then given."""
