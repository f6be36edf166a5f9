"""The graph as data: nodes, validation, sub-topologies, internal topics and their partitions, ``describe()``.

Start with ``topology`` (the public calls), then ``nodes`` (what they make), ``graph`` (what follows from it).
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
