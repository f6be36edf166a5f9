"""Partition counts of internal topics and sub-topologies, and the check of co-partitioning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from headrace.errors import MissingSourceTopicError, TopologyError, describe_value, did_you_mean
from headrace.topology.node_checks import invalid
from headrace.topology.nodes import InternalTopic, Node, ProcessorNode, SourceNode
from headrace.topology.operations import TableSource
from headrace.topology.subtopologies import Subtopology

Group = tuple[str, ...]


def merge_groups(groups: Iterable[Collection[str]]) -> tuple[Group, ...]:
    """Joins groups that share a member, because being co-partitioned is transitive.

    >>> merge_groups([("a", "b"), ("c", "d"), ("b", "c"), ("e", "f")])
    (('a', 'b', 'c', 'd'), ('e', 'f'))
    """
    merged: list[dict[str, None]] = []
    for group in groups:
        joined = dict.fromkeys(group)
        touched = [other for other in merged if not joined.keys().isdisjoint(other)]
        if not touched:
            merged.append(joined)
            continue
        for other in touched:
            touched[0].update(other)
        touched[0].update(joined)
        merged = [other for other in merged if other is touched[0] or not any(other is each for each in touched)]
    return tuple(tuple(group) for group in merged if group)


class PartitionCounts:
    """Works out the number of partitions of everything a topology reads, given that of the topics of others."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        subtopologies: Sequence[Subtopology],
        internal: Mapping[str, InternalTopic],
        external: Mapping[str, int],
        global_topics: Collection[str],
    ) -> None:
        _check_external(external)
        self._nodes = nodes
        self._internal = internal
        self._matchable = [topic for topic in external if topic not in internal and topic not in global_topics]
        self._subtopologies = [each for each in subtopologies if not each.is_global]
        self.counts: dict[str, int] = {}
        """Partitions by source topic; internal topics without the application's id."""
        for subtopology in self._subtopologies:
            for topic in self.inputs(subtopology):
                if topic in internal:
                    continue
                if topic not in external:
                    message = (
                        f"sub-topology {subtopology.id}: the topics it reads must exist; '{topic}' does not"
                        f"{did_you_mean(topic, external)}; create it before the application starts"
                    )
                    raise MissingSourceTopicError(message)
                self.counts[topic] = external[topic]
        self._count_internal_topics()

    def inputs(self, subtopology: Subtopology) -> tuple[str, ...]:
        """Returns the topics that a sub-topology reads, those that match its patterns included."""
        matched = [t for pattern in subtopology.source_patterns for t in self._matchable if pattern.fullmatch(t)]
        return tuple(dict.fromkeys([*subtopology.source_topics, *matched]))

    def topics_of(self, sources: Iterable[str]) -> Group:
        """Returns the topics that source nodes read."""
        topics: dict[str, None] = {}
        for name in sources:
            node = self._nodes[name]
            if isinstance(node, SourceNode):
                topics.update(dict.fromkeys(node.topics or [t for t in self._matchable if node.reads(t)]))
        return tuple(topics)

    def tasks(self) -> dict[int, int]:
        """Returns the number of tasks by sub-topology: as many as its widest input has partitions."""
        return {
            each.id: max((self.counts[topic] for topic in self.inputs(each)), default=0) for each in self._subtopologies
        }

    def _count_internal_topics(self) -> None:
        pending: dict[str, None] = {}
        for subtopology in self._subtopologies:
            for topic in subtopology.repartition_topics:
                if (fixed := self._internal[topic].partitions) is not None:
                    self.counts[topic] = fixed
                else:
                    pending[topic] = None
        while pending:
            upstream = {topic: self._upstream(topic) for topic in pending}
            settled = [topic for topic, inputs in upstream.items() if inputs and all(t in self.counts for t in inputs)]
            if not settled:
                # In a cycle nobody knows all of its inputs: the first one that knows some goes by those.
                settled = [topic for topic, inputs in upstream.items() if any(t in self.counts for t in inputs)][:1]
            if not settled:
                where = f"internal topics {_quoted(pending)}"
                requirement = "their number of partitions follows from the topics that their writers read"
                remedy = "create all input topics, and let every pattern match at least one"
                raise invalid(where, requirement, "no such topic is known", remedy)
            for topic in settled:
                self.counts[topic] = max(self.counts[t] for t in upstream[topic] if t in self.counts)
                del pending[topic]

    def _upstream(self, topic: str) -> list[str]:
        return [read for each in self._subtopologies if topic in each.sink_topics for read in self.inputs(each)]

    def enforce(self, registered: Sequence[Group]) -> None:
        """Gives the internal topics of each co-partitioned group one number, or explains why it cannot be done.

        ``registered`` names source nodes. Topics of others decide; among internal topics those with a fixed number do.
        """
        groups = [self.topics_of(sources) for sources in registered]
        for group in merge_groups(groups):
            internal = [topic for topic in group if topic in self._internal]
            fixed = [topic for topic in internal if self._internal[topic].enforced]
            deciding = [topic for topic in group if topic not in self._internal] or fixed
            if len({self.counts[topic] for topic in deciding}) > 1:
                raise self._mismatch(deciding, registered, groups)
            number = self.counts[deciding[0]] if deciding else max(self.counts[topic] for topic in internal)
            for topic in internal:
                if topic in fixed and self.counts[topic] != number:
                    raise self._mismatch([topic, *deciding], registered, groups)
                self.counts[topic] = number

    def _mismatch(self, topics: Sequence[str], registered: Sequence[Group], groups: Sequence[Group]) -> TopologyError:
        for sources, group in zip(registered, groups, strict=True):
            here = [topic for topic in topics if topic in group]
            if len({self.counts[topic] for topic in here}) > 1:
                where, topics = f"join '{_meeting_point(self._nodes, sources)}'", here
                break
        else:
            where = f"topics {_quoted(topics)}"
        found = " and ".join(f"'{topic}' has {_partitions(self.counts[topic])}" for topic in topics)
        return invalid(where, "inputs must be co-partitioned", found, self._remedy(topics))

    def _remedy(self, topics: Sequence[str]) -> str:
        given = [topic for topic in topics if topic not in self._internal]
        if not given:
            return "ask for the same number of partitions in each `Repartitioned`, or leave it out"
        # A table's topic is its changelog, too: only the other side can be moved to another number of partitions.
        tables = [topic for topic in given if self._is_table(topic)]
        wanted = max(self.counts[topic] for topic in tables or given)
        if not tables:
            return f"call `.repartition(Repartitioned(partitions={wanted}))` on one side"
        if len(tables) == len(topics):
            return f"create the topics with {_partitions(wanted)} each"
        return (
            f"call `.repartition(Repartitioned(partitions={wanted}))` on the stream, "
            f"or create {_quoted(tables)} with as many partitions as the stream's topic"
        )

    def _is_table(self, topic: str) -> bool:
        sources = {name for name, node in self._nodes.items() if isinstance(node, SourceNode) and node.reads(topic)}
        return any(
            isinstance(node, ProcessorNode)
            and isinstance(node.operation, TableSource)
            and not sources.isdisjoint(node.parents)
            for node in self._nodes.values()
        )


def check_fixed_numbers(
    nodes: Mapping[str, Node], internal: Mapping[str, InternalTopic], registered: Iterable[Group]
) -> None:
    """Refuses a group of internal topics whose numbers of partitions were all asked for, and differ."""
    for sources in registered:
        topics = [topic for name in sources if isinstance(node := nodes[name], SourceNode) for topic in node.topics]
        numbers = {topic: internal[topic].partitions if topic in internal else None for topic in topics}
        if None not in numbers.values() and len(set(numbers.values())) > 1:
            found = " and ".join(f"'{topic}' has {_partitions(number)}" for topic, number in sorted(numbers.items()))
            remedy = "ask for the same number of partitions in each `Repartitioned`, or leave it out"
            where = f"join '{_meeting_point(nodes, sources)}'"
            raise invalid(where, "inputs must be co-partitioned", found, remedy)


def _check_external(external: Mapping[str, int]) -> None:
    given: object = external
    if not isinstance(given, Mapping):
        where, found = "partition counts", f"found {describe_value(given)}"
        raise invalid(where, "they are a mapping of topics to numbers", found, "pass for example {'orders': 4}")
    for topic, number in external.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            where, found = f"topic '{topic}'", f"found {describe_value(number)}"
            raise invalid(where, "a topic has at least one partition", found, "pass a positive integer")


def _meeting_point(nodes: Mapping[str, Node], sources: Collection[str]) -> str:
    """Returns the first node that sees records of all these sources: the join they were registered for."""
    joined = _first_below(nodes, sources, by_stores=False) or _first_below(nodes, sources, by_stores=True)
    return joined or ", ".join(sources)


def _first_below(nodes: Mapping[str, Node], sources: Collection[str], *, by_stores: bool) -> str | None:
    seen: dict[str, frozenset[str]] = {}
    rows: dict[str, frozenset[str]] = {}
    for node in nodes.values():
        above = frozenset[str]().union(*(seen[parent] for parent in node.parents))
        if by_stores and isinstance(node, ProcessorNode):
            # A join of a stream with a table meets the table only in its store; the first node with it fills it.
            own = above
            above = above.union(*(rows.get(store, frozenset()) for store in node.stores))
            for store in node.stores:
                rows.setdefault(store, own)
        seen[node.name] = above | {node.name} if isinstance(node, SourceNode) else above
        if seen[node.name].issuperset(sources):
            return node.name
    return None


def _partitions(number: int | None) -> str:
    return "1 partition" if number == 1 else f"{number} partitions"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
