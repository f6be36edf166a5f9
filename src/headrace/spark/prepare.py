"""Preparation of a machine, or of a container image: the class-data archive, made by a short run of Spark.

``headrace prepare`` does it at once; the first application on a machine leaves it to a process in the background, which
is this module run with the class path of the application's own jars.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pyspark import SparkContext

from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.private_directory import own_temporary_directory
from headrace.spark.context import close_context, open_context
from headrace.spark.jobs import Sent, StagedJob
from headrace.spark.jvm import find_installation

_JOBS = 5
_DUMP_S = 300.0
_SLOTS = 2
_NICENESS = 19


def prepare(class_path: str = "", *, wait: bool = True) -> Path | None:
    """Makes the class-data archive for this Java and Spark if there is none, and returns it.

    None if it cannot be made: nothing can be written to the cache directory, or without ``wait`` another process is
    making it. ``class_path`` is an application's own ``spark.driver.extraClassPath``.
    """
    settings = {} if not class_path else {"spark.driver.extraClassPath": class_path}
    archive = find_installation(settings).archive
    archive.make(lambda options: _run_spark(settings, options), wait=wait)
    return archive.path


def _run_spark(settings: dict[str, str], archive_options: tuple[str, ...]) -> None:
    """Runs a few jobs as an application does, and waits for the end of the JVM, which then writes its classes."""
    config = StreamsConfig.of(
        {"application.id": "headrace-prepare", "spark.master": f"local[{_SLOTS},4]", "spark.driver.memory": "512m"}
        | settings
    )
    with tempfile.TemporaryDirectory(prefix="prepare-", dir=own_temporary_directory()) as directory:
        context = open_context(config, directory=Path(directory), archive_options=archive_options)
        try:
            job = StagedJob(context, [_send, _report], _SLOTS)
            for number in range(_JOBS):
                job.run({"headrace.plan": str(number)}, "preparing")
        finally:
            close_context(context)
            _end_jvm()


def _send(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
    return [Sent(1, to, b"blob") for to in range(_SLOTS)]


def _report(slot: int, blobs: list[bytes]) -> Iterable[Sent]:
    return [Sent(2, slot, b"report")]


def _end_jvm() -> None:
    gateway = SparkContext._gateway
    # Any: py4j has no annotations.
    process: subprocess.Popen[bytes] = gateway.proc  # type: ignore[union-attr]
    assert process.stdin is not None
    gateway.shutdown()  # type: ignore[union-attr]
    # It ends with its standard input.
    process.stdin.close()
    process.wait(_DUMP_S)
    SparkContext._gateway = SparkContext._jvm = None


def _main() -> None:
    os.nice(_NICENESS)
    try:
        prepare(sys.argv[1] if len(sys.argv) > 1 else "", wait=False)
    except (StreamsError, OSError):
        # Nobody reads what it says; `headrace prepare` says it.
        sys.exit(1)


if __name__ == "__main__":
    _main()
