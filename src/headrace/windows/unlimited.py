"""The window without end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.arguments.durations import MAX_LONG
from headrace.arguments.values import whole_number
from headrace.errors import TopologyError, describe_value
from headrace.windows.window import UnlimitedWindow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window that starts at ``start_ms`` and never ends; earlier records belong to none.

    >>> UnlimitedWindows.of().windows_for(5)
    [0]
    >>> UnlimitedWindows.of().start_on(datetime(2024, 1, 1, tzinfo=UTC)).windows_for(5)
    []
    """

    start_ms: int = 0
    """Start of the window."""

    def __post_init__(self) -> None:
        whole_number(self.start_ms, "UnlimitedWindows: start_ms")
        if self.start_ms < 0:
            message = f"UnlimitedWindows: the start must not be before the epoch, got {self.start_ms} ms"
            raise TopologyError(message)

    @classmethod
    def of(cls) -> UnlimitedWindows:
        """The window that starts at the epoch and takes every record.

        >>> UnlimitedWindows.of()
        UnlimitedWindows(start_ms=0)
        """
        return cls()

    def start_on(self, start: datetime) -> UnlimitedWindows:
        """The window that starts at a moment, which must have a time zone.

        >>> UnlimitedWindows.of().start_on(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
        UnlimitedWindows(start_ms=1000)
        """
        if not isinstance(start, datetime) or start.tzinfo is None:
            message = (
                f"UnlimitedWindows: the start must be a datetime with a time zone, got {describe_value(start)}; "
                "write for example datetime(2024, 1, 1, tzinfo=UTC)"
            )
            raise TopologyError(message)
        return UnlimitedWindows((start - _EPOCH) // timedelta(milliseconds=1))

    @property
    def size_ms(self) -> int:
        """Length of the window: Java's largest long, as in Kafka Streams.

        >>> UnlimitedWindows.of().size_ms == 2**63 - 1
        True
        """
        return MAX_LONG

    @property
    def grace_ms(self) -> int:
        """Zero: the window never closes.

        >>> UnlimitedWindows.of().grace_ms
        0
        """
        return 0

    def windows_for(self, timestamp_ms: int) -> list[int]:
        """Returns the start of the window if the record belongs to it.

        >>> UnlimitedWindows(start_ms=10).windows_for(9), UnlimitedWindows(start_ms=10).windows_for(10)
        ([], [10])
        """
        return [self.start_ms] if timestamp_ms >= self.start_ms else []

    def window_at(self, start_ms: int) -> UnlimitedWindow:
        """Returns the window that starts then.

        >>> UnlimitedWindows.of().window_at(0)
        UnlimitedWindow(start_ms=0, end_ms=9223372036854775807)
        """
        return UnlimitedWindow(start_ms)
