"""Legacy of a stopped application of Kafka Streams, and whether it can be taken over.

Nothing is changed here. Each check names what it has found and what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.app.topics import external_partitions, internal_topics, topics_in_name_of
from headrace.batches.layout import Layout
from headrace.errors import ChangeRefusedError
from headrace.topics.consumer_group import GroupOffset, OffsetMetadata
from headrace.topics.journal import DurableLog
from headrace.topics.log import Offsets, TopicPartition

_STEP_S = 0.25

Tell = Callable[[str], None]
"""Shows a note about progress."""


@dataclass(frozen=True)
class StoppedKafkaStreams:
    """State that Kafka Streams has left, at a moment when nothing writes it."""

    layout: Layout
    offsets: Mapping[TopicPartition, GroupOffset]
    """Of the consumer group, by input."""
    begins: Offsets
    ends: Offsets
    """Of the partitions of all internal topics."""

    @property
    def application(self) -> str:
        return self.layout.config.application_id

    @property
    def unread(self) -> dict[TopicPartition, int]:
        """The number of unread records in repartition topics."""
        found: dict[TopicPartition, int] = {}
        for target, end in self.ends.items():
            if target[0] in self.layout.edges:
                start = self.offsets[target].offset if target in self.offsets else self.begins[target]
                found[target] = end - start
        return {target: count for target, count in found.items() if count > 0}


def find_legacy(
    layout: Layout, log: DurableLog, *, wait: timedelta, lost: Collection[str], tell: Tell
) -> StoppedKafkaStreams:
    """Returns what Kafka Streams has left, once it is at rest; complains about whatever does not fit.

    ``lost`` are stores that may be lost because nothing of them is in Kafka.
    """
    application = layout.config.application_id
    check_members(log, application, wait, tell)
    topics = _check_topics(layout, log)
    _check_logging(layout, lost)
    targets = [(topic, partition) for topic, count in topics.items() for partition in range(count)]
    ends = _settled_ends(log, application, targets, wait, tell)
    legacy = StoppedKafkaStreams(layout, log.group_offsets(application), log.begin_offsets(targets), ends)
    _check_offsets(legacy, log)
    return legacy


def check_unchanged(legacy: StoppedKafkaStreams, log: DurableLog) -> None:
    """Raises if anything was written or committed since the examination."""
    application = legacy.application
    moved = [target for target, end in log.end_offsets(legacy.ends, stable=False).items() if legacy.ends[target] != end]
    offsets = log.group_offsets(application)
    moved += [target for target in {*offsets, *legacy.offsets} if offsets.get(target) != legacy.offsets.get(target)]
    if moved or log.group_members(application):
        names = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(set(moved)))
        message = (
            f"application '{application}': somebody still writes under this application.id"
            f"{f' ({names})' if names else ''}; stop every instance of Kafka Streams, and try again"
        )
        raise ChangeRefusedError(message)


def check_members(log: DurableLog, application: str, wait: timedelta, tell: Tell) -> None:
    """Waits until the application's consumer group is empty; complains if it is not in time."""
    deadline, told = time.monotonic() + wait.total_seconds(), False
    while members := log.group_members(application):
        names = ", ".join(sorted({f"{member.client_id} at {member.host}" for member in members}))
        if time.monotonic() >= deadline:
            message = (
                f"application '{application}': its consumer group has members: {names}; close Kafka Streams on all "
                "machines; consumers that were closed stay in the group until their session.timeout.ms is over, 45 s "
                "unless it was set: wait so long, with --wait, and try again"
            )
            raise ChangeRefusedError(message)
        if not told:
            tell(f"waiting for {names} to leave the consumer group, up to {wait.total_seconds():.0f} s")
            told = True
        time.sleep(_STEP_S)


def _check_topics(layout: Layout, log: DurableLog) -> dict[str, int]:
    """Returns the internal topics with their partitions, which must be those of the topology."""
    topology, config = layout.topology, layout.config
    application = config.application_id
    wanted = {
        topic.name: topic.partitions
        for topic in internal_topics(topology, config, external_partitions(topology, application, log))
    }
    wanted |= {topic: layout.partitions[topic] for topic in layout.edges}
    counts = log.partition_counts()
    found = set(topics_in_name_of(application, log))
    remedy = (
        "the topology must be the one that runs in Kafka Streams, with the same names and the same "
        "topology.optimization; compare both with `headrace describe` and Topology.describe()"
    )
    missing, unknown = sorted(wanted.keys() - counts.keys()), sorted(found - wanted.keys())
    if missing or unknown:
        problems = [f"'{topic}' is missing" for topic in missing] + [f"'{topic}' is not known" for topic in unknown]
        message = (
            f"application '{application}': its internal topics are not those of the topology: {'; '.join(problems)}; "
            f"{remedy}"
        )
        raise ChangeRefusedError(message)
    for topic, partitions in wanted.items():
        if counts[topic] != partitions:
            message = (
                f"application '{application}': internal topic '{topic}' must have {partitions} partitions by the "
                f"topology and its inputs; found {counts[topic]}; {remedy}"
            )
            raise ChangeRefusedError(message)
    return wanted


def _check_logging(layout: Layout, lost: Collection[str]) -> None:
    builders = layout.topology.store_builders
    unlogged = [
        store
        for store in layout.topology.state_stores
        if not builders[store].logging and builders[store].persistent and store not in lost
    ]
    if unlogged:
        names = ", ".join(f"'{store}'" for store in unlogged)
        options = " ".join(f"--lose {store}" for store in unlogged)
        message = (
            f"application '{layout.config.application_id}': stores without a changelog are only on the disks of Kafka "
            f"Streams: {names}; let them have one before you take over, or begin with empty ones: {options}"
        )
        raise ChangeRefusedError(message)


def _settled_ends(
    log: DurableLog, application: str, targets: list[TopicPartition], wait: timedelta, tell: Tell
) -> Offsets:
    """Returns where partitions end, once no transaction is open in them."""
    deadline, told = time.monotonic() + wait.total_seconds(), False
    while True:
        ends, stable = log.end_offsets(targets, stable=False), log.end_offsets(targets, stable=True)
        hidden = sorted(target for target in targets if stable[target] < ends[target])
        if not hidden:
            return ends
        names = ", ".join(f"{topic}/{partition}" for topic, partition in hidden)
        if time.monotonic() >= deadline:
            message = (
                f"application '{application}': a transaction is open in {names}; brokers end what a killed instance "
                "has left after its transaction.timeout.ms, 10 s in Kafka Streams: wait longer, with --wait, and see "
                "that no instance runs"
            )
            raise ChangeRefusedError(message)
        if not told:
            tell(f"waiting for the end of a transaction in {names}")
            told = True
        time.sleep(_STEP_S)


def _check_offsets(legacy: StoppedKafkaStreams, log: DurableLog) -> None:
    application, layout, offsets = legacy.application, legacy.layout, legacy.offsets
    read = {(topic, partition) for place in layout.tasks for _, topic, partition in place.inputs}
    strangers = sorted({topic for topic, _ in offsets.keys() - read})
    if strangers:
        names = ", ".join(f"'{topic}'" for topic in strangers)
        message = (
            f"application '{application}': its consumer group has read {names}, which the topology does not read; the "
            "topology must be the one that runs in Kafka Streams"
        )
        raise ChangeRefusedError(message)
    for (topic, partition), each in sorted(offsets.items()):
        if each.metadata and OffsetMetadata.decode(each.metadata) is None:
            message = (
                f"application '{application}': the offset of {topic}/{partition} has metadata that is not of Kafka "
                f"Streams 2.4 to 4.x: '{each.metadata}'; stop what else commits for this consumer group"
            )
            raise ChangeRefusedError(message)
    begins, ends = log.begin_offsets(offsets), log.end_offsets(offsets, stable=False)
    for target, each in sorted(offsets.items()):
        if not begins[target] <= each.offset <= ends[target]:
            message = (
                f"application '{application}': {target[0]}/{target[1]} was read up to offset {each.offset}, and the "
                f"topic has records {begins[target]} to {ends[target] - 1}: some are gone that were not read, or the "
                f"topic was made anew; start over with `headrace reset {application}`"
            )
            raise ChangeRefusedError(message)
    _check_none_expired(legacy)


def _check_none_expired(legacy: StoppedKafkaStreams) -> None:
    """Complains about state without offsets: every record would count twice."""
    layout = legacy.layout
    for part in layout.parts.values():
        places = [place for place in layout.tasks if place.id.subtopology == part.id]
        if any((topic, n) in legacy.offsets for place in places for _, topic, n in place.inputs):
            continue
        filled = sorted(target for place in places for target in layout.own_changelogs(place) if legacy.ends[target])
        if filled:
            message = (
                f"application '{legacy.application}': '{filled[0][0]}' has rows, and the consumer group has no offset "
                f"of what sub-topology {part.id} reads: offsets were deleted, or have expired, 7 days after the last "
                "member has left; records would count twice: bring the offsets back, or start over with "
                f"`headrace reset {legacy.application}`"
            )
            raise ChangeRefusedError(message)
