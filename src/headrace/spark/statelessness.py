"""Which topologies need nothing of Spark but a plain map."""

from __future__ import annotations

from headrace.config import StreamsConfig
from headrace.timestamps import FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp, WallclockTimestampExtractor
from headrace.topology.nodes import ProcessorNode, SourceNode
from headrace.topology.operations import UserProcessor
from headrace.topology.topology import Topology

# These look at the record alone; all others may look at the time of the partition, which has to be remembered.
_ALONE = (FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp, WallclockTimestampExtractor)


def needs_state(topology: Topology, config: StreamsConfig) -> bool:
    """Returns whether anything has to be remembered from one micro-batch to the next, or sent from task to task.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> stream = builder.stream("in").filter(lambda key, value: value > 0)
    >>> stream.to("out")
    >>> needs_state(builder.build(), StreamsConfig())
    False
    >>> stream.group_by_key().count().to_stream().to("counts")
    >>> needs_state(builder.build(), StreamsConfig())
    True
    """
    if topology.state_stores or topology.internal_topics(config.application_id):
        return True
    for node in topology.nodes.values():
        if isinstance(node, ProcessorNode) and isinstance(node.operation, UserProcessor):
            return True
        if isinstance(node, SourceNode):
            extractor = node.timestamp_extractor or config.default_timestamp_extractor
            if type(extractor) not in _ALONE:
                return True
    return False
