"""From Kafka Streams to Headrace: one micro-batch, in which every task gets its positions and its memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.app.description import Description
from headrace.app.topics import check_sources, external_partitions
from headrace.batches.change_plan import ChangePlan
from headrace.batches.layout import Layout
from headrace.change.stopped_application import StoppedApplication, stopped_application
from headrace.change.takeover.kafka_streams_application import StoppedKafkaStreams, Tell, check_unchanged, find_legacy
from headrace.change.takeover.stored_rows import check_rows
from headrace.change.takeover.task_memory import task_update
from headrace.config import StreamsConfig
from headrace.errors import ChangeRefusedError
from headrace.topics.consumer_group import GroupOffset, left_by_kafka_streams
from headrace.topics.journal import DurableLog
from headrace.topics.log import TopicPartition
from headrace.topology.topology import Topology

TAKEOVER = "takeover"


@dataclass(frozen=True)
class Takeover:
    """Plan of a takeover; nothing was changed yet."""

    legacy: StoppedKafkaStreams
    records: Mapping[str, int]
    """Records of the changelog of each store."""


def examine(
    topology: Topology,
    config: StreamsConfig,
    log: DurableLog,
    *,
    wait: timedelta = timedelta(0),
    lost: Collection[str] = (),
    description: str | None = None,
    tell: Tell = lambda _: None,
) -> Takeover | None:
    """Looks at everything that a takeover depends on; None if one was begun and only has to be finished.

    ``wait`` is how long members of the consumer group, and transactions, are waited for. ``description`` is what
    ``Topology.describe()`` says in Java. Whatever does not fit raises a ChangeRefusedError.
    """
    application = config.application_id
    known = Description.read(log, application)
    if known is not None and known.change is not None:
        if known.change.change != TAKEOVER:
            known.change.refuse_start(application)
        return None
    check_sources(topology, external_partitions(topology, application, log))
    if description is not None:
        _check_description(application, topology, description)
    legacy = find_legacy(Layout.on(log, topology, config), log, wait=wait, lost=lost, tell=tell)
    if not left_by_kafka_streams(legacy.offsets):
        raise _nothing_left(application, known)
    return Takeover(legacy, check_rows(legacy, log, tell))


def take_over(topology: Topology, config: StreamsConfig, log: DurableLog, found: Takeover | None) -> None:
    """Takes over an examined application, or finishes a takeover. It can be repeated after an interruption."""
    layout = Layout.on(log, topology, config)
    with stopped_application(config, log, [place.name for place in layout.tasks]) as stopped:
        plan = stopped.check_resumes(TAKEOVER)
        if plan is None:
            if found is None:
                message = f"application '{stopped.id}': no takeover was begun; examine the application first"
                raise ChangeRefusedError(message)
            check_unchanged(found.legacy, log)
            plan = _plan(stopped, found)
        _carry_out(layout, stopped, plan)


def _plan(stopped: StoppedApplication, found: Takeover) -> ChangePlan:
    offsets = [[*target, *each] for target, each in sorted(found.legacy.offsets.items())]
    command = f"headrace takeover {stopped.id} MODULE:BUILD"
    return ChangePlan(TAKEOVER, command, stopped.next_batch_id, {"offsets": offsets})


def _carry_out(layout: Layout, stopped: StoppedApplication, plan: ChangePlan) -> None:
    # Repartition topics are empty once they are read; a reset empties them, too.
    description = Description.on(stopped.log, layout.topology, layout.config, layout.edges)
    stopped.begin(plan, description)
    offsets = _offsets(plan.details)
    begins = stopped.log.begin_offsets([(topic, n) for topic in layout.edges for n in range(layout.partitions[topic])])
    for place in layout.tasks:
        update = task_update(layout, place, offsets, begins)
        stopped.commit_task(place.name, layout.own_changelogs(place), update)
    stopped.commit()
    # Without metadata: whatever has any from now on was committed by a Kafka Streams that runs beside.
    bare = {target: GroupOffset(each.offset) for target, each in offsets.items()}
    stopped.log.commit_group_offsets(stopped.id, bare)
    stopped.finish(description)


def _offsets(details: Mapping[str, Any]) -> dict[TopicPartition, GroupOffset]:
    return {(topic, partition): GroupOffset(at, metadata) for topic, partition, at, metadata in details["offsets"]}


def _check_description(application: str, topology: Topology, description: str) -> None:
    ours, theirs = _lines(str(topology.describe())), _lines(description)
    if ours == theirs:
        return
    at = next((n for n, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other), None)
    at = min(len(ours), len(theirs)) if at is None else at
    found = theirs[at] if at < len(theirs) else "nothing"
    wanted = ours[at] if at < len(ours) else "nothing"
    message = (
        f"application '{application}': the topology is not the one that Kafka Streams describes: there is '{found}' in "
        f"line {at + 1} of its description, and '{wanted}' in Headrace's; build both by the same calls in the same "
        "order, with the same names"
    )
    raise ChangeRefusedError(message)


def _lines(description: str) -> list[str]:
    return [line.strip() for line in description.splitlines() if line.strip()]


def _nothing_left(application: str, known: Description | None) -> ChangeRefusedError:
    if known is not None and known.is_handed_back:
        message = (
            f"application '{application}': it was being handed back, and that was not finished; finish it with "
            f"`headrace hand-back {application} MODULE:BUILD`"
        )
    elif known is not None:
        message = (
            f"application '{application}' is Headrace's, and Kafka Streams has not run under its name since; just "
            "start it"
        )
    else:
        message = (
            f"application '{application}': its consumer group has no offsets that Kafka Streams has committed, so "
            "there is nothing to take over; check its name and the address of the cluster, or just start it"
        )
    return ChangeRefusedError(message)
