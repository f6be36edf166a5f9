"""Uncaught exceptions: the call of the application's handler, and what follows from its answer."""

from __future__ import annotations

from headrace.arguments.signatures import describe_function
from headrace.errors import UncaughtHandlerError, describe_value
from headrace.handlers import StreamsUncaughtExceptionHandler, StreamThreadExceptionResponse


def shut_down_client(error: Exception) -> StreamThreadExceptionResponse:
    """The default handler."""
    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT


def ask(handler: StreamsUncaughtExceptionHandler, error: Exception) -> StreamThreadExceptionResponse:
    """Returns the answer of a handler; one that fails, or answers something else, is reported with the failure.

    >>> ask(shut_down_client, ValueError("no")).name
    'SHUTDOWN_CLIENT'
    >>> ask(lambda error: "again", ValueError("no"))
    Traceback (most recent call last):
    ...
    headrace.errors.UncaughtHandlerError: uncaught-exception handler <lambda> (...) must return a \
StreamThreadExceptionResponse; found str 'again', while handling ValueError('no')
    """
    where = f"uncaught-exception handler {describe_function(handler)}"
    try:
        answer: object = handler(error)
    except Exception as failure:
        message = f"{where} failed with {failure!r} while handling {error!r}"
        raise UncaughtHandlerError(message) from failure
    if not isinstance(answer, StreamThreadExceptionResponse):
        found = f"found {describe_value(answer)}, while handling {error!r}"
        message = f"{where} must return a StreamThreadExceptionResponse; {found}"
        raise UncaughtHandlerError(message) from error
    return answer
