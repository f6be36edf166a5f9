"""An engine that runs the tasks of an application in this process, without Spark, and applications on it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import EmbeddedLog, Streams, StreamsBuilder, StreamsConfig
from headrace.app.engine import EngineListener
from headrace.query import Position, PositionBound
from headrace.spark.application import Application
from headrace.spark.batch import BatchReport, BatchRunner, StopQuery
from headrace.spark.chunks import Head
from headrace.spark.layout import Program
from headrace.spark.plan import Plan, PlanFiles
from headrace.spark.planner import Planner
from headrace.spark.query import Query
from headrace.spark.receipts import HEARTBEAT, Row, TaskReport
from headrace.spark.task_runner import TaskRunner
from headrace.topics.log import Output, TopicLog
from headrace.topology.topology import Topology

SOON = timedelta(seconds=20)
"""After which a test is taken to hang."""


class _Cells:
    """The state of one task."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._chunks: dict[int, bytes] = {}

    def read_head(self) -> Head | None:
        return self._head

    def write_head(self, head: Head) -> None:
        self._head = head

    def read(self, sequence: int) -> bytes | None:
        return self._chunks.get(sequence)

    def write(self, sequence: int, data: bytes) -> None:
        self._chunks[sequence] = data

    def remove(self, sequence: int) -> None:
        self._chunks.pop(sequence, None)


class _Frame:
    """Stands for the data frame of a micro-batch: whoever collects it runs the levels."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._cells = {place.key: _Cells() for place in application.layout.tasks}
        self._plan: Plan | None = None
        self._runner = TaskRunner(application)
        # What leads from a data frame to the properties of its jobs.
        self.sparkSession = self.sparkContext = self

    def setLocalProperty(self, _name: str, value: str) -> None:
        self._plan = Plan.from_json(value)

    def collect(self) -> list[Row]:
        assert self._plan is not None, "the driver sets the plan before it runs a batch"
        layout = self._application.layout
        rows = [Row(place.key, HEARTBEAT, 0, None) for place in layout.tasks]
        for level in range(layout.depth):
            groups: dict[str, list[Row]] = {}
            for row in rows:
                groups.setdefault(row.task, []).append(row)
            rows = []
            for key, group in groups.items():
                place = layout.by_key[key]
                if place.level == level:
                    rows += self._runner.run(place, self._plan, group, self._cells[key], 0)
                else:
                    rows += group
        return rows

    def close(self) -> None:
        self._runner.close()


class TaskEngine:
    """Runs an application like Spark's engine: same tasks, planner, plans and commits. It starts once."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: TopicLog,
        *,
        listener: EngineListener,
        directory: Path,
        checkpoint: Path,
        keep_open: Sequence[int] = (),
    ) -> None:
        self._topology, self._config, self._log, self._listener = topology, config, log, listener
        self._directory, self._checkpoint = directory, checkpoint
        self._stopping, self._paused = threading.Event(), threading.Event()

    def run(self, *, available_now: bool = False) -> None:
        program = Program.on(self._log, self._topology, self._config)
        query = Query({"": program}, self._log, directory=self._directory, checkpoint=self._checkpoint)
        planner = Planner(query.application, available_now=available_now, stopping=self._stopping, paused=self._paused)
        runner = BatchRunner(query.application, planner, PlanFiles(self._checkpoint / "plans"), on_batch=self._told)
        frame = _Frame(query.application)
        batch_id = 0
        try:
            while True:
                # BatchRunner asks its frame for no more than _Frame has.
                runner(frame, batch_id)  # type: ignore[arg-type]
                batch_id += 1
        except StopQuery:
            return
        except Exception:
            if runner.failure is not None:
                raise runner.failure  # noqa: B904 - it has a cause of its own
            raise
        finally:
            frame.close()

    def _told(self, batch: BatchReport, _tasks: Sequence[TaskReport]) -> None:
        self._listener.on_batch(batch)

    def stop(self) -> None:
        self._stopping.set()

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def metrics(self) -> dict[str, Any]:
        return {}


class Place:
    """A log in a directory, and an application that runs on it in this process."""

    def __init__(self, directory: Path, /, **partitions: int) -> None:
        self.directory = directory
        self.log: TopicLog = self._open()
        for topic, count in partitions.items():
            self.log.create_topic(topic, partitions=count)

    def _open(self) -> TopicLog:
        return EmbeddedLog(self.directory / "log", sync="none")

    def config(self, **settings: Any) -> StreamsConfig:
        known = {"application_id": "app", "state_dir": str(self.directory), "log_sync": "none"}
        return StreamsConfig.of({**known, **settings})

    def streams(self, build: Callable[[StreamsBuilder], Any], **settings: Any) -> Streams:
        config = self.config(**settings)
        return Streams(topology_of(build, config), config, log=self.log, engine=TaskEngine)

    def write(self, topic: str, records: Iterable[tuple[str | None, Any, int]]) -> PositionBound:
        """Appends records of key, JSON value and timestamp; returns the bound of who wants to read them."""
        outputs: list[Output] = [
            (
                None,
                time_ms,
                None if key is None else key.encode(),
                None if value is None else json.dumps(value).encode(),
                (),
            )
            for key, value, time_ms in records
        ]
        return PositionBound.at(Position.after(topic, self.log.append(topic, outputs)))

    def close(self) -> None:
        self.log.close()


def topology_of(build: Callable[[StreamsBuilder], Any], config: StreamsConfig | None = None) -> Topology:
    builder = StreamsBuilder() if config is None else StreamsBuilder(config)
    build(builder)
    return builder.build() if config is None else builder.build(config)
