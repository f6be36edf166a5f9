"""The starts of the windows of each key: for those who ask for a range of time. Most stores are never asked for one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any


class StartsByKey:
    """Starts in order, by key. It is kept from the first ``collect`` on: whoever adds rows then has to add them here.

    >>> starts = StartsByKey()
    >>> starts.collect({20: {"a": 1}, 10: {"a": 2, "b": 3}})
    >>> starts.add("a", 15)
    >>> starts.starts("a", 0), starts.starts("b", 0), starts.starts("c", 0)
    ([10, 15, 20], [10], [])
    """

    __slots__ = ("_starts", "is_kept")

    def __init__(self) -> None:
        self._starts: dict[Any, list[int]] = {}
        self.is_kept = False

    def collect(self, *windows: Mapping[int, Iterable[Any]]) -> None:
        """Starts with the keys of windows, by their starts."""
        self.is_kept = True
        for each in windows:
            for start_ms, names in each.items():
                for name in names:
                    self.add(name, start_ms)

    def add(self, name: Any, start_ms: int) -> None:
        """Adds a start of a key, if it is not there."""
        starts = self._starts.get(name)
        if starts is None:
            self._starts[name] = [start_ms]
            return
        place = bisect_left(starts, start_ms)
        if place == len(starts) or starts[place] != start_ms:
            starts.insert(place, start_ms)

    def starts(self, name: Any, live_from_ms: int) -> list[int]:
        """Returns the starts of a key, and forgets those that are older than ``live_from_ms``."""
        starts = self._starts.get(name)
        if starts is None:
            return []
        if starts[0] < live_from_ms:
            del starts[: bisect_left(starts, live_from_ms)]
            if not starts:
                del self._starts[name]
        return starts

    def forget(self) -> None:
        """Forgets everything; nothing has to be added until the next ``collect``."""
        self._starts.clear()
        self.is_kept = False
