"""Topics as the catalogue knows them: role and serdes, for the console."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.console.topic_browser import TopicSerdes
from headrace.serdes import Serde, Serdes
from headrace.sql.catalog import Catalog, SourceDefinition
from headrace.sql.catalog.internal_topics import is_internal
from headrace.sql.types import SqlBaseType
from headrace.sql.types.schema import Namespace

# Any: a serde for each type of columns.
_KEYS: dict[SqlBaseType, Serde[Any]] = {
    SqlBaseType.INTEGER: Serdes.integer(),
    SqlBaseType.BIGINT: Serdes.long(),
    SqlBaseType.DOUBLE: Serdes.double(),
    SqlBaseType.STRING: Serdes.string(),
}


class CatalogTopics:
    """Topics as the streams and tables of a server use them; see ``KnownTopics``."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def _sources(self, topic: str) -> list[SourceDefinition]:
        return [source for _, source in sorted(self._catalog().sources.items()) if source.topic == topic]

    def role(self, topic: str) -> str:
        """Returns the streams and tables that it holds."""
        named = ", ".join(f"{source.kind.lower()} {source.name}" for source in self._sources(topic))
        return named or ("internal" if is_internal(topic) else "other")

    def serdes(self, topic: str) -> TopicSerdes:
        """Returns how keys are read whose bytes nobody could guess; all else is guessed."""
        for source in self._sources(topic):
            keys = [column for column in source.schema if column.namespace is Namespace.KEY]
            if source.key_format == "KAFKA" and source.window is None and len(keys) == 1:
                return _KEYS.get(keys[0].type.base), None
        return None, None
