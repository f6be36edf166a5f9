"""The graph as data: nodes, validation, sub-topologies, internal topics and their partitions, ``describe()``.

Start with ``topology`` (the public calls), then ``nodes`` (what they make), ``graph`` (what follows from it).

| module | |
|---|---|
| ``topology``, ``graph_writer`` | the public calls, and the rules for adding nodes |
| ``nodes``, ``operations``, ``graph`` | the topology as data, and what follows from it |
| ``node_checks`` | checks of arguments |
| ``subtopologies``, ``partitions``, ``levels`` | parts, their partitions, and the order in which a batch runs them |
| ``describe``, ``render``, ``svg`` | ``describe()``, and pictures |
| ``outline``, ``matching`` | a topology without functions, and the matching of two of them |
| ``queryable_stores``, ``offset_reset`` | stores for queries; the start of a source without a committed offset |
| ``wire``, ``murmur3``, ``java_order`` | formats, a hash and orders that Kafka Streams defines |
"""

from headrace.topology.describe import (
    GlobalStoreDescription,
    NodeDescription,
    ProcessorDescription,
    SinkDescription,
    SourceDescription,
    SubtopologyDescription,
    TopologyDescription,
)
from headrace.topology.nodes import GlobalStore, InternalTopic, Node, ProcessorNode, SinkNode, SourceNode
from headrace.topology.offset_reset import AutoOffsetReset
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology

__all__ = [
    "AutoOffsetReset",
    "GlobalStore",
    "GlobalStoreDescription",
    "InternalTopic",
    "Node",
    "NodeDescription",
    "ProcessorDescription",
    "ProcessorNode",
    "SinkDescription",
    "SinkNode",
    "SourceDescription",
    "SourceNode",
    "Subtopology",
    "SubtopologyDescription",
    "Topology",
    "TopologyDescription",
]
