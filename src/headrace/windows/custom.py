"""Windows protocol: the members that a custom window specification needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from headrace.windows.time import TimeWindows
from headrace.windows.unlimited import UnlimitedWindows
from headrace.windows.window import Window


@runtime_checkable
class Windows(Protocol):
    """Windows that a stream can be grouped by: `TimeWindows`, `UnlimitedWindows`, or a class of your own.

    Your class needs these four members and no base class; a frozen dataclass is best, because a topology is pickled to
    where it runs. The functions must be pure: the same windows for the same timestamp, the same end for the same start.

    A window is kept under its key and start alone, and `window_at` tells where it ends. So windows need not be of one
    length, as Kafka Streams' stores and serdes assume, and no two windows can have the same start. Keys of the result
    are written as Kafka Streams writes them, with the start; to read them elsewhere, give the windows to the serde:
    ``Serdes.time_windowed(Serdes.string(), windows=days)``.

    Days of a place whose clock is some hours off UTC; for a real time zone take ``zoneinfo``, and 25 hours as the size:

    >>> from dataclasses import dataclass
    >>> from datetime import timedelta
    >>> from headrace import Materialized, StreamsBuilder, TimeWindow, TopologyTestDriver
    >>> HOUR_MS, DAY_MS = 3_600_000, 86_400_000
    >>> @dataclass(frozen=True)
    ... class Days:
    ...     offset_hours: int
    ...     size_ms: int = DAY_MS
    ...     grace_ms: int = 0
    ...
    ...     def windows_for(self, timestamp_ms: int) -> list[int]:
    ...         start_ms = timestamp_ms - (timestamp_ms + self.offset_hours * HOUR_MS) % DAY_MS
    ...         return [start_ms] if start_ms >= 0 else []
    ...
    ...     def window_at(self, start_ms: int) -> TimeWindow:
    ...         return TimeWindow(start_ms, start_ms + DAY_MS)
    >>> builder = StreamsBuilder()
    >>> days = builder.stream("in").group_by_key().windowed_by(Days(offset_hours=2))
    >>> table = days.count(materialized=Materialized("per-day"))
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     topic = driver.create_input_topic("in")
    ...     for hour in (22, 45, 46):
    ...         topic.pipe_input("a", "x", timestamp_ms=hour * HOUR_MS)
    ...     [(key.window.start_time.isoformat(), count) for key, count in driver.get_window_store("per-day").all()]
    [('1970-01-01T22:00:00+00:00', 2), ('1970-01-02T22:00:00+00:00', 1)]
    """

    @property
    def size_ms(self) -> int:
        """Length of the longest window: with the grace period, it is how long a store keeps a window."""
        ...

    @property
    def grace_ms(self) -> int:
        """How long after its end a window takes late records."""
        ...

    def windows_for(self, timestamp_ms: int) -> Iterable[int]:
        """Returns the starts of the windows that a record belongs to, none of them negative; the record goes to them
        in this order.
        """
        ...

    def window_at(self, start_ms: int) -> Window:
        """Returns the window that starts then."""
        ...


def custom_windows(windows: Windows) -> Windows | None:
    """Returns windows of one's own, and None for those whose ends follow from their size.

    >>> custom_windows(UnlimitedWindows.of()) is None
    True
    """
    return None if isinstance(windows, TimeWindows | UnlimitedWindows) else windows
