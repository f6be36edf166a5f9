"""The nodes of a topology: frozen values that name their parents, and what else a topology is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from headrace.processor import TopicNameExtractor
from headrace.serdes import Serde
from headrace.state import StoreBuilder
from headrace.topology.offset_reset import AutoOffsetReset
from headrace.topology.operations import Operation

# What they take and return is the user's; see TimestampExtractor and StreamPartitioner for the shapes.
Extractor: TypeAlias = Callable[..., int]
Partitioner: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Reads topics, given by name or by a pattern.

    >>> SourceNode("orders", pattern=re.compile("orders-.*")).reads("orders-eu")
    True
    """

    name: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: Extractor | None = None
    offset_reset: AutoOffsetReset | None = None

    parents: ClassVar[tuple[str, ...]] = ()

    def reads(self, topic: str) -> bool:
        """Tells whether records of ``topic`` come in here; a pattern must match the whole name."""
        return topic in self.topics or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    """Runs an operation on the records of its parents."""

    name: str
    parents: tuple[str, ...]
    operation: Operation
    stores: tuple[str, ...] = ()
    """Stores the operation may use, in the order in which they were connected."""


@dataclass(frozen=True, slots=True)
class SinkNode:
    """Writes the records of its parents to one topic, or to the topic that an extractor names for each record."""

    name: str
    parents: tuple[str, ...]
    topic: str | None = None
    topic_extractor: TopicNameExtractor | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: Partitioner | None = None
    serdes_from: str | None = None
    """The option that names its serdes, for messages; ``{}`` stands for key or value."""


Node: TypeAlias = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True, slots=True)
class GlobalStore:
    """A store of which every task sees the whole, with the source and the processor that keep it up to date."""

    builder: StoreBuilder
    source: str
    processor: str
    topic: str
    reprocess_on_restore: bool = True
    """Whether restoring runs the processor; otherwise records go from the topic into the store as they are."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the topology itself writes and reads; at run time the application's id comes before its name.

    >>> InternalTopic("by-user-repartition").full_name("shop")
    'shop-by-user-repartition'
    """

    CONFIG: ClassVar[Mapping[str, str]] = {
        "cleanup.policy": "delete",
        "segment.bytes": "52428800",
        "retention.ms": "-1",
        "message.timestamp.type": "CreateTime",
    }
    """Settings of the topic: nothing expires by itself, because consumed records are purged after each commit."""

    name: str
    partitions: int | None = None
    enforced: bool = False
    """Whether the number of partitions was asked for, so that co-partitioning must not change it."""

    def full_name(self, application_id: str) -> str:
        """Returns the topic's name in the log."""
        return f"{application_id}-{self.name}"


@dataclass(frozen=True, slots=True)
class ImplicitNames:
    """Names that were generated for one operation because the user gave none; they change with the topology."""

    changelog_topic: str | None = None
    state_store: str | None = None
    repartition_topic: str | None = None
