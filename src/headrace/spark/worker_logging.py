"""What a worker says of failures: nothing of those that it raises.

A failure that stops a task is raised, tried again by Spark, and in the end told by the application, once. The handlers
log it, too, because a test driver has nobody else to do it; from a worker that would be once per attempt.
"""

from __future__ import annotations

import logging

from headrace.handlers import builtin


def leave_failures_to_the_driver() -> None:
    """Silences the handlers of this process, as far as they do not skip what failed."""
    logger = logging.getLogger(builtin.__name__)
    if _is_no_error not in logger.filters:
        logger.addFilter(_is_no_error)


def _is_no_error(record: logging.LogRecord) -> bool:
    return record.levelno < logging.ERROR
