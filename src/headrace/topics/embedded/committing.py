"""Adding blobs to the log, and the one transaction with which a micro-batch becomes visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.errors import BatchError, FencedError
from headrace.topics.embedded.tables import Application, PartitionState, Tables
from headrace.topics.journal import Receipt, check_receipts
from headrace.topics.log import Committed, TopicPartition

Frames = Iterable[tuple[str, int, bytes]]
"""Topic, partition, blob."""

Bounds = dict[TopicPartition, tuple[int, int]]


def publish(tables: Tables, frames: Frames) -> Bounds:
    """Adds blobs at the ends of their partitions; returns which offsets they got."""
    numbers: dict[TopicPartition, int] = {}
    states: dict[TopicPartition, PartitionState] = {}
    firsts: dict[TopicPartition, int] = {}
    for topic, partition, blob in frames:
        target = (topic, partition)
        state = states.get(target)
        if state is None:
            numbers[target], state = tables.partition(target)
            states[target] = state
            firsts[target] = state.end
        tables.append(numbers[target], partition, state, blob)
    for target, state in states.items():
        tables.put_state(numbers[target], target[1], state)
    return {target: (first, states[target].end) for target, first in firsts.items()}


def commit(
    tables: Tables,
    frames: Callable[[Receipt], Frames],
    application: str,
    incarnation: int,
    batch_id: int,
    receipts: Sequence[Receipt],
    positions: Mapping[TopicPartition, int],
) -> Committed:
    """Publishes a batch, for the owner of the journal: outputs, changelogs, positions and task records."""
    last = tables.application(application) or Application()
    check_owner(application, incarnation, last)
    if batch_id != last.batch_id + 1:
        message = (
            f"batch {batch_id} of application '{application}' cannot be committed: the last one in the log is "
            f"{last.batch_id}; open the journal again, and go on from there"
        )
        raise BatchError(message)
    check_receipts(application, incarnation, batch_id, receipts)
    written = publish(tables, (frame for receipt in receipts for frame in frames(receipt)))
    merged = {(topic, partition): offset for topic, partition, offset in last.positions}
    for receipt in receipts:
        merged.update(receipt.positions)
        tables.put_task_record(application, receipt.task, receipt.record)
    merged.update(positions)
    done = Application(
        incarnation,
        batch_id,
        [(*target, *bounds) for target, bounds in written.items()],
        [(*target, offset) for target, offset in merged.items()],
        last.description,
    )
    tables.put_application(application, done)
    return committed(done)


def check_owner(application: str, incarnation: int, found: Application) -> None:
    """Complains if another driver has opened the journal since."""
    if found.incarnation != incarnation:
        message = (
            f"application '{application}': another instance has taken over (number {found.incarnation}, this one is "
            f"{incarnation}); what this one was about to commit was not committed; run one instance at a time"
        )
        raise FencedError(message)


def committed(application: Application) -> Committed:
    """Returns what the last batch has written."""
    written = {(topic, partition): (first, end) for topic, partition, first, end in application.written}
    return Committed(application.batch_id, written)
