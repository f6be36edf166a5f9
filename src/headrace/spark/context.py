"""Spark context of an application: its settings, opening and closing.

Every micro-batch is an RDD job, so there is no SQL session, no checkpoint and no state store to set up.
"""

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
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j has no annotations
from pyspark import SparkConf, SparkContext

from headrace.config import StreamsConfig
from headrace.errors import ConfigError, SparkStartError
from headrace.private_directory import make_directories
from headrace.spark.jvm import (
    driver_options,
    executor_options,
    find_installation,
    forget_dead_jvm,
    hand_over_jvm,
    jvm_exit_code,
    launch_jvm,
)
from headrace.spark.jvm_log import write_log_configurations
from headrace.spark.later_archive import archive_later
from headrace.spark.masters import cores, is_local, is_on_this_machine, starts_executors_here, with_more_threads

logger = logging.getLogger(__name__)

DEFAULT_MASTER = "local[*,4]"
"""All cores of this machine; a task that fails is tried four times, as on a cluster, where ``local[*]`` gives up."""

SLOTS = "spark.default.parallelism"
"""The setting that decides how many slots the tasks of a level share."""

_SETTINGS = {
    # Nobody looks at it unless asked for, and its lists would grow with the number of micro-batches.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.log.level": "WARN",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.driver.memory": "2g",
    # Workers keep the tasks of their slots open from one micro-batch to the next.
    "spark.python.worker.reuse": "true",
    # Sockets in the file system cost less than TCP, and have no port that others could connect to.
    "spark.python.unix.domain.socket.enabled": "true",
    # A slot prefers the executor that has its tasks open, but does not wait the 3 s of Spark's default for it, and then
    # as long for another one on the same machine. If an executor is lost within a job, each stage that is left waits,
    # and Spark looks only so often whether that is over.
    "spark.locality.wait": "300ms",
    "spark.locality.wait.node": "0s",
    "spark.scheduler.revive.interval": "200ms",
    # A connection to an executor that is gone breaks: the next try asks whether it is alive. In all they take 15 s, as
    # with Spark's defaults, 3 and 5 s.
    "spark.shuffle.io.retryWait": "500ms",
    "spark.shuffle.io.maxRetries": "30",
    # Else a slot would prefer the executor that has most of its input, which is another one from batch to batch.
    "spark.shuffle.reduceLocality.enabled": "false",
}

_FORCED = {
    # A second attempt beside a running one is fenced, so it would be a waste.
    "spark.speculation": "false",
}

_lock = threading.Lock()
_users: list[SparkContext] = []
"""A context as often as it was opened."""


def spark_settings(config: StreamsConfig, *, directory: Path) -> dict[str, str]:
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
        "spark.local.dir": str(directory / "spark"),
    }
    here = is_on_this_machine(master)
    if is_local(master) or starts_executors_here(master):
        # No other machine has to find this one, whatever its name resolves to.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        # Else every user of this machine can connect to Spark's ports, which take serialized objects.
        settings["spark.authenticate"] = "true"
        # Workers are forked with everything imported: half the processor time of a start, and less memory.
        settings["spark.python.daemon.module"] = "headrace.spark.daemon"
    if here:
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(worker_path(sys.path))
    return (
        settings
        | own
        | {
            "spark.driver.defaultJavaOptions": driver_options(own, directory),
            "spark.executor.defaultJavaOptions": executor_options(own, directory if here else None),
        }
        | _FORCED
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


def slots(config: StreamsConfig, tasks: int) -> int:
    """Returns how many slots the tasks of a level share: as many as run at once, and no more than tasks.

    ``spark.default.parallelism`` among the application's settings decides it instead.
    """
    own = own_settings(config)
    given = own.get(SLOTS)
    if given is not None:
        if not re.fullmatch(r"[1-9]\d*", given):
            message = f"{SLOTS} must be a whole number, at least 1, got '{given}'"
            raise ConfigError(message)
        return int(given)
    at_once = cores(own.get("spark.master", DEFAULT_MASTER))
    if at_once is None:
        limit = own.get("spark.cores.max", "")
        at_once = int(limit) if limit.isdigit() else tasks
    return max(1, min(at_once, tasks))


def with_spare_threads(config: StreamsConfig, count: int) -> StreamsConfig:
    """Returns settings with which Spark runs more tasks at once on this machine than it has cores.

    A task that hangs has a thread of Spark's for as long as it lasts. Slots are as many as without.
    """
    if count == 0:
        return config
    master = own_settings(config).get("spark.master", DEFAULT_MASTER)
    # Spark would start one for each thread, and they have little to do.
    dispatchers = {"spark.rpc.netty.dispatcher.numThreads": "2"} if is_local(master) else {}
    more = {"spark.master": with_more_threads(master, count)}
    return replace(config, extras={**dispatchers, **config.extras, **more})


def attempts(config: StreamsConfig) -> int:
    """Returns how often Spark tries a task, as the master or the settings say."""
    own = own_settings(config)
    master = own.get("spark.master", DEFAULT_MASTER)
    if is_local(master):
        inside = master.partition("[")[2].rstrip("]")
        return int(inside.partition(",")[2] or 1) if inside else 1
    return int(own.get("spark.task.maxFailures", 4))


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


def open_context(
    config: StreamsConfig,
    *,
    directory: Path,
    archive_options: tuple[str, ...] | None = None,
) -> SparkContext:
    """Returns the context of this process; starts Spark's JVM, and makes a context, if there is none.

    ``archive_options`` are Java options that make the class-data archive, instead of those that use it.

    Close the context with ``close_context``. Applications of one process share it, with the settings of the first.
    """
    make_directories(directory)
    directory = directory.resolve()
    settings = spark_settings(config, directory=directory)
    for name, value in _FORCED.items():
        if own_settings(config).get(name, value) != value:
            logger.warning("%s is always %s: what two attempts do at once is done once anyway", name, value)
    with _lock, _restore_process_settings():
        forget_dead_jvm()
        context = SparkContext._active_spark_context
        if context is None or context._jsc is None:
            context = _new_context(settings, directory, archive_options)
        elif context.master != settings["spark.master"]:
            logger.warning(
                "this process has a Spark context with master %s; '%s' uses it instead of %s",
                context.master,
                config.application_id,
                settings["spark.master"],
            )
        _users.append(context)
        return context


def close_context(context: SparkContext) -> None:
    """Gives a context of ``open_context`` back; the last to do so stops it. The JVM stays for the next."""
    with _lock:
        found = next((place for place, user in enumerate(_users) if user is context), None)
        if found is None:
            return
        del _users[found]
        if any(user is context for user in _users):
            return
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


def _new_context(settings: dict[str, str], directory: Path, archive_options: tuple[str, ...] | None) -> SparkContext:
    _clear(directory)
    write_log_configurations(directory)
    python = settings.get("spark.pyspark.python", sys.executable)
    if is_on_this_machine(settings["spark.master"]):
        os.environ["PYSPARK_PYTHON"] = python
    else:
        os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ["PYSPARK_DRIVER_PYTHON"] = settings.get("spark.pyspark.driver.python", sys.executable)
    if SparkContext._gateway is None:
        installation = find_installation(settings)
        gateway = launch_jvm(settings, installation, archive_options)
        if archive_options is None:
            archive_later(installation.archive, settings.get("spark.driver.extraClassPath", ""))
        # The JVM was started with all the settings, and has not to be told them one by one.
        conf = SparkConf(_jvm=gateway.jvm)
    else:
        gateway = None
        hand_over_jvm(directory)
        conf = SparkConf(loadDefaults=False, _jvm=SparkContext._jvm)
        for name, value in settings.items():
            conf.set(name, value)
    if starts_executors_here(settings["spark.master"]) and settings.get("spark.authenticate") == "true":
        # For local[N] Spark makes one itself. Said here, because everybody can read the arguments of a process.
        conf.setIfMissing("spark.authenticate.secret", token_hex(32))
    logger.info("starting Spark's context")
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
def _restore_process_settings() -> Iterator[None]:
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
