"""Start of a Python worker: what each of Spark's worker processes does once, before its first task."""

from __future__ import annotations

import gc
import logging
from functools import cache
from itertools import pairwise
from pathlib import Path

from headrace.handlers import builtin


@cache
def prepare_worker() -> None:
    """Prepares this process, once; to be called in a task when everything that it needs is imported.

    Spark's daemon has a worker collect garbage after every task. That is often enough, and takes 16 to 19 ms with our
    imports, but nothing when what is there now is out of the collector's sight.
    """
    leave_failures_to_the_driver()
    gc.collect()
    gc.freeze()
    gc.disable()


def leave_failures_to_the_driver() -> None:
    """Silences the handlers of this process, as far as they do not skip what failed.

    A failure that stops a task is raised, tried again by Spark, and in the end told by the application, once. The
    handlers log it, too, because a test driver has nobody else to do it; from a worker that would be once per attempt.
    """
    logger = logging.getLogger(builtin.__name__)
    if _is_no_error not in logger.filters:
        logger.addFilter(_is_no_error)


def _is_no_error(record: logging.LogRecord) -> bool:
    return record.levelno < logging.ERROR


@cache
def executor_location() -> str | None:
    """Returns how Spark calls the executor of this worker where a task may prefer one; None if there is only one.

    Spark does not tell a Python worker. Its executor is the parent of the daemon that has forked the worker, and has
    been started with its id and host.
    """
    try:
        daemon = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[1]
        executor = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]
        arguments = Path(f"/proc/{executor}/cmdline").read_bytes().decode(errors="replace").split("\0")
        given = dict(pairwise(arguments))
        return f"executor_{given['--hostname']}_{given['--executor-id']}"
    except (OSError, IndexError, KeyError):
        # The driver's own JVM runs the tasks, or a system without /proc.
        return None


def host_and_id(location: str) -> tuple[str, str]:
    """Returns the host and the id of the executor at a location.

    >>> host_and_id("executor_10.0.0.7_12")
    ('10.0.0.7', '12')
    """
    host, _, number = location.removeprefix("executor_").rpartition("_")
    return host, number
