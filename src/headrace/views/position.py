"""Positions: offsets that were processed per input partition, and the bounds that queries demand of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.topics.log import Offsets, TopicPartition, Written


class Position:
    """The offset of the last record that was processed, by topic and partition. It is a value: every change is new.

    >>> position = Position.empty_position().with_component("orders", 0, 41)
    >>> position.merge(Position.from_map({"orders": {0: 7, 1: 3}}))
    Position({'orders': {0: 41, 1: 3}})
    """

    __slots__ = ("_offsets",)

    def __init__(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        self._offsets: Mapping[TopicPartition, int] = dict(offsets or {})

    @classmethod
    def empty_position(cls) -> Position:
        """The position of something that has read nothing."""
        return cls()

    @classmethod
    def from_map(cls, offsets: Mapping[str, Mapping[int, int]]) -> Position:
        """Makes a position of offsets by topic, then partition.

        >>> Position.from_map({"orders": {0: 41}}).partition_positions("orders")
        {0: 41}
        """
        return cls({(topic, int(each)): int(at) for topic, several in offsets.items() for each, at in several.items()})

    @classmethod
    def after(cls, topic: str, written: Written) -> Position:
        """The position of a reader that has seen what ``TopicLog.append`` has just written.

        >>> Position.after("orders", {0: (40, 42)})
        Position({'orders': {0: 41}})
        """
        return cls({(topic, partition): end - 1 for partition, (_, end) in written.items()})

    @classmethod
    def consumed(cls, offsets: Offsets) -> Position:
        """The position of a reader that continues at these offsets.

        >>> Position.consumed({("orders", 0): 42, ("orders", 1): 0})
        Position({'orders': {0: 41}})
        """
        return cls({target: at - 1 for target, at in offsets.items() if at > 0})

    def with_component(self, topic: str, partition: int, offset: int) -> Position:
        """Returns this position with an offset that is at least that of one partition."""
        return self.merge(Position({(topic, partition): offset}))

    def copy(self) -> Position:
        """Returns itself: a position never changes."""
        return self

    def merge(self, other: Position) -> Position:
        """Returns the larger offset of each partition."""
        merged = dict(self._offsets)
        for target, offset in other._offsets.items():
            merged[target] = max(offset, merged.get(target, offset))
        return Position(merged)

    def covers(self, other: Position) -> bool:
        """Tells whether it is at or behind every offset of another position.

        >>> Position({("orders", 0): 41}).covers(Position({("orders", 0): 7}))
        True
        >>> Position({("orders", 0): 41}).covers(Position({("orders", 1): 0}))
        False
        """
        mine = self._offsets
        return all(mine.get(target, -1) >= offset for target, offset in other._offsets.items())

    def missing(self, other: Position) -> dict[TopicPartition, int]:
        """Returns the offsets of another position that it has not reached."""
        mine = self._offsets
        return {target: offset for target, offset in other._offsets.items() if mine.get(target, -1) < offset}

    @property
    def topics(self) -> frozenset[str]:
        """The topics of which it has an offset."""
        return frozenset(topic for topic, _ in self._offsets)

    def partition_positions(self, topic: str) -> dict[int, int]:
        """Returns the offsets of a topic by partition."""
        return {partition: at for (name, partition), at in self._offsets.items() if name == topic}

    @property
    def is_empty(self) -> bool:
        """Whether it has no offset at all."""
        return not self._offsets

    def to_map(self) -> dict[str, dict[int, int]]:
        """Returns the offsets by topic, then partition."""
        return {topic: self.partition_positions(topic) for topic in sorted(self.topics)}

    def __iter__(self) -> Iterator[tuple[TopicPartition, int]]:
        return iter(self._offsets.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._offsets == other._offsets

    def __hash__(self) -> int:
        return hash(frozenset(self._offsets.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Position, (dict(self._offsets),)

    def __repr__(self) -> str:
        return f"Position({self.to_map()})"


@dataclass(frozen=True)
class PositionBound:
    """Bound on the position of an answer: the smallest position that a query accepts.

    >>> PositionBound.unbounded().is_unbounded
    True
    """

    position: Position
    """The position that the answer must have reached."""

    @classmethod
    def unbounded(cls) -> PositionBound:
        """Returns the bound that every position fulfils."""
        return cls(Position())

    @classmethod
    def at(cls, position: Position) -> PositionBound:
        """Demands that the answer has seen this position: with that of a write, a query reads its own write."""
        return cls(position)

    @property
    def is_unbounded(self) -> bool:
        """Whether every position fulfils it."""
        return self.position.is_empty
