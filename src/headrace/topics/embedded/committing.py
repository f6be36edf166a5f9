"""Adding blobs to the log, and the one transaction with which a micro-batch becomes visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.errors import BatchError
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
        _check_replay(application, batch_id, plan, last)
        return committed(last)
    _check_receipts(application, batch_id, receipts)
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


def _check_replay(application: str, batch_id: int, plan: str, last: Application) -> None:
    where = f"batch {batch_id} of application '{application}'"
    remedy = "the checkpoint was deleted or exchanged while the log was kept: bring it back, or reset the application"
    if batch_id < last.batch_id:
        message = f"{where} is older than the last one in the log, {last.batch_id}; {remedy}"
        raise BatchError(message)
    if plan != last.plan:
        message = f"{where} is in the log with another plan ({last.plan!r}, now {plan!r}); {remedy}"
        raise BatchError(message)


def _check_receipts(application: str, batch_id: int, receipts: Sequence[Receipt]) -> None:
    tasks = set()
    for receipt in receipts:
        if (receipt.application, receipt.batch_id) != (application, batch_id):
            message = (
                f"batch {batch_id} of application '{application}' has a receipt of batch {receipt.batch_id} of "
                f"'{receipt.application}' (task {receipt.task}); commit only receipts of this batch"
            )
            raise BatchError(message)
        if receipt.task in tasks:
            message = (
                f"batch {batch_id} of application '{application}' has two receipts of task {receipt.task}; commit the "
                "one of the attempt that counts"
            )
            raise BatchError(message)
        tasks.add(receipt.task)
