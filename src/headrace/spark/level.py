"""One level of a micro-batch in a Spark task: the tasks of a slot, one after the other.

Between two levels, rows go to slots: blobs for tasks there, what a task has reported, and the names of applications in
which a task has failed. Reports pass through all later levels to the driver. The tasks of an application that has
failed do not run any more, in whichever slot: a part of their input is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import msgspec
from pyspark import TaskContext, cloudpickle

from headrace.batches.application import Application
from headrace.batches.executor import as_failure
from headrace.batches.layout import Layout, TaskPlace
from headrace.batches.plan import Plan
from headrace.batches.reports import TaskReport
from headrace.batches.task_runner import TaskRunner, has_work
from headrace.spark.failures import Failure
from headrace.spark.worker_logging import leave_failures_to_the_driver
from headrace.topics.journal import EdgeBlob

PLANS_PROPERTY = "headrace.plans"
"""Local property of the job in which workers find the plans of its applications."""


class Failed(NamedTuple):
    """Says that a task of an application has failed, and why, if it is for the driver."""

    failure: Failure | None


Row: TypeAlias = tuple[str, EdgeBlob | TaskReport | Failed]
"""An application, and something of it."""


class Planned(msgspec.Struct, array_like=True):
    """A plan as it travels to the workers."""

    key: str
    digest: str
    """Of the payload."""
    plan: Plan


def slot_of(key: str, layout: Layout, slots: int) -> Mapping[str, int]:
    """Returns the slot of each task: those of a level are spread evenly, and applications begin at different slots."""
    first, counts, found = crc32(key.encode()), dict[int, int](), dict[str, int]()
    for place in layout.tasks:
        number = counts.get(place.level, 0)
        counts[place.level] = number + 1
        found[place.name] = (first + number) % slots
    return found


class Level:
    """Runs the tasks of one level in one slot; what comes out are rows with the slot that they go to."""

    def __init__(self, level: int, slots: int, payloads: Mapping[str, object]) -> None:
        self._level = level
        self._slots = slots
        self._payloads = payloads
        """Broadcasts by digest."""

    # Any: level 0 gets numbers of slots, the others rows with the slot that they were sent to.
    def __call__(self, slot: int, rows: Iterable[Any]) -> Iterator[tuple[int, Row]]:
        context = TaskContext.get()
        assert context is not None, "levels run inside of Spark's tasks"
        text = context.getLocalProperty(PLANS_PROPERTY)
        assert text is not None, "the driver sets the plans before it starts a job"
        attempt = context.attemptNumber()
        blobs: dict[tuple[str, str], list[EdgeBlob]] = {}
        failed: set[str] = set()
        for _, (key, what) in rows if self._level else ():
            if isinstance(what, EdgeBlob):
                blobs.setdefault((key, what.receiver), []).append(what)
            elif isinstance(what, Failed) and what.failure is None:
                failed.add(key)
            else:
                yield slot, (key, what)
        worker = _worker()
        for planned in worker.plans(text):
            if planned.key in failed:
                yield from self._told(planned.key)
                continue
            application = worker.application(planned, self._payloads)
            slots = worker.slots(application, self._slots)
            for place in application.layout.tasks:
                if place.level != self._level or slots[place.name] != slot:
                    continue
                own = blobs.get((planned.key, place.name), [])
                if has_work(place, planned.plan, own):
                    yield from self._run(worker, planned, application, place, own, attempt, slot)

    def _run(
        self,
        worker: Worker,
        planned: Planned,
        application: Application,
        place: TaskPlace,
        blobs: list[EdgeBlob],
        attempt: int,
        slot: int,
    ) -> Iterator[tuple[int, Row]]:
        key, slots = planned.key, worker.slots(application, self._slots)
        try:
            edges, report = worker.runner(planned.digest).run(place, planned.plan, blobs, attempt=attempt)
        except Exception as error:
            yield slot, (key, Failed(Failure.of(as_failure(place.name, error))))
            yield from self._told(key)
            return
        for edge in edges:
            yield slots[edge.receiver], (key, edge)
        yield slot, (key, report)

    def _told(self, key: str) -> Iterator[tuple[int, Row]]:
        """Tells all slots that an application has failed."""
        return ((slot, (key, Failed(None))) for slot in range(self._slots))


class Worker:
    """What a Python worker keeps from one job to the next."""

    def __init__(self) -> None:
        leave_failures_to_the_driver()
        self._plans: tuple[str, list[Planned]] = "", []
        self._applications: dict[str, Application] = {}
        self._runners: dict[str, TaskRunner] = {}
        self._slots: dict[tuple[str, int], Mapping[str, int]] = {}

    def plans(self, text: str) -> list[Planned]:
        if self._plans[0] != text:
            self._plans = text, msgspec.json.decode(text, type=list[Planned])
        return self._plans[1]

    def application(self, planned: Planned, payloads: Mapping[str, object]) -> Application:
        found = self._applications.get(planned.digest)
        if found is None:
            for digest in self._applications.keys() - payloads.keys():
                self._forget(digest)
            data: bytes = payloads[planned.digest].value  # type: ignore[attr-defined]  # a Broadcast
            found = self._applications[planned.digest] = cloudpickle.loads(data)
            self._runners[planned.digest] = TaskRunner(found)
        return found

    def _forget(self, digest: str) -> None:
        del self._applications[digest]
        self._runners.pop(digest).close()

    def runner(self, digest: str) -> TaskRunner:
        return self._runners[digest]

    def slots(self, application: Application, slots: int) -> Mapping[str, int]:
        found = self._slots.get((application.key, slots))
        if found is None:
            found = self._slots[application.key, slots] = slot_of(application.key, application.layout, slots)
        return found


_lock = threading.Lock()
_workers: list[Worker] = []


def _worker() -> Worker:
    with _lock:
        if not _workers:
            _workers.append(Worker())
        return _workers[0]
