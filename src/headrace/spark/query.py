"""A Spark query over tasks: heartbeats, one stateful operator per level, and a callback for every micro-batch."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headrace.config import StreamsConfig
from headrace.errors import ProcessorStateError, StreamsError
from headrace.spark.application import Application, Payload
from headrace.spark.batch import BatchRunner, OnBatch
from headrace.spark.durable import write_durably
from headrace.spark.failures import reason
from headrace.spark.jvm import jvm_exit_code
from headrace.spark.layout import Layout, Program
from headrace.spark.level import PlainLevel
from headrace.spark.level_processor import LevelProcessor
from headrace.spark.plan import PlanFiles
from headrace.spark.planner import BatchSource
from headrace.spark.receipts import HEARTBEAT, SCHEMA
from headrace.spark.session import (
    DEFAULT_MASTER,
    check_master,
    close_session,
    open_session,
    own_settings,
    shuffle_partitions,
)
from headrace.spark.statelessness import needs_state
from headrace.topics.log import TopicLog
from headrace.topology.queryable import changelogs_of

logger = logging.getLogger(__name__)

_ATTEMPTS = 4


class Query:
    """A Spark query over the tasks of one or more programs, which is fed by a ``BatchSource``."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        log: TopicLog,
        *,
        directory: Path,
        checkpoint: Path,
        keep_open: Sequence[int] = (),
    ) -> None:
        self._config = next(iter(programs.values())).config
        self._keep_open = keep_open
        # Any: Spark's handle, of which there are two kinds.
        self._started: Any = None
        self._is_cancelled = False
        self._checkpoint = checkpoint
        self._directory = directory
        check_master(self._config)
        spark_partitions, checkpoint_id = self._checkpoint_file(programs)
        self._has_state = any(needs_state(program.topology, program.config) for program in programs.values())
        self.application = Application(
            self._config.application_id,
            Layout(programs, spark_partitions),
            log,
            directory,
            {prefix: _changelogs(program) for prefix, program in programs.items()},
            _attempts(self._config),
            checkpoint_id,
        )

    def _checkpoint_file(self, programs: Mapping[str, Program]) -> tuple[int, str]:
        """Returns what belongs to the checkpoint: the number of Spark partitions, which tasks are found by, its id."""
        path = self._checkpoint / "headrace.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return int(found["spark_partitions"]), str(found.get("id", ""))
        except FileNotFoundError:
            per_level = Counter(place.level for place in Layout(programs, 1).tasks)
            number = shuffle_partitions(self._config, max(per_level.values(), default=1))
        except (OSError, ValueError, KeyError) as error:
            message = f"'{path}' cannot be read: {error}; restore the checkpoint from a copy, or reset the application"
            raise ProcessorStateError(message) from error
        own_id = token_hex(8)
        try:
            write_durably(path, json.dumps({"spark_partitions": number, "id": own_id}))
        except OSError as error:
            message = f"the checkpoint '{self._checkpoint}' cannot be written: {error}; choose another checkpoint_dir"
            raise ProcessorStateError(message) from error
        return number, own_id

    def run(self, source: BatchSource, *, on_batch: OnBatch, stopping: threading.Event | None = None) -> None:
        """Blocks until the source ends the query; raises what it failed of.

        ``stopping`` is looked at while Spark starts, which takes seconds; afterwards the source is asked.
        """
        self.application.log.discard_staged(self.application.id)
        payload = Payload.of(self.application)
        runner = BatchRunner(self.application, source, PlanFiles(self._checkpoint / "plans"), on_batch=on_batch)
        session = open_session(
            self._config,
            partitions=self.application.layout.spark_partitions,
            directory=self._directory,
            keep_open=self._keep_open,
        )
        try:
            if stopping is not None and stopping.is_set():
                return
            logger.info("starting the query and its Python workers")
            frame = self._levels(session, payload)
            writer = frame.writeStream.foreachBatch(runner).queryName(self.application.id)
            self._started = writer.option("checkpointLocation", str(self._checkpoint)).start()
            if self._is_cancelled:
                # While it started.
                self._started.stop()
            self._await(self._started, runner)
        finally:
            self._started = None
            close_session(session)

    def cancel(self) -> None:
        """Ends the query in the middle of its batch, which is run again at the next start; from any thread."""
        # First: whoever starts it meanwhile looks at this afterwards.
        self._is_cancelled = True
        started = self._started
        if started is not None:
            started.stop()

    def _await(self, query: Any, runner: BatchRunner) -> None:
        try:
            query.awaitTermination()
        except Exception as error:
            if self._is_cancelled:
                return
            failure = runner.failure or error
            if isinstance(failure, StreamsError):
                raise failure from failure.__cause__
            if runner.failure is not None or "StopQuery" not in str(error):
                raise self._explained(failure) from failure

    def _explained(self, error: BaseException) -> StreamsError:
        code = jvm_exit_code(error)
        said = reason(error) if code is None else f"its Java process has ended, with exit code {code}"
        return StreamsError(
            f"Spark could not run the application '{self.application.id}': {said}; "
            f"more is in '{self._directory / 'spark.log'}'"
        )

    def _levels(self, session: SparkSession, payload: Payload) -> DataFrame:
        layout = self.application.layout
        keys = ", ".join(f"'{place.key}'" for place in layout.tasks)
        tasks = len(layout.tasks)
        # Spark's own source wakes each task once per micro-batch; there is no Python in it.
        beats = (
            session.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", tasks)
            .option("numPartitions", 1 if self._has_state else layout.spark_partitions)
            .load()
        )
        frame = beats.selectExpr(
            f"element_at(array({keys}), cast(value % {tasks} as int) + 1) as task",
            f"'{HEARTBEAT}' as origin",
            "0L as sequence",
            "cast(null as binary) as blob",
        )
        if not self._has_state:
            return frame.mapInPandas(PlainLevel(payload), SCHEMA)
        for level in range(layout.depth):
            frame = frame.groupBy("task").transformWithStateInPandas(
                statefulProcessor=LevelProcessor(payload, level),
                outputStructType=SCHEMA,
                outputMode="append",
                timeMode="None",
            )
        return frame


def _changelogs(program: Program) -> dict[str, str]:
    found = changelogs_of(program.topology, program.config.application_id)
    return {store: program.in_log(topic) for store, topic in found.items()}


def _attempts(config: StreamsConfig) -> int:
    """Returns how often Spark tries a task, as the master or the settings say."""
    own = own_settings(config)
    master = own.get("spark.master", DEFAULT_MASTER)
    if master.startswith("local") and not master.startswith("local-cluster"):
        inside = master.partition("[")[2].rstrip("]")
        return int(inside.partition(",")[2] or 1) if inside else 1
    return int(own.get("spark.task.maxFailures", _ATTEMPTS))
