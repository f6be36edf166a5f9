"""The Spark session of an application: its settings, and how it is opened and closed."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import site
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j has no annotations
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headrace.config import StreamsConfig
from headrace.errors import ConfigError, SparkStartError
from headrace.spark.jvm import (
    driver_options,
    executor_options,
    forget_dead_jvm,
    hand_over_jvm,
    jvm_exit_code,
    launch_jvm,
)
from headrace.spark.jvm_log import write_log_configurations
from headrace.spark.masters import cores, is_local, is_on_this_machine, starts_executors_here

logger = logging.getLogger(__name__)

DEFAULT_MASTER = "local[*,4]"
"""All cores of this machine; a task that fails is tried four times, as on a cluster, where ``local[*]`` gives up."""

_SETTINGS = {
    # Nobody looks at them unless asked for, and they grow with the number of micro-batches.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.log.level": "WARN",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.driver.memory": "2g",
    "spark.sql.catalogImplementation": "in-memory",
    # Never for stateful queries; said here, Spark does not warn of it.
    "spark.sql.adaptive.enabled": "false",
    # Else what crossed a repartition edge stays on the disk until the JVM happens to collect garbage.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # A task prefers the executor that has its state loaded, but does not wait the 3 s of Spark's default for it.
    "spark.locality.wait": "1s",
    "spark.python.worker.reuse": "true",
    # Remembers the line of the program for every column expression.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Sockets in the file system make a call to the state about a third cheaper than TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # The largest number skips the computation of each row's size; batches are small in rows anyway.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # State is RocksDB: a changelog per micro-batch, a snapshot in the background, files of an attempt of its own.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows reads every value before it is written.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # One bound for all stores of a process instead of some MB for each.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    # Only the last micro-batch is ever run again; a few more are for looking at what happened.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # A start replays the changelogs since the last snapshot, and snapshots are taken at this interval.
    "spark.sql.streaming.stateStore.maintenanceInterval": "30s",
}

_LOCAL_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_lock = threading.Lock()
_users: list[tuple[SparkContext, SparkSession]] = []


def spark_settings(config: StreamsConfig, *, partitions: int, directory: Path) -> dict[str, str]:
    """Returns all of Spark's settings for an application whose files are in ``directory``.

    What ``config.extras`` says under a name that starts with ``spark.`` wins. Only Java options are added to ours
    instead of replacing them: ours are Spark's ``defaultJavaOptions``, in front of the ``extraJavaOptions``, and of two
    the JVM takes the last.
    """
    own = own_settings(config)
    master = own.get("spark.master", DEFAULT_MASTER)
    settings = _SETTINGS | {
        "spark.master": master,
        "spark.app.name": config.application_id,
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.local.dir": str(directory / "spark"),
        "spark.sql.warehouse.dir": str(directory / "spark" / "warehouse"),
    }
    here = is_on_this_machine(master)
    if is_local(master) or starts_executors_here(master):
        # No other machine has to find this one, whatever its name resolves to.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if here:
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(worker_path(sys.path))
    return (
        settings
        | own
        | {
            "spark.driver.defaultJavaOptions": driver_options(own, directory),
            "spark.executor.defaultJavaOptions": executor_options(own, directory if here else None),
        }
    )


def own_settings(config: StreamsConfig) -> dict[str, str]:
    """Returns the application's own settings of Spark, in Spark's spelling.

    >>> own_settings(StreamsConfig.of({"spark.ui.enabled": True, "spark.ui.port": 4040}))
    {'spark.ui.enabled': 'true', 'spark.ui.port': '4040'}
    """
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.extras.items()
        if name.startswith("spark.")
    }


def shuffle_partitions(config: StreamsConfig, tasks: int) -> int:
    """Returns how many Spark partitions the tasks of a level share: as many as run at once, and no more than tasks.

    ``spark.sql.shuffle.partitions`` among the application's settings decides it instead. The number belongs to a
    checkpoint: Spark keeps the one that the checkpoint was made with.
    """
    own = own_settings(config)
    given = own.get("spark.sql.shuffle.partitions")
    if given is not None:
        if not re.fullmatch(r"[1-9]\d*", given):
            message = f"spark.sql.shuffle.partitions must be a whole number, at least 1, got '{given}'"
            raise ConfigError(message)
        return int(given)
    at_once = cores(own.get("spark.master", DEFAULT_MASTER))
    if at_once is None:
        limit = own.get("spark.cores.max", own.get("spark.default.parallelism", ""))
        at_once = int(limit) if limit.isdigit() else tasks
    return max(1, min(at_once, tasks))


def check_master(config: StreamsConfig) -> None:
    """Raises ConfigError if tasks would run where the embedded log is not."""
    master = own_settings(config).get("spark.master", DEFAULT_MASTER)
    if config.bootstrap_servers is None and not is_on_this_machine(master):
        message = (
            "spark.master: the embedded log is on this machine only, so tasks have to run here, but the master is "
            f"'{master}'; use local[N,4], local-cluster[N,cores,MB] or a standalone master on this machine "
            "(spark://localhost:7077), or set bootstrap_servers"
        )
        raise ConfigError(message)


def open_session(
    config: StreamsConfig, *, partitions: int, directory: Path, keep_open: Sequence[int] = ()
) -> SparkSession:
    """Returns a new session; starts Spark's JVM, or uses the one of this process.

    ``keep_open`` are file descriptors that a new JVM holds as well, to its end: a lock on one of them is held as long
    as anything of the application may still write, also after the application itself was killed. An explicit unlock
    releases it everywhere.

    Close the session with ``close_session``. Applications of one process share the JVM and Spark's context, with the
    settings of the first; what a session can have of its own (``spark.sql.*``), it has.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory = directory.resolve()
    settings = spark_settings(config, partitions=partitions, directory=directory)
    with _lock, _undisturbed():
        forget_dead_jvm()
        context = SparkContext._active_spark_context
        if context is None or context._jsc is None:
            context = _new_context(settings, directory, keep_open)
            session = SparkSession(context)
        else:
            if context.master != settings["spark.master"]:
                logger.warning(
                    "this process has a Spark context with master %s; '%s' uses it instead of %s",
                    context.master,
                    config.application_id,
                    settings["spark.master"],
                )
            session = SparkSession(context).newSession()
            for name, value in settings.items():
                if name.startswith("spark.sql.") and session.conf.isModifiable(name):
                    session.conf.set(name, value)
        _users.append((context, session))
        return session


def close_session(session: SparkSession) -> None:
    """Ends a session of ``open_session``; Spark's context with the last one of it. The JVM stays for the next."""
    with _lock:
        found = next((user for user in _users if user[1] is session), None)
        if found is None:
            return
        _users.remove(found)
        context = found[0]
        if not any(other is context for other, _ in _users):
            try:
                context.stop()
            except (Py4JError, OSError) as error:
                # Nothing is left to be stopped of a JVM that has died.
                if jvm_exit_code(error) is None:
                    raise


def worker_path(path: Sequence[str]) -> list[str]:
    """Returns what of this process's import path a Python worker does not have by itself: absolute, in order."""
    python = sysconfig.get_paths()
    known = {python["stdlib"], python["platstdlib"], python["purelib"], python["platlib"], *site.getsitepackages()}
    known |= {os.path.join(python["platstdlib"], "lib-dynload")}
    found: dict[str, None] = {}
    for entry in path:
        absolute = os.path.abspath(entry)
        if absolute not in known and os.path.exists(absolute) and os.pathsep not in absolute:
            found.setdefault(absolute)
    return list(found)


def _new_context(settings: dict[str, str], directory: Path, keep_open: Sequence[int]) -> SparkContext:
    _clear(directory)
    write_log_configurations(directory)
    python = settings.get("spark.pyspark.python", sys.executable)
    if is_on_this_machine(settings["spark.master"]):
        os.environ["PYSPARK_PYTHON"] = python
    else:
        os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ["PYSPARK_DRIVER_PYTHON"] = settings.get("spark.pyspark.driver.python", sys.executable)
    if SparkContext._gateway is None:
        gateway = launch_jvm(settings, keep_open)
        # The JVM was started with all the settings, and has not to be told them one by one.
        conf = SparkConf(_jvm=gateway.jvm)
    else:
        gateway = None
        hand_over_jvm(directory)
        conf = SparkConf(loadDefaults=False, _jvm=SparkContext._jvm)
        for name, value in settings.items():
            conf.set(name, value)
    logger.info("starting Spark")
    try:
        return SparkContext(conf=conf, gateway=gateway)
    except Py4JJavaError as error:
        reason = str(error.java_exception)
        message = (
            f"Spark did not start with master '{settings['spark.master']}': {reason}; more is in {directory}/spark.log"
        )
        raise SparkStartError(message) from error


def _clear(directory: Path) -> None:
    """Deletes what a process left that was killed; this one is the only one with this application."""
    shutil.rmtree(directory / "spark", ignore_errors=True)
    (directory / "spark").mkdir()
    for log in directory.glob("spark-executor-*.log*"):
        log.unlink(missing_ok=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Undoes what making a SparkContext changes in this process: the handler of SIGINT, the import path."""
    path = list(sys.path)
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    try:
        yield
    finally:
        sys.path[:] = path
        if main and handler is not None:
            signal.signal(signal.SIGINT, handler)


def _is_local_path(path: str | os.PathLike[str] | None) -> bool:
    return path is None or "://" not in os.fspath(path) or os.fspath(path).startswith("file:")
