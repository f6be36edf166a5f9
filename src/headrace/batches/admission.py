"""Admission: so many records per micro-batch that it takes about the time it should."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.topics.log import TopicPartition

_FIRST = 20_000
"""Records of the first batch: its result should come soon, and nothing is known yet."""
_SMALLEST = 1_000
_LARGEST_STEP = 4.0
_FORGETTING = 1.05
"""How fast the estimate of the fixed part rises when batches become longer."""
_MAX_BYTES = 256 << 20


class Admission:
    """Adapts the number of records to how long batches take.

    A part of that time is the same for every batch. It is estimated by the shortest batch of late, and smaller batches
    would not make it less: so the work on records is never planned to take less time than that.
    """

    def __init__(self, *, target_ms: float, max_records: int) -> None:
        self._target_ms = target_ms
        self._max_records = max_records
        self._fixed_ms = target_ms
        self.records = min(_FIRST, max_records)
        """What the next batch may read."""

    def learn(self, records: int, duration_ms: float) -> None:
        """Takes into account how long a batch took; one that read less than it might have tells only the fixed part.

        >>> admission = Admission(target_ms=1000, max_records=1_000_000)
        >>> admission.learn(0, 200.0)
        >>> admission.learn(20_000, 600.0)
        >>> admission.records
        40512
        """
        self._fixed_ms = min(self._fixed_ms * _FORGETTING, duration_ms)
        if records < self.records // 2:
            return
        work_ms = max(duration_ms - self._fixed_ms, duration_ms / 10)
        wanted_ms = max(self._target_ms - self._fixed_ms, self._fixed_ms)
        factor = min(max(wanted_ms / work_ms, 1 / _LARGEST_STEP), _LARGEST_STEP)
        self.records = min(max(int(records * factor), _SMALLEST), self._max_records)


def share(available: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """Divides what a batch may read among partitions: those with little get all of it, the others equal parts.

    >>> share({("a", 0): 10, ("a", 1): 500, ("b", 0): 900}, 610)
    {('a', 0): 10, ('a', 1): 300, ('b', 0): 300}
    >>> share({("a", 0): 5, ("a", 1): 5}, 1)
    {('a', 0): 1, ('a', 1): 1}
    """
    shares: dict[TopicPartition, int] = {}
    waiting = sorted((count, target) for target, count in available.items() if count > 0)
    for place, (count, target) in enumerate(waiting):
        shares[target] = max(1, min(count, limit // (len(waiting) - place)))
        limit -= shares[target]
    return shares


def fitting(shares: Mapping[TopicPartition, int], record_bytes: Mapping[TopicPartition, int]) -> float:
    """Returns which part of the shares fits into memory; 1.0 if all of it does."""
    size = sum(count * record_bytes[target] for target, count in shares.items())
    return min(1.0, _MAX_BYTES / size) if size else 1.0
