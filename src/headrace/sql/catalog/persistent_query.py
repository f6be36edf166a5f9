"""A query that runs until it is terminated, and writes what it finds to a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.sql.syntax.statements import CreateAsSelect, InsertInto
from headrace.topology.topology import Topology

if TYPE_CHECKING:
    from headrace.sql.planning.plan import QueryPlan


@dataclass(frozen=True)
class PersistentQuery:
    """One persistent query: its statement, its plan and the topology that carries it out."""

    id: str
    statement: CreateAsSelect | InsertInto
    sink: str
    """The name of the stream or table it writes to."""
    sink_topic: str
    sources: tuple[str, ...]
    """The names of the streams and tables it reads."""
    source_topics: tuple[str, ...]
    plan: QueryPlan
    topology: Topology
    settings: Mapping[str, object] = field(default_factory=dict)
    """What was set when the query was made."""
