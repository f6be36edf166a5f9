"""The standby job: lets machines of the cluster keep copies of slots that run elsewhere, and asks how far they are.

It has one short task per machine. Copies are opened and follow their changelogs in threads of the Python workers, which
go on when the task is over. The worker that has the copies of a slot leaves the note by which it gets the slot's work
once the slot moves to its machine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from pyspark import SparkContext, TaskContext

from headrace.errors import ProcessorStateError
from headrace.spark.affinity import is_served, read_note, write_note
from headrace.spark.jobs import Sent, StagedJob
from headrace.spark.level import StandbyWork, Worker, hand_over_work, slot_key, standby_key, this_worker
from headrace.spark.worker_start import executor_location, host_and_id

logger = logging.getLogger(__name__)

_ORDERS_PROPERTY = "headrace.standbys"
"""Local property of the job in which each task finds what its machine is to keep."""

Orders: TypeAlias = Mapping[str, Mapping[int, int | None]]
"""By host and slot: the rank of the copy that is wanted there; None to close what is open of the slot."""
Answers: TypeAlias = Mapping[tuple[int, str], int]
"""By slot and host: how many records a copy lacks. What is not known yet, or was not done, is not among them."""


class _MachineOrder(msgspec.Struct, array_like=True):
    host: str
    work: list[StandbyWork]


# Any: pyspark's Broadcast is generic in what it carries.
def run_standby_job(
    context: SparkContext,
    orders: Orders,
    locations: Mapping[str, Sequence[str]],
    slots: int,
    *,
    replicas: Mapping[str, int],
    directory: str,
    payloads: Mapping[str, Any],
) -> Answers:
    """Runs the job.

    ``locations`` are executors on each host. ``replicas`` says how many standbys an application wants, by the digest of
    its payload. ``directory`` is where workers on the driver's machine find each other.
    """
    hosts = list(orders)
    given = [
        _MachineOrder(
            host,
            [StandbyWork(slot, slots, _digests_that_want(rank, replicas)) for slot, rank in orders[host].items()],
        )
        for host in hosts
    ]
    properties = {_ORDERS_PROPERTY: msgspec.json.encode(given).decode()}
    job = StagedJob(context, [_StandbyStage(directory, payloads)], len(hosts))
    description = f"standby copies on {len(hosts)} machines"
    packed = job.run(properties, description, [locations.get(host, ()) for host in hosts])
    answers: dict[tuple[int, str], int] = {}
    for data in packed:
        host, lags = msgspec.msgpack.decode(data, type=tuple[str, dict[int, int | None]])
        answers |= {(slot, host): lag for slot, lag in lags.items() if lag is not None}
    return answers


def _digests_that_want(rank: int | None, replicas: Mapping[str, int]) -> list[str]:
    return [] if rank is None else [digest for digest, count in replicas.items() if rank < count]


class _StandbyStage:
    """Keeps the copies of one machine; a stage of a ``StagedJob``."""

    def __init__(self, directory: str, payloads: Mapping[str, Any]) -> None:
        self._directory = directory
        self._payloads = payloads

    def __call__(self, number: int, _rows: list[bytes]) -> Iterable[Sent]:
        context = TaskContext.get()
        assert context is not None, "the stage runs inside of Spark's tasks"
        given = context.getLocalProperty(_ORDERS_PROPERTY)
        assert given is not None, "the driver sets the orders before it starts the job"
        order = msgspec.json.decode(given, type=list[_MachineOrder])[number]
        location = executor_location()
        if location is None or host_and_id(location)[0] != order.host:
            # A location is only a preference: on another machine there is nothing to do.
            return
        worker = this_worker(self._directory)
        lags = {work.slot: self._keep_copies(worker, work) for work in order.work}
        yield Sent(1, number, msgspec.msgpack.encode((order.host, lags)))

    def _keep_copies(self, worker: Worker, work: StandbyWork) -> int | None:
        """Has the work done by the process that has the slot's tasks or copies, or by this one if there is none."""
        noted = read_note(worker.directory, slot_key(work.slot))
        is_here = noted == worker.address
        if noted is not None and not is_here:
            try:
                answer = hand_over_work(noted, standby_key(work.slot), work, self._payloads)
            except ProcessorStateError as error:
                logger.warning("the copies of slot %d cannot be kept: %s", work.slot, error)
                return None
            if answer is not None:
                return msgspec.msgpack.decode(answer, type=int | None)
            if is_served(noted):
                # It has other work to do. A second process must not take its copies.
                return None
        if not work.digests and not is_here:
            return 0
        lag = worker.stand_by_here(work, self._payloads)
        if not is_here:
            write_note(worker.directory, slot_key(work.slot), worker.address)
        return lag
