"""Rows of changelogs that Kafka Streams has written: whether the topology reads them as they were meant.

A serde that writes a key in other bytes than Java's finds none of its rows, and says nothing; so all keys are read and
written once before the application changes hands.
"""

from __future__ import annotations

from typing import Any

from headrace.batches.layout import Layout
from headrace.change.changelog_rows import read_pages
from headrace.change.partition_keys import partition_key_of, stored_key_of
from headrace.change.takeover.kafka_streams_application import StoppedKafkaStreams, Tell
from headrace.errors import ChangeRefusedError, StreamsError
from headrace.serdes import Serde, Serdes
from headrace.state import StoreBuilder
from headrace.topics.log import Raw, TopicLog
from headrace.topics.partitioner import partition_for
from headrace.topology.nodes import ProcessorNode, SinkNode
from headrace.topology.operations import SubscriptionSend, TableTransformValues, UserProcessor
from headrace.topology.subtopologies import Subtopology

_SUPPRESS_VERSION = ("v", b"\3")
_SUBSCRIPTION_VERSION = 1
_VERSION_BITS = 0x7F
_KINDS_OF_DSL = frozenset(
    {"timestamped_key_value", "versioned", "timestamped_window", "session", "unmatched", "buffer", "subscription"}
)
"""Stores that are keyed by the key of the record, unless a processor of one's own writes them."""


def check_rows(legacy: StoppedKafkaStreams, log: TopicLog, tell: Tell) -> dict[str, int]:
    """Checks the changelogs of all stores; returns how many records each has."""
    counts: dict[str, int] = {}
    layout = legacy.layout
    for place in layout.tasks:
        for store, topic in place.changelogs.items():
            if store not in layout.changelogs:
                continue
            target = (topic, place.id.partition)
            check = _Check(layout, layout.parts[place.id.subtopology], store, topic, place.id.partition)
            for page in read_pages(log, target, legacy.begins[target], legacy.ends[target]):
                counts[store] = counts.get(store, 0) + len(page)
                check(page)
            counts.setdefault(store, 0)
        tell(f"task {place.name}: rows are readable")
    return counts


class _Check:
    """Checks of the rows of one store."""

    def __init__(self, layout: Layout, part: Subtopology, store: str, topic: str, partition: int) -> None:
        config = layout.config
        self._builder: StoreBuilder = layout.topology.store_builders[store]
        self._place, self._partition = f"{topic}/{partition}", partition
        self._application = config.application_id
        is_own = self._builder.kind == "custom"
        self._key_of = None if is_own else stored_key_of(layout.topology, store)
        self._partition_key_of = partition_key_of(layout.topology, store, config)
        self._keys = _Rewrite(self._builder.key_serde or config.default_key_serde or Serdes.string(), topic, "key")
        values = self._builder.value_serde or config.default_value_serde or Serdes.json()
        self._values = _Rewrite(values, topic, "value") if _is_hashed(layout, part, self._builder) else None
        self._partitions = layout.task_count(part) if _is_spread_by_us(layout, part, self._builder) else 0

    def __call__(self, page: list[Raw]) -> None:
        for offset, _, key, value, headers in page:
            if key is None:
                continue
            if value is not None:
                self._check_format(offset, value, headers)
            if self._key_of is not None:
                self._check_key(offset, self._key_of(key))
            if self._partitions:
                self._check_partition(offset, self._partition_key_of(key))
            if value is not None and self._values is not None and self._values.differs(value):
                self._refuse(
                    offset,
                    f"the value {value!r} is written as {self._values.shown(value)} by the topology's serde: a "
                    "foreign-key join compares hashes of these bytes; use a serde that writes what Java's does",
                )

    def _check_format(self, offset: int, value: bytes, headers: Any) -> None:
        if self._builder.kind == "suppress" and _SUPPRESS_VERSION not in headers:
            found = dict(headers).get("v")
            version = 0 if not found else found[0]
            self._refuse(
                offset,
                f"a suppressed row is in the format {version}, of a Kafka Streams before 2.5.1, and only format 3 can "
                "be read; run a newer Kafka Streams until all such rows are emitted",
            )
        if self._builder.kind == "subscription" and value[0] & _VERSION_BITS > _SUBSCRIPTION_VERSION:
            version = value[0] & _VERSION_BITS
            self._refuse(
                offset,
                f"a subscription of a foreign-key join is in the format {version}, and only 0 and 1 are known; it is "
                "of a newer Kafka Streams than 4.1",
            )

    def _check_key(self, offset: int, key: bytes) -> None:
        if self._keys.differs(key):
            self._refuse(
                offset,
                f"the key {key!r} is written as {self._keys.shown(key)} by the topology's serde, so its row would "
                "never be found; use the serde that Kafka Streams used",
            )

    def _check_partition(self, offset: int, key: bytes) -> None:
        if partition_for(key, self._partitions) != self._partition:
            self._refuse(
                offset,
                f"the key {key!r} belongs into partition {partition_for(key, self._partitions)}: Kafka Streams has "
                "used another partitioner; give the topology the same one",
            )

    def _refuse(self, offset: int, why: str) -> None:
        message = (
            f"application '{self._application}': store '{self._builder.name}', record {offset} of {self._place}: {why}"
        )
        raise ChangeRefusedError(message)


class _Rewrite:
    """Bytes through a serde and back; those seen last are remembered, because keys come again."""

    def __init__(self, serde: Serde[Any], topic: str, what: str) -> None:
        self._read = serde.deserializer(topic, is_key=what == "key")
        self._write = serde.serializer(topic, is_key=what == "key")
        self._fine: set[bytes] = set()

    def differs(self, data: bytes) -> bool:
        if data in self._fine:
            return False
        if self.shown(data) != repr(data):
            return True
        if len(self._fine) < 100_000:
            self._fine.add(data)
        return False

    def shown(self, data: bytes) -> str:
        try:
            return repr(self._write(self._read(data)))
        except StreamsError as error:
            return f"nothing ({error})"


def _is_hashed(layout: Layout, part: Subtopology, builder: StoreBuilder) -> bool:
    """Whether rows are the left side of a foreign-key join, which compares hashes of their bytes."""
    nodes = [layout.topology.nodes[name] for name in part.nodes]
    sends = any(isinstance(node, ProcessorNode) and isinstance(node.operation, SubscriptionSend) for node in nodes)
    return sends and builder.kind in {"timestamped_key_value", "versioned"}


def _is_spread_by_us(layout: Layout, part: Subtopology, builder: StoreBuilder) -> bool:
    """Whether rows lie where a repartition of the topology has sent their keys, by the usual partitioner."""
    topics = set(part.repartition_topics)
    sinks = [node for node in layout.topology.nodes.values() if isinstance(node, SinkNode) and node.topic in topics]
    is_ours = bool(sinks) and all(node.partitioner is None for node in sinks)
    return is_ours and builder.kind in _KINDS_OF_DSL and builder.name not in _of_processors(layout, part)


def _of_processors(layout: Layout, part: Subtopology) -> set[str]:
    """Returns the stores that processors of the user's write, under whichever keys."""
    nodes = [layout.topology.nodes[name] for name in part.nodes]
    return {
        store
        for node in nodes
        if isinstance(node, ProcessorNode) and isinstance(node.operation, UserProcessor | TableTransformValues)
        for store in node.stores
    }
