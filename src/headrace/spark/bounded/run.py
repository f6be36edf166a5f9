"""One backfill on Spark: its job, and the results, which stay on disk until it is closed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no annotations
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.batches.bounded_input import as_table, global_topics
from headrace.batches.bounded_rows import BoundedJob, RowKind, ShuffleRow
from headrace.batches.bounded_run import RESULTS, run_rounds
from headrace.errors import ConfigError, StreamsError, TopologyError, describe_value
from headrace.serdes import Serde
from headrace.spark.bounded.frames import Frame, FrameShuffle
from headrace.spark.bounded.input_rows import InputRows
from headrace.spark.bounded.output_rows import output_frame, sink_serdes
from headrace.spark.bounded.row_pages import local_pages
from headrace.spark.failures import reason
from headrace.spark.shipping import check_shippable
from headrace.topics.log import TopicPartition


def as_input_rows(inputs: Mapping[str, InputRows | DataFrame | None]) -> dict[str, InputRows | None]:
    """Returns what was given for each topic as rows; None for a topic without history."""
    found: dict[str, InputRows | None] = {}
    for topic, given in inputs.items():
        if given is not None and not isinstance(given, InputRows | DataFrame):
            message = (
                f"backfill: the input '{topic}' must be a data frame of Spark, or InputRows that name its columns; "
                f"found {describe_value(given)}"
            )
            raise ConfigError(message)
        found[topic] = InputRows(rows=given) if isinstance(given, DataFrame) else given
    return found


def rows_before(
    inputs: Mapping[str, InputRows | None], cut: int | Mapping[TopicPartition, int]
) -> dict[str, InputRows | None]:
    """Returns the rows of all topics before a cut."""
    return {topic: None if rows is None else rows.before(topic, cut) for topic, rows in inputs.items()}


def session_of(inputs: Mapping[str, InputRows | None]) -> SparkSession:
    """Returns the session of the data frames."""
    for given in inputs.values():
        if given is not None:
            return given.rows.sparkSession
    message = "backfill: no input has a history; give at least one data frame"
    raise ConfigError(message)


def default_tasks(inputs: Mapping[str, InputRows | None]) -> int:
    """Returns as many tasks as Spark runs at once."""
    return session_of(inputs).sparkContext.defaultParallelism


class BackfillRun:
    """Runs a backfill when it is made. Close it after use."""

    def __init__(self, job: BoundedJob, inputs: Mapping[str, InputRows | None]) -> None:
        check_shippable(job.layout.topology, job.layout.config)
        self._layout = job.layout
        self._shuffle = FrameShuffle(session_of(inputs))
        rows = {topic: given for topic, given in inputs.items() if given is not None}
        tables = global_topics(job.layout.topology)
        try:
            with _translate_errors():
                found = {
                    topic: as_table(self._shuffle.records(job, topic, rows[topic])) for topic in tables & rows.keys()
                }
                job = replace(job, tables=found)
                frames = [
                    self._shuffle.input(job, topic, given) for topic, given in rows.items() if topic not in tables
                ]
                if not frames:
                    message = "backfill: only global tables have a history; give a data frame for another topic"
                    raise ConfigError(message)
                self._results = self._merge_frames(run_rounds(job, frames, self._shuffle))
                # Runs everything: what is asked for later is read from the disk.
                counted = self._results.groupBy("kind", "topic").agg(F.sum("count").alias("records")).collect()
        except BaseException:
            self._shuffle.close()
            raise
        self.counts: dict[str, int] = {row["topic"]: row["records"] for row in counted if row["kind"] == RowKind.OUTPUT}
        """How many records there are for each topic."""

    def _merge_frames(self, sent: list[Frame]) -> DataFrame:
        wanted = [int(kind) for kind in RESULTS]
        return reduce(DataFrame.unionAll, [frame.pages for frame in sent]).filter(F.col("kind").isin(wanted))

    # Any: keys and values are the user's.
    def output(
        self, topic: str, schema: str | None, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
    ) -> DataFrame:
        """Returns the records of a topic."""
        keys, values = sink_serdes(self._layout.topology, self._layout.config, topic)
        return output_frame(self._results, topic, (key_serde or keys, value_serde or values), schema)

    def rows(self, *kinds: RowKind) -> Iterator[ShuffleRow]:
        """Returns results of some kinds, all of a task in the order in which it has made them."""
        chosen = self._results.filter(F.col("kind").isin([int(kind) for kind in kinds]))
        with _translate_errors():
            for page in local_pages(chosen):
                yield from page.rows()

    def close(self) -> None:
        self._shuffle.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raises what a task has raised on a worker as an error of ours."""
    try:
        yield
    except TopologyError:
        raise
    except (PySparkException, Py4JJavaError) as error:
        said = reason(error)
        message = f"backfill failed: {said}{_remedy(said)}"
        raise StreamsError(message) from error


def _remedy(said: str) -> str:
    """Returns what to do if workers run another Python than this one, as in a plain session in an environment."""
    context = SparkContext._active_spark_context
    if context is None or not said.startswith(ModuleNotFoundError.__name__):
        return ""
    return (
        f"; Spark's workers run '{context.pythonExec}', which does not have it: set the environment variable "
        f"PYSPARK_PYTHON to {sys.executable} before the session is made, or install it where the workers are"
    )
