"""Responses of exception handlers, and the call of a handler with a check of its response."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from headrace.errors import RetriableError, UncaughtHandlerError, describe_value
from headrace.handlers.context import ErrorContext, FailedOutput, Origin
from headrace.handlers.dead_letters import DeadLetter
from headrace.record import Record


class Result(Enum):
    """Decision of a handler.

    >>> Response.fail().result is Result.FAIL
    True
    """

    RESUME = "resume"
    """Drop the record and go on."""
    FAIL = "fail"
    """Stop the application."""
    RETRY = "retry"
    """Try again to send the record; only for temporary failures to send."""


@dataclass(frozen=True, slots=True)
class Response:
    """A handler's answer: what to do with the record, and what to write to dead-letter topics.

    >>> Response.resume().result
    <Result.RESUME: 'resume'>
    """

    result: Result
    """What to do."""
    dead_letters: tuple[DeadLetter, ...] = ()
    """What to write, whatever the result."""

    @classmethod
    def resume(cls, dead_letters: Iterable[DeadLetter] = ()) -> Response:
        """Drops the record and goes on.

        >>> Response.resume([DeadLetter("failed", None, b"x", 0)]).dead_letters[0].topic
        'failed'
        """
        return cls(Result.RESUME, tuple(dead_letters))

    @classmethod
    def fail(cls, dead_letters: Iterable[DeadLetter] = ()) -> Response:
        """Stops the application, after the dead letters are written.

        >>> Response.fail()
        Response(result=<Result.FAIL: 'fail'>, dead_letters=())
        """
        return cls(Result.FAIL, tuple(dead_letters))

    @classmethod
    def retry(cls) -> Response:
        """Sends the record again; where that cannot help it counts as ``fail``.

        >>> Response.retry().result is Result.RETRY
        True
        """
        return cls(Result.RETRY)


DeserializationExceptionHandler: TypeAlias = Callable[[ErrorContext, Exception], Response]
ProcessingExceptionHandler: TypeAlias = Callable[[ErrorContext, "Record[Any, Any] | None", Exception], Response]
"""The record is None when a punctuator failed."""
ProductionExceptionHandler: TypeAlias = Callable[[ErrorContext, FailedOutput, Exception], Response]


def decide(handler: Callable[..., Response], context: ErrorContext, *details: Any, error: Exception) -> Response:
    """Asks a handler and checks its answer; a retry that cannot help becomes a failure.

    ``details`` is what the kind of handler takes between context and error.

    >>> decide(lambda context, error: Response.resume(), ErrorContext(), error=ValueError()).result
    <Result.RESUME: 'resume'>
    >>> decide(lambda context, error: None, ErrorContext(node="parse"), error=ValueError("no JSON"))
    Traceback (most recent call last):
    ...
    headrace.errors.UncaughtHandlerError: node 'parse': exception handler ... must return a Response, got None
    """
    name = getattr(handler, "__qualname__", None) or type(handler).__qualname__
    try:
        response: object = handler(context, *details, error)
    except Exception as failure:
        message = f"node '{context.node}': exception handler {name} failed with {failure!r} while handling {error!r}"
        raise UncaughtHandlerError(message) from failure
    if not isinstance(response, Response):
        found = describe_value(response)
        message = f"node '{context.node}': exception handler {name} must return a Response, got {found}"
        raise UncaughtHandlerError(message) from error
    if response.result is Result.RETRY and not _can_retry(details, error):
        return Response(Result.FAIL, response.dead_letters)
    return response


def _can_retry(details: tuple[Any, ...], error: Exception) -> bool:
    sending = any(isinstance(detail, FailedOutput) and detail.origin is Origin.SEND for detail in details)
    return sending and isinstance(error, RetriableError)


class StreamThreadExceptionResponse(Enum):
    """Reaction to an error that no handler caught.

    >>> StreamThreadExceptionResponse("shutdown_client").name
    'SHUTDOWN_CLIENT'
    """

    REPLACE_THREAD = "replace_thread"
    """Run the tasks again from the last commit."""
    SHUTDOWN_CLIENT = "shutdown_client"
    """Stop this instance. This is the default."""
    SHUTDOWN_APPLICATION = "shutdown_application"
    """Stop all instances of the application."""


StreamsUncaughtExceptionHandler: TypeAlias = Callable[[Exception], StreamThreadExceptionResponse]
