"""The kinds of load, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from headrace.devtools.load.page_views import page_views, user_profiles
from headrace.devtools.load.purchases import purchases
from headrace.devtools.load.sensor_readings import sensor_readings
from headrace.devtools.load.word_lines import word_lines

Pair: TypeAlias = tuple[bytes | None, bytes]
"""Key and value."""

Blocks: TypeAlias = Iterator[list[tuple[bytes | None, bytes]]]


@dataclass(frozen=True)
class Load:
    """One kind of load.

    >>> block = next(LOADS["word-lines"].blocks(keys=100, seed=1, size=2))
    >>> [(key, value.decode().count(" ") > 1) for key, value in block]
    [(None, True), (None, True)]
    """

    name: str
    what: str
    """What a record is, in a few words."""
    default_keys: int
    """How many different customers, users, sensors or words there are unless one says otherwise."""
    interval_ms: int
    """Event time between two records unless one says otherwise."""
    make: Callable[[int, int, int], Blocks]
    """Number of keys, seed, size of a block."""

    def blocks(self, *, keys: int | None = None, seed: int = 0, size: int = 1_000) -> Blocks:
        """Returns the records, without end, in lists of ``size``; their size does not change what they are."""
        return self.make(keys or self.default_keys, seed, size)


LOADS = {
    load.name: load
    for load in (
        Load("purchases", "what customers buy, for examples/retail_purchases.py; no key", 1_000, 1_000, purchases),
        Load("page-views", "pages that users look at, for examples/page_views_by_region.py", 1_000, 100, page_views),
        Load("user-profiles", "the profiles of those users, one after the other", 1_000, 1, user_profiles),
        Load("sensor-readings", "temperature and humidity by sensor", 100, 100, sensor_readings),
        Load("word-lines", "lines of words, for examples/word_count.py; text, no key", 200, 100, word_lines),
    )
}
