"""The declared differences between micro-batches with a task per sub-topology and the driver that recorded the cases.

Kafka's test driver runs all sub-topologies in one task and commits after every record. Spark, like a real Kafka Streams
application, has a task per sub-topology, and commits once per micro-batch. A rule says where in a case the results may
differ for that reason. Everything else must be as recorded; what a rule touches must be exactly what the batched test
driver gives, and, as far as the rule leaves tables alone, still end in the recorded tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from golden_cases.case import GoldenNode
from golden_cases.graph import PROCESSORS, CaseGraph

_SEES_STREAM_TIME = frozenset({"stream_time_tick", "two_ticks", "buffer_flush", "count_reset", "clocks", "late_split"})
# Their results depend on which updates they see, and in which order.
_COUNTS_UPDATES = PROCESSORS | {"reduce", "aggregate", "cogroup", "table_reduce", "table_aggregate"}


@dataclass(frozen=True)
class Rule:
    """A reason for which results may differ, and where."""

    name: str
    reason: str
    touches: Callable[[CaseGraph], set[str]]
    """Nodes at which it begins to have an effect; none if it does not apply to the case."""
    tables: bool
    """Whether the last value per key stays the same: except behind operations that count or order updates."""

    def touched(self, graph: CaseGraph) -> set[str]:
        """Returns the nodes whose results may differ."""
        return graph.below(self.touches(graph))

    def unsettled(self, graph: CaseGraph) -> set[str]:
        """Returns the nodes whose last results may differ, too."""
        starts = self.touches(graph)
        return graph.below(starts, through=_COUNTS_UPDATES) if self.tables else graph.below(starts)


def _stream_time(graph: CaseGraph) -> set[str]:
    if len(graph.parts) < 2:
        return set()
    return {name for name, node in graph.nodes.items() if node.get("processor") in _SEES_STREAM_TIME}


def _commit_interval(graph: CaseGraph) -> set[str]:
    if not (graph.has_cache and graph.has_edges):
        return set()
    return {name for name, node in graph.nodes.items() if graph.is_table(node)}


def _cached_windows(graph: CaseGraph) -> set[str]:
    if not graph.has_cache:
        return set()
    return {name for name, node in graph.nodes.items() if node.get("windows", {}).get("type") == "session"}


def _meets_streams(node: GoldenNode) -> bool:
    return node["op"] == "merge" or node.get("right") == "S"


def _order(graph: CaseGraph) -> set[str]:
    if not graph.has_edges:
        return set()
    return {name for name, node in graph.nodes.items() if len(node["of"]) > 1 and not _meets_streams(node)}


def _stream_order(graph: CaseGraph) -> set[str]:
    if not graph.has_edges:
        return set()
    writers = Counter(topic for part in graph.parts for topic in set(part.sink_topics))
    return {
        name
        for name, node in graph.nodes.items()
        if _meets_streams(node) or (node["op"] == "to" and writers[node["topic"]] > 1)
    }


RULES = (
    Rule(
        "stream-time",
        "Stream time is per task. The recording driver runs all sub-topologies in one task, so a processor saw the "
        "time of records that never reached it.",
        _stream_time,
        tables=False,
    ),
    Rule(
        "commit-interval",
        "A record cache is flushed once per micro-batch. Several records that one step sends over a repartition edge "
        "arrive in one micro-batch, so of several updates of a key only the last is forwarded; the recording driver "
        "commits after each record.",
        _commit_interval,
        tables=True,
    ),
    Rule(
        "cached-windows",
        "Kafka Streams' cache of a session store goes on showing rows that the store itself has expired, as long as "
        "the process lives. Here a micro-batch starts from what was committed.",
        _cached_windows,
        tables=False,
    ),
    Rule(
        "order",
        "A micro-batch runs level by level. Where tables that one step changes meet again behind repartition edges, "
        "the recording driver takes the changes from its queues record by record.",
        _order,
        tables=True,
    ),
    Rule(
        "stream-order",
        "Where streams meet behind repartition edges, or two sub-topologies write one topic, records of one step and "
        "one time come in the order of topics and tasks; the recording driver takes them in the order of its queues. "
        "They are events, so the last one per key may be another.",
        _stream_order,
        tables=False,
    ),
)
