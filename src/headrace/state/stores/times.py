"""Times in the public methods of stores: milliseconds, or a ``datetime``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

Time = int | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def as_ms(time: Time) -> int:
    """Returns a time in milliseconds since 1970.

    >>> as_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), as_ms(5)
    (1000, 5)
    """
    if isinstance(time, datetime):
        if time.tzinfo is None:
            message = f"a time needs a time zone, got {time!r}; write for example datetime(…, tzinfo=UTC)"
            raise ValueError(message)
        return (time - _EPOCH) // _MILLISECOND
    return time
