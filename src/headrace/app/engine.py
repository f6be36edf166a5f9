"""Engine protocol: the calls that an application makes to whatever runs its topology, Spark or this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from headrace.batches.batch_engine import BatchEngine, EngineListener, own_loop
from headrace.batches.executor import LocalExecutor
from headrace.config import StreamsConfig
from headrace.errors import MissingDependencyError
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology

# Any: the engine's own report, whose module may need packages that are optional.
Batch: TypeAlias = Any
BatchListener: TypeAlias = Callable[[Batch], object]


class Engine(Protocol):
    """Runs one topology."""

    def run(self, *, until_end: bool = False) -> None:
        """Returns after ``stop``, at once if that came first, or with ``until_end`` at the end of the input.

        Raises what it failed of; then it may be called again and goes on from the last commit.
        """
        ...

    def stop(self) -> None:
        """Makes ``run`` return soon. Any thread may call it, a signal handler too, and more than once."""
        ...

    def cancel(self) -> None:
        """Makes ``run`` return in the middle of a batch, of which nothing is kept. Any thread may call it.

        It is for functions of the user that never return.
        """
        ...

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def metrics(self) -> Mapping[str, Any]: ...


class EngineFactory(Protocol):
    """Makes the engine of an application; nothing runs yet."""

    def __call__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: DurableLog,
        *,
        listener: EngineListener,
        directory: Path,
    ) -> Engine: ...


def local_engine(
    topology: Topology,
    config: StreamsConfig,
    log: DurableLog,
    *,
    listener: EngineListener,
    directory: Path,
) -> Engine:
    """Makes an engine that runs tasks in this process."""
    return BatchEngine(
        topology,
        config,
        log,
        listener=listener,
        directory=directory,
        open_loop=lambda _config, _directory, check: own_loop(LocalExecutor(check=check), log),
    )


def spark_engine() -> EngineFactory:
    """Returns the factory of Spark's engine, or says how to get it."""
    try:
        from headrace.spark.spark_engine import spark_engine as make
    except ImportError as error:
        raise missing_spark(error) from error
    return make


def missing_spark(error: ImportError) -> Exception:
    """Returns the error that says how to get Spark, for one of an import of its engine."""
    package = (error.name or "").partition(".")[0]
    if package == "headrace":
        return error
    message = (
        f"running a topology needs Apache Spark, and the package '{package}' is not installed; "
        "run `pip install 'headrace[spark]'`"
    )
    return MissingDependencyError(message)
