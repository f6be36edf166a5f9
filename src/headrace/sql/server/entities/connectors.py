"""Answers to statements about connectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.sql.server.entities.descriptions import SourceDetails
from headrace.sql.server.entities.entity import Entity


@dataclass(frozen=True, kw_only=True)
class ConnectorCreated(Entity):
    """A new connector, as the worker describes it."""

    kind: ClassVar[str] = "connector_info"
    info: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ConnectorDropped(Entity):
    """A connector that is gone."""

    kind: ClassVar[str] = "drop_connector"
    connector_name: str


@dataclass(frozen=True)
class ConnectorSummary:
    """A connector in a list."""

    name: str
    type: str
    """``source``, ``sink`` or ``unknown``."""
    class_name: str | None = None
    state: str | None = None
    """The connector's, and how many of its tasks run."""


@dataclass(frozen=True, kw_only=True)
class ConnectorList(Entity):
    """All connectors of the worker."""

    kind: ClassVar[str] = "connector_list"
    connectors: tuple[ConnectorSummary, ...]


@dataclass(frozen=True)
class ConnectorPlugin:
    """Plugin that connectors can be made of."""

    class_name: str
    type: str
    version: str | None


@dataclass(frozen=True, kw_only=True)
class ConnectorPlugins(Entity):
    """All classes of connectors that the worker has."""

    kind: ClassVar[str] = "connector_plugins_list"
    connectors_plugins: tuple[ConnectorPlugin, ...]


@dataclass(frozen=True, kw_only=True)
class ConnectorDescription(Entity):
    """One connector, its tasks, its topics, and the sources on these topics."""

    kind: ClassVar[str] = "connector_description"
    connector_class: str
    status: Mapping[str, Any]
    sources: tuple[SourceDetails, ...]
    topics: tuple[str, ...]
