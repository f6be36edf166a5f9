"""From Headrace to Kafka Streams: offsets with metadata for everything that Kafka Streams reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.app.fingerprint import Fingerprint, check_compatible
from headrace.app.topics import external_partitions
from headrace.batches.layout import Layout
from headrace.batches.unread_edges import UnreadEdges
from headrace.change.changelog_rows import last_offsets
from headrace.change.stopped_application import StoppedApplication, stopped_application
from headrace.change.takeover.kafka_streams_application import Tell, check_members
from headrace.change.takeover.task_memory import group_offsets
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError
from headrace.runtime.task_memory import unpack_memory
from headrace.topics.consumer_group import GroupOffset, left_by_kafka_streams
from headrace.topics.journal import DurableLog
from headrace.topics.log import TopicPartition
from headrace.topology.nodes import InternalTopic
from headrace.topology.topology import Topology


@dataclass(frozen=True)
class HandBack:
    """Plan of a hand-back: the offsets and topics that Kafka Streams gets."""

    offsets: Mapping[TopicPartition, GroupOffset]
    new_topics: tuple[str, ...]
    """Repartition topics that were missing."""
    waiting: Mapping[str, int]
    """Stores of joins with a grace period, and how many records wait in each."""


def hand_back(
    topology: Topology,
    config: StreamsConfig,
    log: DurableLog,
    *,
    wait: timedelta = timedelta(0),
    dry_run: bool = False,
    tell: Tell = lambda _: None,
) -> HandBack:
    """Leaves to Kafka Streams what it needs to go on; from then on Headrace refuses to run the application.

    It can be done again if it was interrupted. With ``dry_run`` nothing is changed, but other instances are fenced.
    """
    layout = Layout.on(log, topology, config)
    with stopped_application(config, log, [place.name for place in layout.tasks]) as stopped:
        _check(layout, stopped)
        check_members(log, stopped.id, wait, tell)
        missing = tuple(topic for topic in layout.edges if topic not in log.topics())
        if not dry_run:
            _create(missing, layout, log)
        found = HandBack(
            _offsets(layout, stopped, () if not dry_run else missing), missing, _waiting_records(layout, log)
        )
        if not dry_run:
            assert stopped.description is not None, "it was checked"
            # First this: offsets without times are corrected by the next attempt, and Headrace keeps its hands off.
            replace(stopped.description, is_handed_back=True).write(log)
            log.commit_group_offsets(stopped.id, found.offsets)
        return found


def _check(layout: Layout, stopped: StoppedApplication) -> None:
    application, log, known = stopped.id, stopped.log, stopped.description
    if known is None or stopped.state.batch_id < 0:
        message = (
            f"application '{application}' has never run here, so there is nothing to hand back; check its name and the "
            "address of the cluster"
        )
        raise ChangeRefusedError(message)
    if stopped.plan is not None:
        stopped.plan.refuse_start(application)
    external = external_partitions(layout.topology, application, log)
    check_compatible(application, known.topology, Fingerprint.of(layout.topology, external))
    positions, offsets = stopped.state.positions, log.group_offsets(application)
    if left_by_kafka_streams(offsets) and (
        not known.is_handed_back or any(positions.get(target, at.offset) != at.offset for target, at in offsets.items())
    ):
        message = (
            f"application '{application}': Kafka Streams has run under this application.id since Headrace did; to go "
            f"on with Headrace, take it over: `headrace takeover {application} MODULE:BUILD`"
        )
        raise ChangeRefusedError(message)
    if UnreadEdges(layout, log, positions):
        message = (
            f"application '{application}': records of its repartition topics are still to be read, from when it was "
            "taken over; run it once, until it has caught up, and try again"
        )
        raise ChangeRefusedError(message)


def _waiting_records(layout: Layout, log: DurableLog) -> dict[str, int]:
    """Returns how many records wait for a table: Kafka Streams 4.1.1 writes them to a changelog and misreads them."""
    found: dict[str, int] = {}
    for place in layout.tasks:
        for store, topic in place.changelogs.items():
            if layout.topology.store_builders[store].kind == "buffer" and store in layout.changelogs:
                target = (topic, place.id.partition)
                begin, end = log.begin_offsets([target])[target], log.end_offsets([target])[target]
                found[store] = found.get(store, 0) + len(last_offsets(log, target, begin, end))
    return {store: count for store, count in found.items() if count}


def _create(topics: tuple[str, ...], layout: Layout, log: DurableLog) -> None:
    common = {name: str(value) for name, value in layout.config.prefixed("topic.").items()}
    for topic in topics:
        log.create_topic(topic, partitions=layout.partitions[topic], configs={**InternalTopic.CONFIG, **common})


def _offsets(
    layout: Layout, stopped: StoppedApplication, missing: tuple[str, ...]
) -> dict[TopicPartition, GroupOffset]:
    """Returns the offsets of all inputs; repartition topics are read to their ends, or do not exist yet."""
    edges = [(topic, n) for topic in layout.edges if topic not in missing for n in range(layout.partitions[topic])]
    positions = {**stopped.state.positions, **stopped.log.end_offsets(edges)}
    found: dict[TopicPartition, GroupOffset] = {}
    for place in layout.tasks:
        record = stopped.head(place.name, layout.own_changelogs(place)).record
        memory = {"cells": {}, "partition_times": {}} if record is None else unpack_memory(record.memory)
        found |= group_offsets(layout, place, positions, memory)
    return found
