"""The handlers that come with Headrace."""

from __future__ import annotations

import logging
import traceback
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
        logger.error("a record cannot be read: %s\n%s", context, _without_messages(error))
        return Response.fail(dead_letters(context, error))


@dataclass(frozen=True)
class LogAndContinueExceptionHandler:
    """Drops records that cannot be read, with a warning.

    >>> LogAndContinueExceptionHandler()(ErrorContext(topic="orders"), ValueError("no JSON")).result
    <Result.RESUME: 'resume'>
    """

    def __call__(self, context: ErrorContext, error: Exception, /) -> Response:
        logger.warning("a record that cannot be read is dropped: %s\n%s", context, _without_messages(error))
        return Response.resume(dead_letters(context, error))


@dataclass(frozen=True)
class LogAndFailProcessingExceptionHandler:
    """Stops the application when a function or processor raises. This is the default.

    >>> LogAndFailProcessingExceptionHandler()(ErrorContext(node="parse"), None, ValueError("x")).result
    <Result.FAIL: 'fail'>
    """

    def __call__(self, context: ErrorContext, record: Record[Any, Any] | None, error: Exception, /) -> Response:
        logger.error("processing failed: %s\n%s", context, _without_messages(error))
        return Response.fail(dead_letters(context, error))


@dataclass(frozen=True)
class LogAndContinueProcessingExceptionHandler:
    """Drops the record at the node whose function or processor raised, with a warning.

    What the node had forwarded before stays, and other branches of the topology still get the record.

    >>> LogAndContinueProcessingExceptionHandler()(ErrorContext(node="parse"), None, ValueError("x")).result
    <Result.RESUME: 'resume'>
    """

    def __call__(self, context: ErrorContext, record: Record[Any, Any] | None, error: Exception, /) -> Response:
        logger.warning("processing failed, the record is dropped: %s\n%s", context, _without_messages(error))
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


def _without_messages(error: BaseException) -> str:
    """Returns the traceback with the types of its exceptions only: a message may quote the record.

    >>> print(_without_messages(ValueError("alice has no number")))
    ValueError (its message may quote the record, and is left out here; a dead letter has it)
    """
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    lines = []
    for each in reversed(chain):
        frames = traceback.format_tb(each.__traceback__)
        lines += ["Traceback (most recent call last):\n", *frames] if frames else []
        lines.append(f"{type(each).__qualname__}\n")
    return f"{''.join(lines).rstrip()} (its message may quote the record, and is left out here; a dead letter has it)"
