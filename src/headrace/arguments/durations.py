"""Durations: ``timedelta`` in the public API, whole milliseconds inside."""

from __future__ import annotations

from datetime import timedelta

from headrace.errors import TopologyError, describe_value

MAX_LONG = 2**63 - 1
"""Java's ``Long.MAX_VALUE``: the end of time."""

_MILLISECOND = timedelta(milliseconds=1)


def to_ms(duration: timedelta, what: str) -> int:
    """Returns a duration in milliseconds; ``what`` names it in the error when it is no ``timedelta`` of whole ones.

    >>> to_ms(timedelta(seconds=1.5), "size")
    1500
    >>> to_ms(90, "size")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: size must be a timedelta, got int 90; write for example timedelta(seconds=90)
    """
    given: object = duration
    if not isinstance(given, timedelta):
        message = f"{what} must be a timedelta, got {describe_value(given)}; write for example timedelta(seconds=90)"
        raise TopologyError(message)
    whole, rest = divmod(given, _MILLISECOND)
    if rest:
        message = (
            f"{what} must be whole milliseconds, got timedelta {given}; "
            f"round it, for example to timedelta(milliseconds={whole + 1})"
        )
        raise TopologyError(message)
    return whole
