"""The topics around a topology: those that must be there, and those that are made when it starts."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.config import StreamsConfig
from headrace.errors import (
    IncompatibleTopologyError,
    MisconfiguredInternalTopicError,
    MissingInternalTopicsError,
    MissingSourceTopicError,
    TopicExistsError,
    did_you_mean,
)
from headrace.topics.consumer_group import left_by_kafka_streams
from headrace.topics.journal import DurableLog
from headrace.topics.log import Topic, TopicLog
from headrace.topology.levels import back_edges
from headrace.topology.nodes import InternalTopic
from headrace.topology.queryable_stores import logged_stores, topics_of_others
from headrace.topology.topology import Topology

logger = logging.getLogger(__name__)

_INTERNAL = re.compile(
    r".+-(changelog|repartition|subscription-(registration|response)-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)

# Rows get their times back from it, whatever the brokers do by default; Kafka Streams sets it, too.
_CHANGELOG: Mapping[str, str] = {"message.timestamp.type": "CreateTime"}


@dataclass(frozen=True)
class WantedTopic:
    """An internal topic of the application as it should be in the log."""

    name: str
    partitions: int
    configs: Mapping[str, str]


def external_partitions(topology: Topology, application_id: str, log: TopicLog) -> dict[str, int]:
    """Returns the partitions of all topics of the log but the application's own."""
    counts = log.partition_counts()
    return {topic: counts[topic] for topic in topics_of_others(topology, application_id, counts)}


def check_sources(topology: Topology, external: Mapping[str, int]) -> None:
    """Complains about all topics that are read and do not exist, with the command that makes each."""
    missing: dict[str, str] = {}
    partitions: dict[str, int] = {}
    for part in topology.subtopologies():
        for topic in part.source_topics:
            if not topology.is_internal(topic) and topic not in external:
                reader = "a global table" if part.is_global else f"sub-topology {part.id}"
                # What is read together is usually joined, and then needs equally many.
                partitions[topic] = max((external[each] for each in part.source_topics if each in external), default=1)
                missing[topic] = f"'{topic}', which {reader} reads, does not{did_you_mean(topic, external)}"
    if missing:
        commands = " and ".join(f"`headrace topics create {name} --partitions {n}`" for name, n in partitions.items())
        message = (
            f"the topics that a topology reads must exist; {'; '.join(missing.values())}; create what is missing, with "
            f"as many partitions as tasks should share the work: {commands}"
        )
        raise MissingSourceTopicError(message)


def make_outputs(topology: Topology, config: StreamsConfig, log: TopicLog, external: Mapping[str, int]) -> None:
    """Creates the topics that are written and do not exist, with as many partitions as there are tasks that write.

    The dead-letter topic gets one: failures are few, and their order is worth more than their speed.
    """
    tasks = topology.task_counts(external)
    wanted: dict[str, int] = {}
    for part in topology.subtopologies():
        for topic in part.sink_topics:
            if not topology.is_internal(topic) and topic not in external:
                wanted[topic] = max(wanted.get(topic, 1), tasks.get(part.id, 1))
    dead_letters = config.errors_dead_letter_queue_topic_name
    if dead_letters is not None and dead_letters not in external:
        wanted.setdefault(dead_letters, 1)
    for topic, partitions in wanted.items():
        _create(log, topic, partitions, {})


def internal_topics(topology: Topology, config: StreamsConfig, external: Mapping[str, int]) -> list[WantedTopic]:
    """Returns the internal topics that are in the log.

    They are those of back edges (what flows forward goes from task to task within a batch) and the changelogs.
    """
    application = config.application_id
    # As in Kafka Streams, settings with this prefix are for all internal topics; a store's own come last.
    common = {name: str(value) for name, value in config.prefixed("topic.").items()}
    counts, tasks = topology.partition_counts(external), topology.task_counts(external)
    wanted = [
        WantedTopic(
            topology.full_topic_name(topic, application),
            counts[topic],
            {**InternalTopic.CONFIG, **common},
        )
        for topic in sorted(back_edges(topology))
    ]
    home = {store: part.id for part in topology.subtopologies() for store in part.state_stores}
    for store, topic in logged_stores(topology, application).items():
        builder = topology.store_builders[store]
        configs = {**_CHANGELOG, **builder.changelog_topic_config(), **common, **builder.log_config}
        # A store whose sub-topology reads nothing yet will have a task as soon as its pattern matches.
        wanted.append(WantedTopic(topic, max(1, tasks[home[store]]), configs))
    return wanted


def make_internal(
    wanted: Sequence[WantedTopic], config: StreamsConfig, log: TopicLog, known: Collection[str] = ()
) -> None:
    """Creates internal topics, and checks those that exist; ``known`` are those that the application has had before.

    An application that has run before and has lost one of them has lost records or state, so it is stopped.
    """
    has_run = log.last_batch(config.application_id) is not None
    there = set(log.topics())
    if not has_run:
        there -= _discard_unfit(wanted, log, there)
    missing = [topic for topic in wanted if topic.name not in there]
    for topic in wanted:
        if topic.name in there:
            _check(topic, log.describe_topic(topic.name), config.application_id)
    if has_run and (lost := [topic.name for topic in missing if topic.name in known]):
        message = (
            f"application '{config.application_id}': its internal topics are its state, and what is still to be "
            f"processed; {', '.join(map(repr, lost))} {'is' if len(lost) == 1 else 'are'} gone; bring them back, or "
            f"start over with `headrace reset {config.application_id}`"
        )
        raise MissingInternalTopicsError(message, topics=lost)
    for topic in missing:
        _create(log, topic.name, topic.partitions, topic.configs)


def topics_in_name_of(application_id: str, log: TopicLog, others: Iterable[str] = ()) -> list[str]:
    """Returns the topics of a log that are internal ones of an application, by their names.

    ``others`` are applications besides those that the log knows: the topics of 'shop-eu' begin with 'shop-', too,
    and so do those of a snapshot 'shop-before'.
    """
    prefix = f"{application_id}-"
    topics = log.topics()
    named = [*others, *log.applications(), *(topic for topic in topics if topic.endswith("-snapshot"))]
    theirs = tuple(f"{other}-" for other in named if other.startswith(prefix))
    return [
        topic
        for topic in topics
        if topic.startswith(prefix) and _INTERNAL.fullmatch(topic) and not topic.startswith(theirs)
    ]


def check_unused(wanted: Iterable[WantedTopic], application: str, log: DurableLog) -> None:
    """Raises if another application has used the name of an application without a description.

    Its stores would be empty, and what it writes would be mixed with what is there.
    """
    if left_by_kafka_streams(log.group_offsets(application)):
        message = (
            f"application '{application}' has never run here, but Kafka Streams has, under this application.id, and "
            f"has committed offsets; go on with its state: `headrace takeover {application} MODULE:BUILD`; or choose "
            f"another application_id, or delete what it has left with `headrace reset {application}`"
        )
        raise IncompatibleTopologyError(message)
    there = set(log.topics())
    used = [topic.name for topic in wanted if topic.name in there and not is_empty(topic.name, log)]
    if used:
        names = ", ".join(f"'{name}'" for name in used)
        message = (
            f"application '{application}' has never run here, but its internal topics have records: {names}; another "
            "program, such as Kafka Streams, has run under this application.id; go on with its state: "
            f"`headrace takeover {application} MODULE:BUILD`; or choose another application_id, or delete what it has "
            f"left with `headrace reset {application}`"
        )
        raise IncompatibleTopologyError(message)


def is_empty(topic: str, log: TopicLog) -> bool:
    """Returns whether a topic has no records, or none any more."""
    targets = [(topic, partition) for partition in range(log.partitions_of(topic))]
    return log.begin_offsets(targets) == log.end_offsets(targets)


def _discard_unfit(wanted: Iterable[WantedTopic], log: TopicLog, there: Collection[str]) -> set[str]:
    """Deletes topics that a reset has emptied, if they have another number of partitions than is needed now."""
    unfit = set()
    for topic in wanted:
        has_others = topic.name in there and log.partitions_of(topic.name) != topic.partitions
        if has_others and is_empty(topic.name, log):
            log.delete_topic(topic.name)
            unfit.add(topic.name)
    return unfit


def _check(wanted: WantedTopic, found: Topic, application: str) -> None:
    remedy = f"delete it if nothing in it is needed, or start over with `headrace reset {application}`"
    if found.partitions != wanted.partitions:
        message = (
            f"internal topic '{wanted.name}': it must have {wanted.partitions} partitions, as many as there are tasks "
            f"that use it; found {found.partitions}; {remedy}"
        )
        raise MisconfiguredInternalTopicError(message)
    if "compact" in wanted.configs["cleanup.policy"] and not found.is_compacted:
        policy = found.configs.get("cleanup.policy", "delete")
        message = (
            f"internal topic '{wanted.name}': a changelog must be compacted; its cleanup.policy is '{policy}'; {remedy}"
        )
        raise MisconfiguredInternalTopicError(message)


def _create(log: TopicLog, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    try:
        log.create_topic(name, partitions=partitions, configs=configs)
    except TopicExistsError:
        logger.debug("topic '%s' was made by somebody else meanwhile", name)
    else:
        logger.info("created topic '%s' with %d partitions", name, partitions)
