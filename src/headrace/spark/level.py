"""One level of a micro-batch in a Spark task: the tasks of a slot, one after the other.

Between two levels, rows go to slots: blobs for tasks there, and the names of applications in which a task has failed.
The tasks of an application that has failed do not run any more, in whichever slot: a part of their input is missing.
What tasks report goes to the driver. The rows for one slot travel as one piece of bytes, which only that slot opens.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import msgspec
from pyspark import TaskContext, cloudpickle

from headrace.batches.application import Application
from headrace.batches.executor import as_failure
from headrace.batches.failure_note import write_failure_note
from headrace.batches.layout import Layout, TaskPlace
from headrace.batches.plan import Plan
from headrace.batches.reports import TaskReport
from headrace.batches.task_runner import TaskRunner, has_work
from headrace.spark.affinity import WorkFailedError, WorkServer, hand_over, read_note, work_directory, write_note
from headrace.spark.failures import Failure
from headrace.spark.jobs import Sent
from headrace.spark.worker_garbage import GARBAGE
from headrace.spark.worker_start import executor_location, prepare_worker
from headrace.topics.journal import EdgeBlob

PLANS_PROPERTY = "headrace.plans"
"""Local property of the job in which workers find the plans of its applications."""
_STANDBY_PATIENCE_S = 0.1
"""Patience with other work of a process: waiting longer would hold a core; standby copies are checked again."""
APART_PROPERTY = "headrace.apart"
"""Local property of a job that leaves the processes of others alone: whose job it is, or nothing."""
_BUSY_S = 10.0
"""How long the process that has tasks open is waited for while another job is in it: to open them anew costs more."""
_UNKNOWN = b"unknown application"
"""What a worker says that lacks the payload of an application."""


class Failed(NamedTuple):
    """Marks an application as failed, for slots of later levels; the driver gets the reason."""

    failure: Failure | None


class SlotLocation(NamedTuple):
    """Says on which executor a slot has run."""

    slot: int
    executor: str


Row: TypeAlias = tuple[str, EdgeBlob | TaskReport | Failed | SlotLocation]
"""The key of an application, and something of it."""
Place: TypeAlias = tuple[int, int]
"""A level and a slot; the level behind the last one is the driver."""


class PlanMessage(msgspec.Struct, array_like=True):
    """A plan as it travels to the workers."""

    key: str
    digest: str
    """Of the payload."""
    plan: Plan


class SlotWork(msgspec.Struct, array_like=True, tag=True):
    """The work of one slot in one level, as it is handed from one worker to another."""

    plans: str
    key: str
    """Stands for the slot where workers look for the one that has its tasks open."""
    level: int
    depth: int
    slot: int
    slots: int
    attempt: int
    rows: Sequence[bytes]
    payloads: Mapping[str, bytes] = {}
    """Applications that the other one does not know, by digest."""

    @property
    def digests(self) -> list[str]:
        return [planned.digest for planned in msgspec.json.decode(self.plans, type=list[PlanMessage])]


class StandbyWork(msgspec.Struct, array_like=True, tag=True):
    """The copies of one slot that runs on another machine, as they are handed from one worker to another."""

    slot: int
    slots: int
    digests: Sequence[str]
    """Of the payloads of applications whose copies are kept; those of others are closed."""
    payloads: Mapping[str, bytes] = {}
    """Applications that the other one does not know, by digest."""


Work: TypeAlias = SlotWork | StandbyWork


def slots_of(key: str, layout: Layout, slots: int) -> Mapping[str, int]:
    """Returns the slot of each task: those of a level are spread evenly, and applications begin at different slots."""
    first, counts, found = crc32(key.encode()), dict[int, int](), dict[str, int]()
    for place in layout.tasks:
        number = counts.get(place.level, 0)
        counts[place.level] = number + 1
        found[place.name] = (first + number) % slots
    return found


def unpack_rows(data: bytes) -> list[Row]:
    """Returns the rows that a worker has packed."""
    rows: list[Row] = pickle.loads(data)
    return rows


class Level:
    """Runs the tasks of one level in one slot, in the process that has them open; a stage of a ``StagedJob``."""

    def __init__(self, level: int, depth: int, slots: int, directory: str, payloads: Mapping[str, Any]) -> None:
        self._level = level
        self._depth = depth
        self._slots = slots
        self._directory = directory
        """Where workers on the driver's machine find each other."""
        self._payloads = payloads
        """Broadcasts by digest."""

    def __call__(self, slot: int, rows: list[bytes]) -> Iterable[Sent]:
        context = TaskContext.get()
        assert context is not None, "levels run inside of Spark's tasks"
        plans = context.getLocalProperty(PLANS_PROPERTY)
        assert plans is not None, "the driver sets the plans before it starts a job"
        key = (context.getLocalProperty(APART_PROPERTY) or "") + slot_key(slot)
        work = SlotWork(plans, key, self._level, self._depth, slot, self._slots, context.attemptNumber(), rows)
        worker = this_worker(self._directory)
        directory = worker.directory
        noted = read_note(directory, key)
        answer: bytes | None = None
        if noted is not None and noted != worker.address and work.attempt == 0:
            answer = hand_over_work(noted, key, work, self._payloads, patience_s=_BUSY_S)
        if answer is not None:
            return msgspec.msgpack.decode(answer, type=list[Sent])
        if noted != worker.address:
            # Before the work: a second job waits for this process then, instead of opening tasks in another one.
            write_note(directory, key, worker.address)
        return worker.run_here(work, self._payloads)


def slot_key(slot: int) -> str:
    """Returns the key under which it is noted which process has the tasks of a slot open, or their standby copies."""
    return f"slot-{slot}"


def standby_key(slot: int) -> str:
    """Returns the key of work on standby copies, which goes to the same process."""
    return f"standby-{slot}"


# Any: pyspark's Broadcast is generic in what it carries.
def hand_over_work(
    address: str, key: str, work: Work, payloads: Mapping[str, Any], *, patience_s: float = 0.0
) -> bytes | None:
    """Hands work over, with the payloads of applications if the other process lacks one of them."""
    try:
        return hand_over(address, key, _encode(work), patience_s=patience_s)
    except WorkFailedError as error:
        if error.failure != _UNKNOWN:
            raise
        work.payloads = {digest: payloads[digest].value for digest in work.digests}
        return hand_over(address, key, _encode(work), patience_s=patience_s)


class Worker:
    """State of a Python worker between jobs: the tasks that it has open."""

    def __init__(self, directory: Path) -> None:
        prepare_worker()
        self.directory = directory
        """Where workers of this machine find each other."""
        self._busy = threading.Lock()
        """Held while a slot runs: two at once in one process would only wait for each other."""
        self._plans: tuple[str, list[PlanMessage]] = "", []
        self._runners: dict[str, tuple[Application, TaskRunner]] = {}
        self._slots: dict[tuple[str, int], Mapping[str, int]] = {}
        self._count = 0
        """Slots over which tasks are spread."""
        self._opened: dict[str, int | None] = {}
        """Keys of work that is done here; with the slot, if it is the slot's own."""
        self._server = WorkServer(
            directory,
            self._do_for_other,
            self._busy,
            knows=self._opened.__contains__,
            on_refused=self._make_way,
            # Spark, which has given the work to another process, asks for that one's only.
            afterwards=GARBAGE.collect,
        )

    @property
    def address(self) -> str:
        return self._server.address

    def run_here(self, work: SlotWork, payloads: Mapping[str, Any]) -> list[Sent]:
        with self._busy:
            self._open_all([planned.digest for planned in self._read_plans(work.plans)], payloads)
            self._opened |= {work.key: work.slot, standby_key(work.slot): None}
            return self._run(work)

    def stand_by_here(self, work: StandbyWork, payloads: Mapping[str, Any]) -> int | None:
        """Keeps or closes copies of a slot; tells how many records the task with the oldest copy would restore.

        None says that this is not known yet, or that other work is done here.
        """
        if not self._busy.acquire(timeout=_STANDBY_PATIENCE_S):
            return None
        try:
            self._open_all(work.digests, payloads)
            self._opened |= {slot_key(work.slot): work.slot, standby_key(work.slot): None}
            return self._stand_by(work)
        finally:
            self._busy.release()

    def _open_all(self, digests: Iterable[str], payloads: Mapping[str, Any]) -> None:
        for digest in self._runners.keys() - payloads.keys():
            self._forget(digest)
        for digest in digests:
            if digest not in self._runners:
                self._open(digest, payloads[digest].value)

    def _forget(self, digest: str) -> None:
        self._runners.pop(digest)[1].close()
        self._slots = {key: slots for key, slots in self._slots.items() if key[0] != digest}

    def _do_for_other(self, _key: str, data: bytes) -> bytes:
        work = _WORK.decode(data)
        for digest, payload in work.payloads.items():
            if digest not in self._runners:
                self._open(digest, payload)
        is_slot = isinstance(work, SlotWork)
        digests = [planned.digest for planned in self._read_plans(work.plans)] if is_slot else work.digests
        if not self._runners.keys() >= set(digests):
            message = "an application is not known here"
            raise WorkFailedError(message, _UNKNOWN)
        return _encode(self._run(work) if is_slot else self._stand_by(work))

    def _stand_by(self, work: StandbyWork) -> int | None:
        self._spread_over(work.slots)
        lags: list[int | None] = [0]
        for digest, (_, runner) in self._runners.items():
            for place in self._places(digest, work.slot):
                if digest in work.digests:
                    lags.append(runner.follow(place))
                else:
                    runner.close_task(place)
        known = [lag for lag in lags if lag is not None]
        return max(known) if len(known) == len(lags) else None

    def _make_way(self, key: str) -> None:
        """Closes standby copies of a slot that another process is to run, because this one has other work."""
        slot = self._opened.get(key)
        if slot is None:
            return
        for digest, (_, runner) in list(self._runners.items()):
            # The thread that does the other work may be about to close it.
            with suppress(KeyError):
                for place in self._places(digest, slot):
                    runner.close_standby(place)

    def _spread_over(self, slots: int) -> None:
        if slots != self._count:
            self._count = slots
            for _, runner in self._runners.values():
                runner.close_standbys()

    def _places(self, digest: str, slot: int) -> list[TaskPlace]:
        """Returns the tasks of an application in a slot."""
        slots = self._slots_of(digest, self._count)
        return [place for place in self._runners[digest][0].layout.tasks if slots[place.name] == slot]

    def _read_plans(self, text: str) -> list[PlanMessage]:
        if self._plans[0] != text:
            self._plans = text, msgspec.json.decode(text, type=list[PlanMessage])
        return self._plans[1]

    def _open(self, digest: str, data: bytes) -> None:
        application: Application = cloudpickle.loads(data)
        self._runners[digest] = application, TaskRunner(application, check=self._check)

    def _check(self) -> None:
        self._server.check()

    def _run(self, work: SlotWork) -> list[Sent]:
        self._spread_over(work.slots)
        blobs: dict[tuple[str, str], list[EdgeBlob]] = {}
        failed: set[str] = set()
        for key, what in (row for data in work.rows for row in unpack_rows(data)):
            if isinstance(what, EdgeBlob):
                blobs.setdefault((key, what.receiver), []).append(what)
            elif isinstance(what, Failed):
                failed.add(key)
        out: dict[Place, list[Row]] = {}
        told = out.setdefault((work.depth, work.slot), [])
        location = executor_location()
        if location is not None:
            told.append(("", SlotLocation(work.slot, location)))
        for planned in self._read_plans(work.plans):
            runner, places = self._runners[planned.digest][1], self._places(planned.digest, work.slot)
            for place in places:
                if place.level != work.level or planned.key in failed:
                    continue
                own = blobs.get((planned.key, place.name), [])
                if has_work(place, planned.plan, own) and not self._run_task(runner, planned, place, own, work, out):
                    failed.add(planned.key)
            if work.level == 0:
                restores = (place for place in places if place.name in planned.plan.restores)
                told += [(planned.key, runner.restore(place)) for place in restores]
        for key in failed:
            for level in range(work.level + 1, work.depth):
                for slot in range(work.slots):
                    out.setdefault((level, slot), []).append((key, Failed(None)))
        return [Sent(*place, pickle.dumps(rows, protocol=5)) for place, rows in out.items() if rows]

    def _run_task(
        self,
        runner: TaskRunner,
        planned: PlanMessage,
        place: TaskPlace,
        blobs: list[EdgeBlob],
        work: SlotWork,
        out: dict[Place, list[Row]],
    ) -> bool:
        """Runs a task; returns whether it went well."""
        told = out[work.depth, work.slot]
        try:
            edges, report = runner.run(place, planned.plan, blobs, attempt=work.attempt)
        except Exception as error:
            failure = as_failure(place.name, error)
            write_failure_note(self._runners[planned.digest][0].directory, place.name, failure)
            told.append((planned.key, Failed(Failure.of(failure))))
            return False
        layout = self._runners[planned.digest][0].layout
        slots = self._slots_of(planned.digest, work.slots)
        for edge in edges:
            where = (layout.by_name[edge.receiver].level, slots[edge.receiver])
            out.setdefault(where, []).append((planned.key, edge))
        told.append((planned.key, report))
        return True

    def _slots_of(self, digest: str, slots: int) -> Mapping[str, int]:
        found = self._slots.get((digest, slots))
        if found is None:
            application = self._runners[digest][0]
            found = self._slots[digest, slots] = slots_of(application.key, application.layout, slots)
        return found


_encode = msgspec.msgpack.Encoder().encode
_WORK = msgspec.msgpack.Decoder(Work)


@cache
def this_worker(directory: str) -> Worker:
    """Returns what this process keeps; ``directory`` is where workers on the driver's machine find each other."""
    return Worker(work_directory(Path(directory)))
