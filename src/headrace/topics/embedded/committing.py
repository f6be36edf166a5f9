"""Adding blobs to the log, and the one transaction with which a micro-batch becomes visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.topics.batch_rules import check_receipts, check_replay
from headrace.topics.embedded.tables import Application, PartitionState, Tables
from headrace.topics.log import Committed, Receipt, TopicPartition

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
    batch_id: int,
    receipts: Sequence[Receipt],
    plan: str,
    positions: Mapping[TopicPartition, int],
) -> Committed:
    """Publishes a batch once; a batch that is there already is only looked at."""
    last = tables.application(application)
    if last is not None and batch_id <= last.batch_id:
        check_replay(application, batch_id, plan, last_id=last.batch_id, last_plan=last.plan)
        return committed(last)
    check_receipts(application, batch_id, receipts)
    written = publish(tables, (frame for receipt in receipts for frame in frames(receipt)))
    merged = {} if last is None else {(topic, partition): offset for topic, partition, offset in last.positions}
    for receipt in receipts:
        merged.update(receipt.positions)
    merged.update(positions)
    done = Application(
        batch_id,
        plan,
        [(*target, *bounds) for target, bounds in written.items()],
        [(*target, offset) for target, offset in merged.items()],
    )
    tables.put_application(application, done)
    return committed(done)


def committed(application: Application) -> Committed:
    """Returns what the last batch has written."""
    written = {(topic, partition): (first, end) for topic, partition, first, end in application.written}
    return Committed(application.batch_id, written)
