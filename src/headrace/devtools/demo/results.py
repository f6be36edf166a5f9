"""Results of the demo pipeline, read from its output topics."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.devtools.demo.retail_purchases import FREE_COFFEES, PATTERNS, REWARDS
from headrace.topics.log import Raw, ReadableLog, TopicPartition

TOPICS = (PATTERNS, REWARDS, FREE_COFFEES)
_LATEST = 8


class Result(NamedTuple):
    """A record of an output topic."""

    key: str
    value: dict[str, Any]


class Results:
    """Follows the output topics. One thread catches up, any other may look."""

    def __init__(self, log: ReadableLog) -> None:
        self._log = log
        self._positions: dict[TopicPartition, int] = {}
        self._steady_ms: int | None = None
        self._latencies_ms: list[int] = []
        self.latest: dict[str, tuple[Result, ...]] = dict.fromkeys(TOPICS, ())
        """The newest last."""

    def catch_up(self) -> bool:
        """Reads what is new; returns whether there was anything. Called after every commit."""
        if not self._positions:
            partitions = [(topic, self._log.describe_topic(topic).partitions) for topic in TOPICS]
            self._positions = {(topic, each): 0 for topic, count in partitions for each in range(count)}
        now_ms = time.time_ns() // 1_000_000
        any_new = False
        for (topic, partition), end in self._log.end_offsets(self._positions).items():
            while found := self._log.read(topic, partition, self._positions[topic, partition], end):
                any_new = True
                self._positions[topic, partition] = found[-1][0] + 1
                newest = tuple(_result(raw) for raw in found[-_LATEST:])
                self.latest[topic] = (self.latest[topic] + newest)[-_LATEST:]
                if topic == PATTERNS:
                    self._note(found, now_ms)
        if any_new and self._steady_ms is None:
            self._steady_ms = now_ms
        return any_new

    def _note(self, found: Sequence[Raw], now_ms: int) -> None:
        # Every purchase gives one pattern, with its timestamp: the moment at which it was appended. What was written
        # while Spark started has waited for that.
        steady_ms = self._steady_ms
        if steady_ms is not None:
            self._latencies_ms += [now_ms - raw[1] for raw in found if raw[1] >= steady_ms]

    def latency_ms(self, share: float, last: int = 0) -> int | None:
        """Returns the milliseconds from append to visible result that this share of purchases did not exceed.

        Of the ``last`` ones only, if that is said.
        """
        return percentile(self._latencies_ms[-last:], share)


def percentile(values: Sequence[int], share: float) -> int | None:
    """Returns the smallest value that this share of the values does not exceed.

    >>> percentile([5, 1, 3, 2, 4], 0.5), percentile([], 0.5)
    (3, None)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def _result(raw: Raw) -> Result:
    _, _, key, value, _ = raw
    return Result((key or b"").decode(), json.loads(value or b"{}"))
