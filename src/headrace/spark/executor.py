"""Spark as the executor of micro-batches: each one is a job, each level a stage."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no annotations

from headrace.batches.application import Application
from headrace.batches.plan import Plan
from headrace.batches.reports import Outcome, TaskReport
from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.private_directory import make_private, own_temporary_directory
from headrace.spark.cluster import Cluster
from headrace.spark.context import close_context, open_context, slots, with_spare_threads
from headrace.spark.failures import reason
from headrace.spark.jobs import StagedJob
from headrace.spark.jvm import jvm_exit_code
from headrace.spark.level import (
    APART_PROPERTY,
    PLANS_PROPERTY,
    Failed,
    Level,
    PlanMessage,
    Row,
    SlotLocation,
    slots_of,
    unpack_rows,
)
from headrace.spark.payload import Payload
from headrace.spark.placement import Demand, Placement, UntoldMoves
from headrace.spark.standby_job import Answers, Orders, run_standby_job


class SparkExecutor:
    """Runs micro-batches as Spark jobs; see ``headrace.batches.executor.Executor``. Any number may run at once.

    With a local master ``spare`` tasks may hang without keeping others from running.
    """

    def __init__(self, config: StreamsConfig, directory: Path, *, spare: int = 0) -> None:
        self._config = config
        self._directory = directory
        self._context = open_context(with_spare_threads(config, spare), directory=directory)
        self._affinity = make_private(own_temporary_directory() / f"affinity-{self._context.applicationId}")
        self._lock = threading.Lock()
        self._applications: dict[str, Application] = {}
        self._digests: dict[str, str] = {}
        # Any: pyspark's Broadcast is generic in what it carries.
        self._payloads: dict[str, Any] = {}
        self._generation = 0
        """Version of the set of applications: jobs for an older version are not used again."""
        self._idle: dict[tuple[int, int, int], list[StagedJob]] = {}
        """Jobs that can be run again, by generation, depth and slots."""
        self._running: list[tuple[StagedJob, frozenset[str]]] = []
        """Jobs, and the applications that are in them."""
        self._moves = UntoldMoves()
        cluster = Cluster(self._context)
        self._placement = Placement(
            config,
            demand=self._demand,
            look=cluster.executors,
            is_alive=cluster.is_alive,
            keep=self._keep_standbys,
        )

    def add(self, application: Application) -> None:
        payload = Payload.of(application)
        broadcast = self._context.broadcast(payload.data)
        with self._lock:
            self._applications[application.key] = application
            self._digests[application.key] = payload.digest
            self._payloads[payload.digest] = broadcast
            self._renew()

    def remove(self, application: Application) -> None:
        with self._lock:
            del self._applications[application.key]
            self._moves.forget(application.key)
            broadcast = self._payloads.pop(self._digests.pop(application.key))
            self._renew()
        # Nothing is left of it in a JVM that has died, and why it died is told elsewhere.
        with suppress(Py4JError, OSError):
            broadcast.unpersist()

    def _renew(self) -> None:
        self._generation += 1
        self._idle.clear()

    def run(self, plans: Mapping[str, Plan], *, apart: bool = False) -> Mapping[str, Outcome]:
        planned = [PlanMessage(key, self._digests[key], plan) for key, plan in plans.items()]
        depth = max(self._applications[key].layout.depth for key in plans)
        properties = {
            PLANS_PROPERTY: msgspec.json.encode(planned).decode(),
            APART_PROPERTY: "/".join(plans) if apart else "",
        }
        try:
            with self._job(depth, frozenset(plans)) as (job, count):
                packed = job.run(properties, _describe_job(plans), self._placement.preferred(count))
        except Exception as error:
            raise self._explain_error(error) from error
        rows = [row for data in packed for row in unpack_rows(data)]
        if not apart:
            self._note_locations(rows)
        return _outcomes(plans, rows)

    def _note_locations(self, rows: Sequence[Row]) -> None:
        located = [what for _, what in rows if isinstance(what, SlotLocation)]
        for each in located:
            self._placement.note(each.slot, each.executor)
        if located:
            self._placement.start()

    def warm_up(self) -> None:
        """Has Spark start a Python worker, so that the first micro-batch need not wait for it."""
        try:
            with self._job(1, frozenset()) as (job, _):
                job.run({PLANS_PROPERTY: "[]", APART_PROPERTY: ""}, "warm-up")
        except Exception as error:
            raise self._explain_error(error) from error

    @contextmanager
    def _job(self, depth: int, keys: frozenset[str]) -> Iterator[tuple[StagedJob, int]]:
        """Gives a job of so many levels, and how many slots it has; one that runs is nobody else's."""
        with self._lock:
            count = slots(self._config, self._largest_level())
            shape = (self._generation, depth, count)
            idle = self._idle.get(shape)
            job = idle.pop() if idle else self._make_job(depth, count)
            self._running.append((job, keys))
        try:
            yield job, count
        finally:
            with self._lock:
                self._running.remove((job, keys))
                if shape[0] == self._generation:
                    self._idle.setdefault(shape, []).append(job)

    def _make_job(self, depth: int, count: int) -> StagedJob:
        payloads = dict(self._payloads)
        levels = [Level(level, depth, count, str(self._affinity), payloads) for level in range(depth)]
        return StagedJob(self._context, levels, count)

    def _largest_level(self) -> int:
        """Returns how many tasks the largest level of any application has."""
        widest = 1
        for application in self._applications.values():
            counts: dict[int, int] = {}
            for place in application.layout.tasks:
                counts[place.level] = counts.get(place.level, 0) + 1
            widest = max([widest, *counts.values()])
        return widest

    def _demand(self) -> Demand:
        with self._lock:
            count = slots(self._config, self._largest_level())
            stateful: set[int] = set()
            replicas = 0
            for application in self._applications.values():
                layout, slot_of = application.layout, slots_of(application.key, application.layout, count)
                stateful |= {slot_of[place.name] for place in layout.tasks if place.changelogs}
                replicas = max(replicas, layout.config.num_standby_replicas)
            return Demand(count, frozenset(stateful), replicas, self._generation)

    def _keep_standbys(self, orders: Orders, locations: Mapping[str, list[str]], demand: Demand) -> Answers:
        with self._lock:
            payloads = dict(self._payloads)
            replicas = {
                digest: self._applications[key].layout.config.num_standby_replicas
                for key, digest in self._digests.items()
            }
        try:
            return run_standby_job(
                self._context,
                orders,
                locations,
                demand.slots,
                replicas=replicas,
                directory=str(self._affinity),
                payloads=payloads,
            )
        except Exception as error:
            message = f"Spark could not run the standby job: {reason(error)}"
            raise StreamsError(message) from error

    def _explain_error(self, error: BaseException) -> StreamsError:
        code = jvm_exit_code(error)
        said = reason(error) if code is None else f"its Java process has ended, with exit code {code}"
        return StreamsError(f"Spark could not run a micro-batch: {said}; more is in '{self._directory / 'spark.log'}'")

    def moving(self, plans: Mapping[str, Plan]) -> Mapping[str, Collection[str]]:
        moved = self._placement.take_moves()
        with self._lock:
            self._moves.add(moved, self._applications)
            if not self._moves:
                return {}
            count = slots(self._config, self._largest_level())
            return {
                key: self._moves.take(
                    key, (*plan.ranges, *plan.due), slots_of(key, self._applications[key].layout, count)
                )
                for key, plan in plans.items()
            }

    def cancel(self, keys: Collection[str]) -> None:
        # With the lock: a job that ends now would be used again, and that of other applications would be cancelled.
        with self._lock:
            for job, planned in self._running:
                if not planned.isdisjoint(keys):
                    # Those of a JVM that has died end by themselves.
                    with suppress(Py4JError, OSError):
                        job.cancel()

    def close(self) -> None:
        self._placement.close()
        close_context(self._context)
        shutil.rmtree(self._affinity, ignore_errors=True)


def _outcomes(plans: Mapping[str, Plan], rows: Sequence[Row]) -> dict[str, Outcome]:
    reports: dict[str, list[TaskReport]] = {key: [] for key in plans}
    failures: dict[str, BaseException] = {}
    for key, what in rows:
        if isinstance(what, TaskReport):
            reports[key].append(what)
        elif isinstance(what, Failed) and what.failure is not None:
            failures.setdefault(key, what.failure.restored())
    return {key: Outcome(reports[key], failures.get(key)) for key in plans}


def _describe_job(plans: Mapping[str, Plan]) -> str:
    if len(plans) > 1:
        return f"{len(plans)} applications, {sum(plan.records for plan in plans.values())} records"
    return ", ".join(f"{key}: batch {plan.batch_id}, {plan.records} records" for key, plan in plans.items())
