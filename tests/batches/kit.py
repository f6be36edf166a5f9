"""An application whose micro-batches a test runs one by one, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace import EmbeddedLog, Materialized, Serdes, StreamsBuilder, StreamsConfig
from headrace.app.topics import external_partitions, internal_topics, make_internal
from headrace.batches.application_run import ApplicationRun
from headrace.batches.executor import LocalExecutor
from headrace.batches.layout import Layout
from headrace.batches.live_task import LiveTask
from headrace.batches.plan import Plan
from headrace.batches.planner import Planner
from headrace.batches.reports import BatchReport, Outcome
from headrace.batches.task_runner import TaskRunner
from headrace.topics.journal import DurableLog
from tests.json_records import json_outputs

Build = Callable[[StreamsBuilder], Any]


def summing(builder: StreamsBuilder) -> None:
    """Adds the numbers of each key up."""
    totals = (
        builder.stream("in")
        .group_by_key()
        .aggregate(
            lambda: 0,
            lambda _key, value, total: total + value,
            materialized=Materialized("totals", key_serde=Serdes.string(), value_serde=Serdes.json()),
        )
    )
    totals.to_stream().to("out")


class Bench:
    """A log with topics, and an application of which a test starts any number of drivers."""

    def __init__(
        self,
        directory: Path,
        build: Build,
        topics: Mapping[str, int],
        *,
        log: DurableLog | None = None,
        **settings: Any,
    ) -> None:
        self.directory = directory
        self.log: DurableLog = log or EmbeddedLog(directory / "log", sync="none", map_size=1 << 22)
        for topic, partitions in topics.items():
            self.log.create_topic(topic, partitions=partitions)
        # Without an interval a batch comes as soon as there is something to do.
        self.config = StreamsConfig.of({"application_id": "app", "commit.interval.ms": 0, **settings})
        builder = StreamsBuilder(self.config)
        build(builder)
        self.topology = builder.build(self.config)
        external = external_partitions(self.topology, "app", self.log)
        make_internal(internal_topics(self.topology, self.config, external), self.config, self.log)
        self.clock_ms = 1_000

    @property
    def layout(self) -> Layout:
        return Layout.on(self.log, self.topology, self.config)

    def driver(self, host: str = "host", *, executor: LocalExecutor | None = None, until_end: bool = False) -> Driver:
        """Starts a driver with its executor on a machine of this name, which has a disk of its own."""
        return Driver(self, self.directory / host, executor or LocalExecutor(), until_end=until_end)

    def write(self, topic: str, *records: tuple[str | None, Any, int], partition: int | None = None) -> None:
        """Appends records of key, JSON value and timestamp."""
        self.log.append(topic, json_outputs(records, partition))

    def read(self, topic: str) -> list[tuple[str | None, Any]]:
        """Returns keys and JSON values of a topic, partition by partition."""
        return [
            (None if key is None else key.decode(), None if value is None else json.loads(value))
            for partition in range(self.log.partitions_of(topic))
            for _, _, key, value, _ in self.log.read(
                topic, partition, self.log.begin_offsets([(topic, partition)])[topic, partition]
            )
        ]

    def changelog(self, store: str) -> str:
        return f"app-{store}-changelog"

    def close(self) -> None:
        self.log.close()


class Driver:
    """One run of the application on one machine."""

    def __init__(self, bench: Bench, directory: Path, executor: LocalExecutor, *, until_end: bool) -> None:
        self.directory = directory
        self.executor = executor
        self.application_run = ApplicationRun(
            bench.layout,
            bench.log,
            directory,
            planner=lambda layout, log, state: Planner(
                layout, log, state, until_end=until_end, clock=lambda: bench.clock_ms
            ),
        )
        executor.add(self.application_run.application)

    def execute(self, plan: Plan) -> Outcome:
        return self.executor.run({self.application_run.key: plan})[self.application_run.key]

    def step(self) -> BatchReport | None:
        """Runs the next micro-batch, if there is something to do."""
        plan = self.plan_work()
        return None if plan is None else self.application_run.commit(plan, self.execute(plan))

    def plan_work(self) -> Plan | None:
        """Returns the next plan with work for tasks; before that, tasks that lack little are restored."""
        plan = self.application_run.next_plan()
        if plan is not None and not plan.has_work:
            self.application_run.commit(plan, self.execute(plan))
            plan = self.application_run.next_plan()
        if plan is not None and not plan.has_work:
            self.application_run.commit(plan, self.execute(plan))
            return None
        return plan

    def run(self) -> list[BatchReport]:
        """Runs micro-batches until there is nothing to do."""
        reports = []
        while (report := self.step()) is not None:
            reports.append(report)
        return reports

    @property
    def runner(self) -> TaskRunner:
        return self.executor._runners[self.application_run.key][1]

    def live(self, task: str) -> LiveTask:
        return self.runner._live[task]

    def rows(self, store: str, task: str = "0_0") -> dict[Any, Any]:
        """Returns the rows of a store as its task sees them."""
        return {row.key: row.value for row in self.live(task).task.stores[store].all()}

    def close(self) -> None:
        self.executor.close()
        self.application_run.close()

    def kill(self) -> None:
        """Ends it as a crash does: what was not written to the working copies is lost."""
        for live in self.runner._live.values():
            if live._copy is not None:
                live._copy.close()
        self.runner._live.clear()
        self.close()
