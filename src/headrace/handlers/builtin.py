"""The handlers that come with Headrace."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from headrace.errors import RetriableError
from headrace.handlers.context import ErrorContext, FailedOutput, Origin
from headrace.handlers.dead_letters import dead_letters
from headrace.handlers.response import Response
from headrace.record import Record

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogAndFailExceptionHandler:
    """Stops the application at a record that cannot be read. This is the default.

    >>> LogAndFailExceptionHandler()(ErrorContext(topic="orders"), ValueError("no JSON")).result
    <Result.FAIL: 'fail'>
    """

    def __call__(self, context: ErrorContext, error: Exception, /) -> Response:
        logger.error("a record cannot be read: %s", context, exc_info=error)
        return Response.fail(dead_letters(context, error))


@dataclass(frozen=True)
class LogAndContinueExceptionHandler:
    """Drops records that cannot be read, with a warning.

    >>> LogAndContinueExceptionHandler()(ErrorContext(topic="orders"), ValueError("no JSON")).result
    <Result.RESUME: 'resume'>
    """

    def __call__(self, context: ErrorContext, error: Exception, /) -> Response:
        logger.warning("a record that cannot be read is dropped: %s", context, exc_info=error)
        return Response.resume(dead_letters(context, error))


@dataclass(frozen=True)
class LogAndFailProcessingExceptionHandler:
    """Stops the application when a function or processor raises. This is the default.

    >>> LogAndFailProcessingExceptionHandler()(ErrorContext(node="parse"), None, ValueError("x")).result
    <Result.FAIL: 'fail'>
    """

    def __call__(self, context: ErrorContext, record: Record[Any, Any] | None, error: Exception, /) -> Response:
        logger.error("processing failed: %s", context, exc_info=error)
        return Response.fail(dead_letters(context, error))


@dataclass(frozen=True)
class LogAndContinueProcessingExceptionHandler:
    """Drops the record at the node whose function or processor raised, with a warning.

    What the node had forwarded before stays, and other branches of the topology still get the record.

    >>> LogAndContinueProcessingExceptionHandler()(ErrorContext(node="parse"), None, ValueError("x")).result
    <Result.RESUME: 'resume'>
    """

    def __call__(self, context: ErrorContext, record: Record[Any, Any] | None, error: Exception, /) -> Response:
        logger.warning("processing failed, the record is dropped: %s", context, exc_info=error)
        return Response.resume(dead_letters(context, error))


@dataclass(frozen=True)
class DefaultProductionExceptionHandler:
    """Retries what is temporary, and stops the application at anything else. This is the default.

    >>> handler, output = DefaultProductionExceptionHandler(), FailedOutput("totals", b"a", b"5", 1000)
    >>> handler(ErrorContext(), output, RetriableError("timeout")).result
    <Result.RETRY: 'retry'>
    >>> handler(ErrorContext(), output, ValueError("too large")).result
    <Result.FAIL: 'fail'>
    """

    def __call__(self, context: ErrorContext, output: FailedOutput, error: Exception, /) -> Response:
        if output.origin is Origin.SEND and isinstance(error, RetriableError):
            return Response.retry()
        return Response.fail(dead_letters(context, error))
