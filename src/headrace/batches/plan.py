"""The plan of a micro-batch: what each task reads, and what time it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec


class Range(NamedTuple):
    """Records of one partition: those with ``start`` ≤ offset < ``end``."""

    topic: str
    partition: int
    start: int
    end: int
    resumes_ms: int | None
    """The log has more of the partition, none of it older than this; None: it had no more when this was planned."""


def partition_name(topic: str, partition: int) -> str:
    """Returns a partition as a key of JSON.

    >>> partition_name("rates", 3)
    'rates/3'
    """
    return f"{topic}/{partition}"


class Plan(msgspec.Struct, frozen=True):
    """Everything that decides what a micro-batch of an application does, besides the log and the state before it."""

    batch_id: int
    now_ms: int
    """What user code sees as the current time."""
    ranges: Mapping[str, tuple[Range, ...]] = {}
    """By the name of the task that reads them."""
    due: frozenset[str] = frozenset()
    """Tasks that run although they may have nothing to read, because a clock of theirs is due."""
    stamps: Mapping[str, str] = {}
    """The last commit of every task that has made one: a task that is open somewhere knows by it if it is current."""
    global_ends: Mapping[str, int] = {}
    """Up to where global tables are read: offsets by ``partition_name``."""
    restores: frozenset[str] = frozenset()
    """Tasks that do not take part yet: they are restored meanwhile, and say how far they are."""

    @property
    def has_work(self) -> bool:
        """Whether any task is to do anything but being restored."""
        return bool(self.ranges or self.due)

    def pack(self) -> bytes:
        """Returns the plan as it is recorded, and handed to the tasks.

        >>> plan = Plan(7, 1000, {"0_0": (Range("in", 0, 5, 9, None),)})
        >>> Plan.unpack(plan.pack()) == plan
        True
        """
        return msgspec.json.encode(self)

    @classmethod
    def unpack(cls, data: bytes | str) -> Plan:
        """Returns the plan that ``pack`` has written."""
        return msgspec.json.decode(data, type=cls)

    @property
    def records(self) -> int:
        """How many offsets it covers."""
        return sum(each.end - each.start for ranges in self.ranges.values() for each in ranges)
