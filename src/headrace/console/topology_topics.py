"""Topics as a topology knows them: role and serdes, for the console."""

from __future__ import annotations

from headrace.config import StreamsConfig
from headrace.console.topic_browser import TopicSerdes
from headrace.serdes.base import resolved
from headrace.state.stores.suppliers import WindowSupplier
from headrace.topology.nodes import SinkNode
from headrace.topology.queryable_stores import changelogs_of
from headrace.topology.topology import Topology
from headrace.views.viewed_stores import viewed_stores


class TopologyTopics:
    """Topics as an application uses them; see ``KnownTopics``."""

    def __init__(self, topology: Topology, config: StreamsConfig) -> None:
        self._topology = topology
        self._config = config

    def role(self, topic: str) -> str:
        application = self._config.application_id
        if topic in changelogs_of(self._topology, application).values():
            return "changelog"
        if topic in self._topology.internal_topics(application) or topic == f"{application}-views":
            return "internal"
        if any(source.reads(topic) for source in self._topology.source_nodes):
            return "input"
        written = {sink.topic for sink in self._sinks()} | {self._config.errors_dead_letter_queue_topic_name}
        return "output" if topic in written else "other"

    def _sinks(self) -> list[SinkNode]:
        return [node for node in self._topology.nodes.values() if isinstance(node, SinkNode)]

    def serdes(self, topic: str) -> TopicSerdes:
        topology, config = self._topology, self._config
        defaults = config.default_key_serde, config.default_value_serde
        if topic == config.errors_dead_letter_queue_topic_name:
            # What is in there is there because it could not be read.
            return None, None
        for store in viewed_stores(topology, config.application_id).values():
            if store.topic == topic and not store.is_global:
                builder = store.builder
                # The bytes of a window stand behind those of the key.
                plain = not isinstance(builder.supplier, WindowSupplier) and builder.kind != "session"
                keys = resolved(builder.key_serde, defaults[0]) if plain else None
                return keys, resolved(builder.value_serde, defaults[1])
        for source in topology.source_nodes:
            if source.reads(topic):
                return resolved(source.key_serde, defaults[0]), resolved(source.value_serde, defaults[1])
        for sink in self._sinks():
            if sink.topic == topic:
                return resolved(sink.key_serde, defaults[0]), resolved(sink.value_serde, defaults[1])
        return None, None
