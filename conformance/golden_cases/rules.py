"""The declared differences between micro-batches with a task per sub-topology and the driver that recorded the cases.

Kafka's test driver runs all sub-topologies in one task and commits after every record. Spark, like a real Kafka Streams
application, has a task per sub-topology, and commits once per micro-batch. A rule names a cause and says where in a
case results may differ because of it. A case falls under rules only if

- without their causes, and nothing else changed, micro-batches give all that was recorded, record by record;
- nothing differs that they do not touch;
- what they touch keeps what they say that it keeps: by the rule, not by the case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from golden_cases.case import GoldenNode
from golden_cases.graph import PROCESSORS, CaseGraph
from golden_cases.undone import Cause


class Keeps(Enum):
    """What stays as recorded in a topic that a rule touches; a store keeps its rows where a topic keeps its table."""

    TABLE = "the last value per key"
    RECORDS = "the records of each step, perhaps in another order"
    ALL_BUT_VALUES = "the records of each step, with other values"
    KEYS = "the keys"
    NOTHING = "nothing that can be told from the topology alone"


@dataclass(frozen=True)
class Rule:
    """A reason for which results may differ, and where."""

    name: str
    reason: str
    cause: Cause
    touches: Callable[[CaseGraph], set[str]]
    """Nodes at which it begins to have an effect; none if it does not apply to the case."""
    keeps: Keeps
    """What stays the same, except behind what ``loses`` says."""
    loses: Callable[[CaseGraph, GoldenNode], bool]
    """Whether an operation's last results depend on what the rule changes in its input."""
    unless: str
    """The reason for ``loses``."""
    itself: bool = True
    """Whether a node at which the rule begins can be the first that loses."""

    def touched(self, graph: CaseGraph) -> set[str]:
        """Returns the nodes whose results may differ."""
        return graph.below(self.touches(graph))

    def lost(self, graph: CaseGraph) -> set[str]:
        """Returns the nodes at which nothing is certain to stay the same."""
        return graph.below(self.touches(graph), through=partial(self.loses, graph), itself=self.itself)


_TIME_IN_VALUES = frozenset({"clocks", "count_reset"})
_TIME_IN_TICKS = frozenset({"stream_time_tick", "two_ticks"})
_TIME_IN_FLOW = frozenset({"buffer_flush", "late_split"})
# Each record by itself, or the last one per key: which others there are makes no difference to the last result.
_RECORD_BY_RECORD = frozenset({"pass", "tag_headers", "shift_time", "twice", "fan_out", "global_lookup", "dedup"})
_FOLDS = frozenset({"reduce", "aggregate", "cogroup", "table_reduce", "table_aggregate"})


def _folds_updates(graph: CaseGraph, node: GoldenNode) -> bool:
    if node["op"] == "count":
        # The count of a table takes back what it has counted before, that of a stream does not.
        group: str = graph.nodes[node["of"][0]]["op"]
        return group != "table_group_by"
    return node["op"] in _FOLDS or (node["op"] in PROCESSORS and node["processor"] not in _RECORD_BY_RECORD)


def _sees_order(graph: CaseGraph, node: GoldenNode) -> bool:
    unmatched = node.get("right") == "S" and node["op"] != "join"
    return unmatched or _folds_updates(graph, node) or node["op"] == "to_table"


# Operations whose results have the same keys whatever the values of their input and whenever it comes.
_HANDS_ON = frozenset({"map_values", "peek", "to", "add_sink", "add_state_store"})
_HANDS_ON_BY_PROCESSOR = (
    frozenset({"pass", "count_per_key", "scan", "shift_time", "twice"}) | _TIME_IN_VALUES | _TIME_IN_TICKS
)


def _may_hold_back(_graph: CaseGraph, node: GoldenNode) -> bool:
    if node["op"] in PROCESSORS:
        return node["processor"] not in _HANDS_ON_BY_PROCESSOR
    return node["op"] not in _HANDS_ON or "topic_fn" in node


def _always(_graph: CaseGraph, _node: GoldenNode) -> bool:
    return True


def _stream_time(processors: frozenset[str], graph: CaseGraph) -> set[str]:
    if len(graph.parts) < 2:
        return set()
    return {name for name, node in graph.nodes.items() if node.get("processor") in processors}


def _commit_interval(graph: CaseGraph) -> set[str]:
    if not (graph.has_cache and graph.has_edges):
        return set()
    return {name for name, node in graph.nodes.items() if graph.is_table(node)}


def _cached_windows(graph: CaseGraph) -> set[str]:
    if not graph.has_cache:
        return set()
    return {name for name, node in graph.nodes.items() if "windows" in node and graph.is_table(node)}


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


_STREAM_TIME = (
    "Stream time is per task. The recording driver runs all sub-topologies in one task, so a processor saw the time of "
    "records that never reached it. "
)
_BY_VALUE_OR_TIME = "An operation that looks at values or times, or sends records elsewhere, may hand on others."

RULES = (
    Rule(
        "stream-time-values",
        f"{_STREAM_TIME}These processors write it, or a count since it last passed a mark, into the values.",
        Cause.OWN_TIME,
        partial(_stream_time, _TIME_IN_VALUES),
        Keeps.ALL_BUT_VALUES,
        _may_hold_back,
        _BY_VALUE_OR_TIME,
        itself=False,
    ),
    Rule(
        "stream-time-ticks",
        f"{_STREAM_TIME}These processors forward something whenever it passes a mark.",
        Cause.OWN_TIME,
        partial(_stream_time, _TIME_IN_TICKS),
        Keeps.KEYS,
        _may_hold_back,
        _BY_VALUE_OR_TIME,
        itself=False,
    ),
    Rule(
        "stream-time-flow",
        f"{_STREAM_TIME}By it these processors decide when and where to a record goes on.",
        Cause.OWN_TIME,
        partial(_stream_time, _TIME_IN_FLOW),
        Keeps.NOTHING,
        _always,
        "A record that has not gone on, or has gone elsewhere, is missing here and is too much there.",
    ),
    Rule(
        "commit-interval",
        "A record cache is flushed once per micro-batch. Several records that one step sends over a repartition edge "
        "arrive in one micro-batch, so of several updates of a key only the last is forwarded; the recording driver "
        "commits after each record.",
        Cause.ONE_COMMIT,
        _commit_interval,
        Keeps.TABLE,
        _folds_updates,
        "An operation that folds updates into a value has folded fewer of them.",
        itself=False,
    ),
    Rule(
        "cached-windows",
        "Kafka Streams' cache of a window or session store goes on showing rows that the store itself has expired, as "
        "long as the process lives. Here a micro-batch starts from what was committed.",
        Cause.FRESH_CACHE,
        _cached_windows,
        Keeps.NOTHING,
        _always,
        "A late record found a row that is gone here, and began a new one.",
    ),
    Rule(
        "order",
        "A micro-batch runs level by level. Where tables that one step changes meet again behind repartition edges, "
        "the recording driver takes the changes from its queues record by record. An overtaken answer of a foreign-key "
        "join that takes a result back is asked for again, where the recording driver, like Kafka Streams, drops it.",
        Cause.LEVELS,
        _order,
        Keeps.TABLE,
        _folds_updates,
        "An operation that folds updates into a value has folded them in another order.",
    ),
    Rule(
        "stream-order",
        "Where streams meet behind repartition edges, or two sub-topologies write one topic, records of one step and "
        "one time come in the order of topics and tasks; the recording driver takes them in the order of its queues. "
        "They are events, so the last one per key may be another.",
        Cause.LEVELS,
        _stream_order,
        Keeps.RECORDS,
        _sees_order,
        "Order decides what an operation that folds records gives, and whether a record of a left or outer join has "
        "met its match in time.",
    ),
)
