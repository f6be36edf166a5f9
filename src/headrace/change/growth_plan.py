"""Growth of an application: its tasks before and after its inputs get more partitions, and whether that is possible.

Only a whole factor is: then ``hash mod n`` follows from ``hash mod kn``, so tasks only split. A key that was in task
*p* of *n* is in one of the tasks *p*, *p + n*, *p + 2n*, and no task gets keys of two others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.app.description import Description
from headrace.app.topics import external_partitions
from headrace.batches.layout import Layout, TaskPlace
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError, did_you_mean
from headrace.topics.log import Offsets, TopicLog
from headrace.topology.nodes import SinkNode
from headrace.topology.subtopologies import Subtopology
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class StoreGrowth:
    """A store whose rows are moved or rewritten."""

    store: str
    topic: str
    """Its changelog."""
    before: int
    after: int
    """Tasks that share it."""
    is_versioned: bool = False
    left_before: int = 0
    left_after: int = 0
    """Partitions of the left table, if the store keeps subscriptions of a foreign-key join; rows name one of them."""

    @property
    def rewrites(self) -> bool:
        """Whether rows that stay are changed, too."""
        return self.left_before != self.left_after


@dataclass(frozen=True)
class Growth:
    """Partitions and tasks of an application before and after."""

    topology: Topology
    config: StreamsConfig
    external: Mapping[str, int]
    """Partitions of the topics of others before."""
    grown: Mapping[str, int]
    """Inputs that get more, and how many they have then."""

    @cached_property
    def before(self) -> Layout:
        return _layout(self.topology, self.config, self.external)

    @cached_property
    def after(self) -> Layout:
        return _layout(self.topology, self.config, {**self.external, **self.grown})

    @cached_property
    def parts(self) -> list[Subtopology]:
        """Sub-topologies that get more tasks."""
        return [
            part for part in self.before.parts.values() if self.before.task_count(part) != self.after.task_count(part)
        ]

    @cached_property
    def stores(self) -> list[tuple[Subtopology, StoreGrowth]]:
        """Stores with a changelog of their own whose rows are moved or rewritten."""
        found = []
        for part in self.before.parts.values():
            before, after = self.before.task_count(part), self.after.task_count(part)
            for store in part.state_stores:
                topic = self.before.changelogs.get(store)
                if topic is None:
                    continue
                each = StoreGrowth(
                    store,
                    topic,
                    before,
                    after,
                    self.topology.store_builders[store].versioned,
                    *self._left_partitions(store),
                )
                if before != after or each.rewrites:
                    found.append((part, each))
        return found

    @property
    def volatile_stores(self) -> list[str]:
        """Stores without a changelog: they are empty after every start."""
        topics = self.topology.changelog_topics(self.config.application_id)
        return [store for part in self.parts for store in part.state_stores if store not in topics]

    @property
    def internal(self) -> dict[str, int]:
        """Changelogs and back edges that get more partitions."""
        topics = {each.topic: each.after for _, each in self.stores if each.before != each.after}
        for part in self.before.parts.values():
            for short in part.repartition_topics:
                topic = self.before.topic_name(short)
                if topic not in self.before.edges and self.before.partitions[topic] != self.after.partitions[topic]:
                    topics[topic] = self.after.partitions[topic]
        return topics

    def new_tasks(self) -> Iterator[tuple[TaskPlace, TaskPlace]]:
        """Returns each task that is added, and the one whose keys it takes over."""
        for place in self.after.tasks:
            if place.name not in self.before.by_name:
                count = self.before.task_count(self.before.parts[place.id.subtopology])
                yield place, self.before.by_name[f"{place.id.subtopology}_{place.id.partition % count}"]

    def old_tasks(self) -> list[TaskPlace]:
        """Returns the tasks that give rows away, or rewrite them."""
        touched = {part.id for part, _ in self.stores}
        return [place for place in self.before.tasks if place.id.subtopology in touched]

    def stores_of(self, place: TaskPlace) -> list[StoreGrowth]:
        return [each for part, each in self.stores if part.id == place.id.subtopology]

    def _left_partitions(self, store: str) -> tuple[int, int]:
        if self.topology.store_builders[store].kind != "subscription":
            return 0, 0
        # The node that answers when the right table changes has the store, and writes the answers.
        for node in self.topology.processor_nodes:
            if store in node.stores:
                for child in self.topology.children[node.name]:
                    sink = self.topology.nodes[child]
                    if isinstance(sink, SinkNode) and sink.topic is not None:
                        topic = self.before.topic_name(sink.topic)
                        return self.before.partitions[topic], self.after.partitions[topic]
        message = f"the answers of the subscriptions in store '{store}' go nowhere"
        raise AssertionError(message)

    def check(self) -> None:
        """Complains about everything that stands in the way and can be seen without looking at rows."""
        problems = [*self._bad_factors(), *self._check_copartitioned(), *self._check_movable()]
        if problems:
            raise refused(self.config.application_id, problems)

    def _bad_factors(self) -> Iterator[str]:
        tables = {store.topic for store in self.topology.global_stores.values()}
        for topic, after in self.grown.items():
            before = self.external[topic]
            if topic in tables:
                yield (
                    f"'{topic}' is read by a global table, which is made anew from all partitions at once: an old "
                    "value of a key could win over a new one in another partition"
                )
            elif after % before:
                yield (
                    f"'{topic}' has {before} partitions and cannot get {after}: only with a whole multiple, such as "
                    f"{2 * before} or {3 * before}, do tasks split without exchanging keys"
                )

    def _check_copartitioned(self) -> Iterator[str]:
        """Yields inputs that must grow with others: those of a join, and all of a sub-topology with state."""
        groups = list(self.topology.copartition_groups(self.external))
        groups += [
            tuple(dict.fromkeys(topic for _, topic in self.before.sources(part)))
            for part in self.before.parts.values()
            if part.state_stores
        ]
        told: set[str] = set()
        for group in groups:
            inputs = [topic for topic in group if topic in self.external]
            wanted = max((self.grown[topic] for topic in inputs if topic in self.grown), default=0)
            lacking = [topic for topic in inputs if wanted and self.grown.get(topic) != wanted and topic not in told]
            told.update(lacking)
            if lacking:
                leaders = [topic for topic in inputs if self.grown.get(topic) == wanted]
                options = " ".join(f"--topic {topic}={wanted}" for topic in lacking)
                yield (
                    f"{_quoted(lacking)} must have as many partitions as {_quoted(leaders)}, with which "
                    f"{'it is' if len(lacking) == 1 else 'they are'} read: add {options}"
                )

    def _check_movable(self) -> Iterator[str]:
        own = self.before.changelogs
        topics = self.topology.changelog_topics(self.config.application_id)
        # Tasks cannot be counted while inputs of a join do not agree; but such a table is always read from an input.
        for part in self.before.parts.values():
            for store in part.state_stores:
                if store in topics and store not in own and topics[store] in self.grown:
                    yield (
                        f"store '{store}' is restored from '{topics[store]}', the topic that it reads, whose records "
                        "stay in the partitions where they are; build the topology without reusing source topics as "
                        "changelogs, under another application_id"
                    )


def find_growth(
    topology: Topology,
    config: StreamsConfig,
    log: TopicLog,
    known: Description,
    positions: Offsets,
    asked: Mapping[str, int],
) -> Growth:
    """Returns the requested growth, with inputs that have grown already; raises if it is impossible.

    What an application has had before is in its description, and in its positions, not in the log.
    """
    found = external_partitions(topology, config.application_id, log)
    former = _former_counts(topology, known, positions)
    external = {topic: former.get(topic, count) for topic, count in found.items()}
    inputs = {topic for node in topology.source_nodes for topic in found if node.reads(topic)}
    inputs |= {store.topic for store in topology.global_stores.values()}
    problems = []
    for topic, number in asked.items():
        if topic not in inputs:
            problems.append(f"'{topic}' is no topic that the application reads{did_you_mean(topic, sorted(inputs))}")
        elif number < max(found[topic], external[topic]):
            problems.append(
                f"'{topic}' has {found[topic]} partitions, and can never have fewer; {number} were asked for"
            )
    if problems:
        raise refused(config.application_id, problems)
    wanted = {topic: asked.get(topic, found[topic]) for topic in sorted(inputs)}
    grown = {topic: number for topic, number in wanted.items() if number != external[topic]}
    growth = Growth(topology, config, external, grown)
    growth.check()
    return growth


def refused(application: str, problems: Sequence[str]) -> ChangeRefusedError:
    """Returns the error that names what stands in the way."""
    return ChangeRefusedError(
        f"application '{application}' cannot be grown, and nothing was changed: {'; '.join(problems)}"
    )


def _former_counts(topology: Topology, known: Description, positions: Offsets) -> dict[str, int]:
    # What a pattern matches is in no fingerprint, but it has positions.
    counts: dict[str, int] = {}
    for topic, partition in positions:
        if topology.source_for(topic) is not None:
            counts[topic] = max(counts.get(topic, 0), partition + 1)
    for part in known.topology.parts.values():
        counts.update(part.inputs)
    return counts


def _layout(topology: Topology, config: StreamsConfig, external: Mapping[str, int]) -> Layout:
    counted = topology.partition_counts(external)
    internal = {topology.full_topic_name(topic, config.application_id): count for topic, count in counted.items()}
    return Layout(topology, config, {**external, **internal})


def _quoted(topics: Sequence[str]) -> str:
    return ", ".join(f"'{topic}'" for topic in topics)
