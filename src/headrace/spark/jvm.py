"""Spark's JVM: with which options it starts, from where, and that the terminal sees nothing of it."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]  # py4j has no annotations
from py4j.protocol import INPUT_CONVERTER, Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # the same
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from headrace.errors import SparkStartError
from headrace.spark.cache import cache_directory
from headrace.spark.class_archive import ClassArchive, class_archive
from headrace.spark.java import Java, find_java
from headrace.spark.jvm_log import DRIVER_CONFIGURATION, EXECUTOR_CONFIGURATION, EXECUTOR_PROPERTY
from headrace.spark.jvm_output import JvmOutput
from headrace.spark.masters import is_local, starts_executors_here
from headrace.spark.scratch import Scratch, new_scratch

_WORK_KEPT_S = 24 * 3600.0
_LAST_BREATH_S = 5.0
logger = logging.getLogger(__name__)

_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")


def driver_options(settings: Mapping[str, str], directory: Path) -> str:
    """Returns Java options for the driver, to be put in front of the application's own."""
    return _options(
        settings,
        "driver",
        f"-XX:ErrorFile={directory}/java-crash-%p.log",
        f"-Dlog4j2.configurationFile={(directory / DRIVER_CONFIGURATION).as_uri()}",
    )


def executor_options(settings: Mapping[str, str], directory: Path | None) -> str:
    """Returns Java options for executors; ``directory`` is None if they cannot write there."""
    if directory is None:
        return _options(settings, "executor")
    return _options(
        settings,
        "executor",
        f"-XX:ErrorFile={directory}/java-crash-%p.log",
        # Spark fills in the id.
        f"-D{EXECUTOR_PROPERTY}={{{{EXECUTOR_ID}}}}",
        f"-Dlog4j2.configurationFile={(directory / EXECUTOR_CONFIGURATION).as_uri()}",
    )


def _options(settings: Mapping[str, str], role: str, *further: str) -> str:
    defaults = settings.get(f"spark.{role}.defaultJavaOptions", "")
    # The work is done in Python: the JVM compiles quickly instead of well, and collects with one thread instead of
    # one per core. Deep stacks are for the regular expression with which Spark takes Python's tracebacks apart.
    light = ["-XX:TieredStopAtLevel=1", "-Xss4m", "-Xlog:disable"]
    if not _COLLECTOR.search(defaults + settings.get(f"spark.{role}.extraJavaOptions", "")):
        # A JVM refuses to start with two collectors.
        light.append("-XX:+UseSerialGC")
    return _joined([*light, *further], defaults)


def _joined(own: Sequence[str], further: str) -> str:
    quoted = (f'"{option}"' if " " in option else option for option in own)
    return " ".join([*quoted, *([further] if further else [])])


class Installation(NamedTuple):
    """The Java and the Spark that a JVM is started with, and their class-data archive."""

    java: Java
    spark_home: Path
    archive: ClassArchive


def find_installation(settings: Mapping[str, str]) -> Installation:
    """Returns what a JVM with these settings is started with."""
    java = find_java()
    cache = cache_directory()
    home = _spark_home(cache)
    class_path = [settings.get("spark.driver.extraClassPath", ""), os.environ.get("SPARK_CONF_DIR", "")]
    return Installation(java, home, class_archive(cache, java, home, class_path))


def launch_jvm(
    settings: Mapping[str, str],
    installation: Installation,
    archive_options: tuple[str, ...] | None = None,
) -> JavaGateway:
    """Starts Spark's JVM and returns the gateway to it; raises SparkStartError with what the JVM said if it ends.

    ``archive_options`` take the place of those with which the class-data archive is used.
    """
    master = settings["spark.master"]
    archive = installation.archive
    options = archive.options() if archive_options is None else archive_options
    logger.info("starting Java%s", "" if archive.path else ", slow the first time: there is no class archive yet")
    scratch = new_scratch()
    environment = {
        "JAVA_HOME": str(installation.java.home),
        "SPARK_HOME": str(installation.spark_home),
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Spark's two hundred threads would each fill a heap of the C library.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2"),
    }
    if (is_local(master) or starts_executors_here(master)) and "SPARK_LOCAL_IP" not in os.environ:
        # No other machine has to find this one, whatever its name resolves to.
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        return _launch(settings, environment, options, scratch)
    except SparkStartError:
        if not options or archive_options is not None:
            raise
        gateway = _launch(settings, environment, (), scratch)
        # It starts without the archive: that one was to blame.
        archive.discard()
        return gateway
    finally:
        scratch.release()


def _launch(
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    archive_options: tuple[str, ...],
    scratch: Scratch,
) -> JavaGateway:
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    options = settings["spark.driver.defaultJavaOptions"]
    own = (*archive_options, f"-Djava.io.tmpdir={scratch.path}")
    conf.set("spark.driver.defaultJavaOptions", _joined(own, options))
    if starts_executors_here(settings["spark.master"]):
        options = settings["spark.executor.defaultJavaOptions"]
        conf.set("spark.executor.defaultJavaOptions", _joined(archive_options, options))
    reading, writing = os.pipe()
    output = JvmOutput(os.fdopen(reading, encoding="utf-8", errors="replace"))
    popen = {
        "stdout": writing,
        "stderr": writing,
        "pass_fds": (scratch.lock,),
        # Ctrl-C is for the application, which then stops the JVM in order.
        "start_new_session": True,
    }
    try:
        with _environment(environment):
            gateway = _gateway(conf, popen)
    finally:
        os.close(writing)
    if gateway is None:
        message = f"Spark's Java process ended before it was ready; it said: {output.said()}"
        raise SparkStartError(message)
    output.relay()
    return gateway


class _OnlyWithNumpy:
    """One of pyspark's converters for arguments of Java calls that are NumPy's, asked only if there can be any.

    By itself it imports pyspark's testing package to find out whether there is NumPy, and with it pandas and pyarrow:
    0.44 s of processor time, at the first call to the JVM.
    """

    # Any: py4j has no annotations.
    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def can_convert(self, what: object) -> bool:
        numpy: Any = sys.modules.get("numpy")
        if numpy is None or not isinstance(what, numpy.generic | numpy.ndarray):
            return False
        return bool(self._converter.can_convert(what))

    def convert(self, what: object, gateway_client: Any) -> Any:
        return self._converter.convert(what, gateway_client)


def _defer_numpy_import() -> None:
    for place, converter in enumerate(INPUT_CONVERTER):
        if type(converter).__name__ in ("NumpyScalarConverter", "NumpyArrayConverter"):
            INPUT_CONVERTER[place] = _OnlyWithNumpy(converter)


def _gateway(conf: SparkConf, popen: dict[str, object]) -> JavaGateway | None:
    _defer_numpy_import()
    with warnings.catch_warnings():
        # A launch that fails leaves a pipe open, which is found when its exception is gone, here.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            return launch_gateway(conf, popen)  # type: ignore[no-untyped-call]  # pyspark has no annotations for it
        except PySparkRuntimeError:
            return None


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for as long as a child is started: launch_gateway takes the environment of this process."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _spark_home(cache: Path | None) -> Path:
    """Returns a home for Spark without the zipped copy of pyspark, which every Python worker would import from.

    A zip holds no compiled modules: importing from it takes each new worker 0.8 s instead of 0.2 s. Without it
    the workers find pyspark where this process has it.
    """
    given = os.environ.get("SPARK_HOME")
    package = Path(pyspark.__file__).parent
    if given:
        return Path(given)
    if cache is None:
        return package
    home = cache / "spark" / f"{pyspark.__version__}-{hashlib.sha256(str(package).encode()).hexdigest()[:12]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for part in ("bin", "jars"):
            # Two applications may do this at once: the second one finds the link.
            with suppress(FileExistsError):
                (home / part).symlink_to(package / part)
        _forget_old_work(home / "work")
    except OSError:
        return package
    return home


def _forget_old_work(directory: Path) -> None:
    """Deletes what executors of a ``local-cluster`` have printed: Spark keeps it under its home for good."""
    if directory.exists():
        for application in directory.iterdir():
            if application.stat().st_mtime < time.time() - _WORK_KEPT_S:
                shutil.rmtree(application, ignore_errors=True)


def jvm_exit_code(error: BaseException | None = None) -> int | None:
    """Returns with which code the JVM of this process has ended; None if it runs, or was never started.

    With an error of a connection to it, it is given the time to end: its connections are gone a little earlier.
    """
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    # What Java has thrown comes from a JVM that is alive.
    if isinstance(error, Py4JError | OSError) and not isinstance(error, Py4JJavaError):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LAST_BREATH_S)
    return process.poll()


def forget_dead_jvm() -> None:
    """Lets pyspark start a JVM again if the one of this process has died."""
    if jvm_exit_code() is not None:
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None


def hand_over_jvm(directory: Path) -> None:
    """Makes the running JVM use the directory of another application, for which it gets a context now."""
    jvm = SparkContext._jvm
    if jvm is not None:
        # Spark remembers the first spark.local.dir for good.
        getattr(getattr(jvm, "org.apache.spark.util.Utils$"), "MODULE$").clearLocalRootDirs()
        uri = jvm.java.net.URI((directory / DRIVER_CONFIGURATION).as_uri())
        jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)
