"""A function called with several values on Spark's executors: a job for each value, as many at once as there are cores.

Jobs of one task each, and not a job of many: results arrive as soon as they are there, in the order of the values, so
that progress can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no annotations
from pyspark import Broadcast, SparkContext, cloudpickle
from pyspark.errors import PySparkException

from headrace.config import StreamsConfig
from headrace.errors import RetriableError, StreamsError
from headrace.spark.context import check_master, close_context, open_context
from headrace.spark.failures import Failure, reason
from headrace.spark.shipping import check_shippable, pack
from headrace.topology.topology import Topology

A = TypeVar("A")
B = TypeVar("B")


class SparkMap:
    """Calls a function with each of several values; what that raises is raised here, for the first value that fails.

    A task whose executor is lost runs again, and so does one that raises a RetriableError.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._description = f"headrace-{uuid4().hex}"

    def __call__(self, function: Callable[[A], B], values: Sequence[A], /) -> Iterator[B]:
        call = _Call(self._context.broadcast(pack(function)))
        pool = ThreadPoolExecutor(max(1, min(len(values), self._context.defaultParallelism)))
        try:
            for data in pool.map(lambda value: self._run(call, pack(value)), values):
                result = cloudpickle.loads(data)
                if isinstance(result, Failure):
                    raise result.restored()
                yield result
        finally:
            # After a failure, or Ctrl-C, nobody waits for the others.
            pool.shutdown(wait=False, cancel_futures=True)
            self._context.cancelJobsWithTag(self._description)

    def _run(self, call: _Call, value: bytes) -> bytes:
        self._context.addJobTag(self._description)
        try:
            (data,) = self._context.parallelize([value], 1).map(call).collect()
        except (PySparkException, Py4JJavaError) as error:
            message = f"a task failed on Spark: {reason(error)}"
            raise StreamsError(message) from error
        return data


class _Call:
    """Calls the function on a worker."""

    # Any: pyspark's Broadcast is generic in what it carries.
    def __init__(self, function: Broadcast[Any]) -> None:
        self._function = function

    def __call__(self, value: bytes) -> bytes:
        try:
            return pack(_unpacked(self._function.value)(cloudpickle.loads(value)))
        except RetriableError:
            raise
        except StreamsError as error:
            return pack(Failure.of(error))


# Any: the caller knows what was packed. One log per process and phase is enough.
@lru_cache(maxsize=1)
def _unpacked(data: bytes) -> Any:
    return cloudpickle.loads(data)


@contextmanager
def open_spark_map(topology: Topology, config: StreamsConfig, directory: Path) -> Iterator[SparkMap]:
    """Starts Spark for functions that contain a topology, with its settings, and with files in a directory."""
    check_shippable(topology, config)
    check_master(config)
    context = open_context(config, directory=directory)
    try:
        yield SparkMap(context)
    finally:
        close_context(context)
