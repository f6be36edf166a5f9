"""Dead letters: records that could not be processed, with the reason in their headers."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from headrace.errors import ConfigError
from headrace.handlers.context import ErrorContext
from headrace.record import EMPTY_HEADERS, Headers


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record for a dead-letter topic: what could not be processed, with the reason in its headers.

    >>> DeadLetter("orders-failed", b"key", b"value", 1000).topic
    'orders-failed'
    """

    topic: str
    """Where it goes."""
    key: bytes | None
    """Raw key."""
    value: bytes | None
    """Raw value."""
    timestamp_ms: int
    """Timestamp of the failed record."""
    headers: Headers = EMPTY_HEADERS
    """Headers of the failed record, then the reason."""


def dead_letters(context: ErrorContext, error: Exception) -> tuple[DeadLetter, ...]:
    """Returns the dead letter for a failed record, or nothing if the application names no topic for it.

    >>> dead_letters(ErrorContext(topic="orders"), ValueError("x"))
    ()
    """
    return () if context.dead_letter_topic is None else (dead_letter(context, error),)


def dead_letter(context: ErrorContext, error: Exception, topic: str | None = None) -> DeadLetter:
    """Returns the dead letter for a failed record: the input record, with Kafka's headers that tell what happened.

    The topic is the application's ``errors_dead_letter_queue_topic_name`` unless another one is given.

    >>> context = ErrorContext(topic="orders", partition=0, offset=41, key=b"k", value=b"v", timestamp_ms=1000)
    >>> letter = dead_letter(context, ValueError("no JSON"), topic="failed")
    >>> letter.headers.last("__streams.errors.exception"), letter.headers.last("__streams.errors.offset")
    (b'ValueError', b'41')
    """
    target = topic or context.dead_letter_topic
    if target is None:
        message = "a dead letter needs a topic; set errors_dead_letter_queue_topic_name or name one"
        raise ConfigError(message)
    headers = Headers((*context.headers, *_reasons(context, error)))
    # A punctuation has no timestamp, and no record may have a negative one.
    return DeadLetter(target, context.key, context.value, max(0, context.timestamp_ms), headers)


def _reasons(context: ErrorContext, error: Exception) -> list[tuple[str, bytes | None]]:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    reasons = {
        "exception": name,
        "message": str(error),
        "stacktrace": "".join(traceback.format_exception(error)),
        "topic": context.topic,
        "partition": str(context.partition),
        "offset": str(context.offset),
    }
    return [
        (f"__streams.errors.{reason}", None if text is None else text.encode(errors="backslashreplace"))
        for reason, text in reasons.items()
    ]
