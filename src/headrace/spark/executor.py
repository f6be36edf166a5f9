"""Spark as the executor of micro-batches: each one is a job, each level a stage."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.batches.application import Application
from headrace.batches.plan import Plan
from headrace.batches.reports import Outcome, TaskReport
from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.private_directory import own_temporary_directory
from headrace.spark.failures import reason
from headrace.spark.jvm import jvm_exit_code
from headrace.spark.level import PLANS_PROPERTY, Failed, Level, Packed, Planned, unpack_rows
from headrace.spark.payload import Payload
from headrace.spark.session import close_session, open_session, shuffle_partitions


class SparkExecutor:
    """Runs micro-batches as Spark jobs; see ``headrace.batches.executor.Executor``."""

    def __init__(self, config: StreamsConfig, directory: Path, keep_open: Sequence[int] = ()) -> None:
        self._config = config
        self._directory = directory
        self._session = open_session(config, partitions=1, directory=directory, keep_open=keep_open)
        self._context = self._session.sparkContext
        self._applications: dict[str, Application] = {}
        self._digests: dict[str, str] = {}
        # Any: pyspark's Broadcast is generic in what it carries.
        self._payloads: dict[str, Any] = {}
        self._single: Any = None
        self._affinity = own_temporary_directory() / f"affinity-{self._context.applicationId}"
        self._is_cancelled = False

    def add(self, application: Application) -> None:
        payload = Payload.of(application)
        self._applications[application.key] = application
        self._digests[application.key] = payload.digest
        self._payloads[payload.digest] = self._context.broadcast(payload.data)
        self._single = None

    def remove(self, application: Application) -> None:
        del self._applications[application.key]
        self._payloads.pop(self._digests.pop(application.key)).destroy()
        self._single = None

    @property
    def _slots(self) -> int:
        widest = 1
        for application in self._applications.values():
            counts: dict[int, int] = {}
            for place in application.layout.tasks:
                counts[place.level] = counts.get(place.level, 0) + 1
            widest = max(widest, *counts.values()) if counts else widest
        return shuffle_partitions(self._config, widest)

    def run(self, plans: Mapping[str, Plan]) -> Mapping[str, Outcome]:
        planned = [Planned(key, self._digests[key], plan) for key, plan in plans.items()]
        depth = max(self._applications[key].layout.depth for key in plans)
        self._context.setLocalProperty(PLANS_PROPERTY, msgspec.json.encode(planned).decode())
        self._context.setJobDescription(_described(plans))
        try:
            packed: list[Packed] = self._rdd(depth).collect()
        except Exception as error:
            raise self._explained(error) from error
        reports: dict[str, list[TaskReport]] = {key: [] for key in plans}
        failures: dict[str, BaseException] = {}
        for key, what in (row for _, data in packed for row in unpack_rows(data)):
            if isinstance(what, TaskReport):
                reports[key].append(what)
            elif isinstance(what, Failed) and what.failure is not None:
                failures.setdefault(key, what.failure.restored())
        return {key: Outcome(reports[key], failures.get(key)) for key in plans}

    def _rdd(self, depth: int) -> Any:
        """Returns the stages of a job; those of one level are used again, since they leave no shuffle behind."""
        slots = self._slots
        if depth == 1 and self._single is not None:
            return self._single
        rdd = self._context.parallelize(range(slots), slots).mapPartitionsWithIndex(self._level(0, slots))
        if depth == 1:
            self._single = rdd
        for level in range(1, depth):
            rdd = rdd.partitionBy(slots, _as_it_is).mapPartitionsWithIndex(self._level(level, slots))
        return rdd

    def _level(self, level: int, slots: int) -> Level:
        return Level(level, slots, str(self._affinity), self._payloads)

    def _explained(self, error: BaseException) -> StreamsError:
        code = jvm_exit_code(error)
        said = reason(error) if code is None else f"its Java process has ended, with exit code {code}"
        return StreamsError(f"Spark could not run a micro-batch: {said}; more is in '{self._directory / 'spark.log'}'")

    def cancel(self) -> None:
        self._is_cancelled = True
        self._context.cancelAllJobs()

    def close(self) -> None:
        close_session(self._session)
        shutil.rmtree(self._affinity, ignore_errors=True)


def _as_it_is(slot: int) -> int:
    return slot


def _described(plans: Mapping[str, Plan]) -> str:
    if len(plans) > 1:
        return f"{len(plans)} applications, {sum(plan.records for plan in plans.values())} records"
    return ", ".join(f"{key}: batch {plan.batch_id}, {plan.records} records" for key, plan in plans.items())
