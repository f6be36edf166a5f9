"""Moves of rows when a store gets more partitions: where each row of a changelog goes."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from struct import Struct

from headrace.change.changelog_rows import last_offsets, read_pages
from headrace.change.growth_plan import StoreGrowth
from headrace.change.partition_keys import PartitionKey
from headrace.topics.log import Output, Raw, ReadableLog
from headrace.topics.partitioner import murmur2

_PARTITION = Struct(">i")


class MisplacedRowError(Exception):
    """A row is in another partition than the hash of its key says."""

    def __init__(self, store: str, key: bytes, partition: int, expected: int) -> None:
        super().__init__(
            f"store '{store}' has rows that are not where their keys go, such as {key[:40]!r} in partition {partition} "
            f"instead of {expected}: it is keyed by something else than its input, or a partitioner has placed that"
        )


@dataclass(frozen=True)
class PartitionMoves:
    """One partition of a changelog: which of its records go where.

    Only offsets are in memory. Of a key the last record counts; of a versioned store all of them do.
    """

    growth: StoreGrowth
    partition: int
    begin: int
    end: int
    offsets: dict[int, array[int]]
    """By the partition where they belong."""
    primary_key: PartitionKey
    """Where subscriptions have the key of their row in the left table."""

    @classmethod
    def find(
        cls,
        log: ReadableLog,
        growth: StoreGrowth,
        partition: int,
        end: int,
        partition_key: PartitionKey,
        primary_key: PartitionKey,
    ) -> PartitionMoves:
        """Reads a partition up to an offset; raises MisplacedRowError if rows are not where they belong."""
        target = (growth.topic, partition)
        begin = log.begin_offsets([target])[target]
        offsets: dict[int, array[int]] = {}
        places: dict[bytes, int] = {}

        def place(key: bytes) -> int:
            try:
                hashed = murmur2(partition_key(key)) & 0x7FFFFFFF
            except Exception:
                raise MisplacedRowError(growth.store, key, partition, -1) from None
            if hashed % growth.before != partition:
                raise MisplacedRowError(growth.store, key, partition, hashed % growth.before)
            return hashed % growth.after

        if growth.is_versioned:
            for page in read_pages(log, target, begin, end):
                for offset, _, key, _, _ in page:
                    if key is not None:
                        if key not in places:
                            places[key] = place(key)
                        offsets.setdefault(places[key], array("q")).append(offset)
        else:
            for key, offset in last_offsets(log, target, begin, end).items():
                offsets.setdefault(place(key), array("q")).append(offset)
        found = {to: array("q", sorted(each)) for to, each in offsets.items()}
        moves = cls(growth, partition, begin, end, found, primary_key)
        if growth.rewrites:
            moves._check_left_partitions(log)
        return moves

    @property
    def rows(self) -> int:
        return sum(map(len, self.offsets.values()))

    @property
    def moved(self) -> int:
        """How many of them go elsewhere."""
        return self.rows - len(self.offsets.get(self.partition, ()))

    def only_to(self, to: int) -> PartitionMoves:
        """Returns the moves to one partition, without the others, which may have to be sent to another process."""
        return replace(self, offsets={to: self.offsets[to]} if to in self.offsets else {})

    def copied(self, log: ReadableLog, to: int) -> Iterator[tuple[str, list[Output]]]:
        """Returns the rows that belong to a partition, page by page, as they are written there."""
        for page in self._pages(log, self.offsets.get(to, array("q"))):
            yield (
                self.growth.topic,
                [(to, time_ms, key, self._rewritten(key, value), headers) for _, time_ms, key, value, headers in page],
            )

    def given_away(self, log: ReadableLog) -> Iterator[tuple[str, list[Output]]]:
        """Returns the records for the rows' former partition: deletions of moved rows, and changed rows."""
        gone = array("q", sorted(at for to, offsets in self.offsets.items() if to != self.partition for at in offsets))
        times: dict[bytes, int] = {}
        for page in self._pages(log, gone):
            for _, time_ms, key, _, _ in page:
                # A deletion that is older than a version would leave that version there.
                if key is not None:
                    times[key] = max(time_ms, times.get(key, 0))
            if not self.growth.is_versioned and times:
                yield self.growth.topic, [(self.partition, at, key, None, ()) for key, at in times.items()]
                times = {}
        if times:
            yield self.growth.topic, [(self.partition, at, key, None, ()) for key, at in times.items()]
        if self.growth.rewrites:
            yield from self.copied(log, self.partition)

    def _pages(self, log: ReadableLog, offsets: array[int]) -> Iterator[list[Raw]]:
        if not offsets:
            return
        for page in read_pages(log, (self.growth.topic, self.partition), offsets[0], self.end):
            first, last = bisect_left(offsets, page[0][0]), bisect_right(offsets, page[-1][0])
            wanted = frozenset(offsets[first:last])
            rows = [raw for raw in page if raw[0] in wanted]
            if rows:
                yield rows

    def _rewritten(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """Lets a subscription name the partition where its row of the left table is now."""
        if not self.growth.rewrites or key is None or value is None or not value[0] & 0x7F:
            return value
        return value[: -_PARTITION.size] + _PARTITION.pack(self._left_hash(key) % self.growth.left_after)

    def _check_left_partitions(self, log: ReadableLog) -> None:
        for offsets in self.offsets.values():
            for page in self._pages(log, offsets):
                for _, _, key, value, _ in page:
                    if key is None or value is None or not value[0] & 0x7F:
                        continue
                    (named,) = _PARTITION.unpack(value[-_PARTITION.size :])
                    expected = self._left_hash(key) % self.growth.left_before
                    if named != expected:
                        raise MisplacedRowError(self.growth.store, key, named, expected)

    def _left_hash(self, key: bytes) -> int:
        return murmur2(self.primary_key(key)) & 0x7FFFFFFF
