"""Broker in memory: partitions, transactions and topics with Kafka's semantics, without a network.

- A transactional id has a producer id and an epoch. Who initialises it fences all producers before; what they have open
  is aborted, and the answer comes when that is done.
- The end of a transaction is acknowledged when it is decided; its markers reach each partition some time later, and
  each takes an offset. Until then the last stable offset stays before the transaction's first record.
- A record that arrives after its transaction is over, or from a fenced producer, is refused.
- Readers see the last stable offset late, as readers of a follower do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from tests.simulation.scheduler import Scheduler

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class RefusedError(Exception):
    """What a broker answers instead of a result."""

    def __init__(self, code: int) -> None:
        super().__init__(KafkaError(code).name())
        self.code = code


@dataclass(eq=False)
class Part:
    """What one transaction has written to one partition."""

    first: int
    state: str = OPEN


@dataclass(slots=True)
class Entry:
    """A record, or the marker of a transaction's end."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    part: Part | None
    is_marker: bool
    appended_ms: int


Message = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Timestamp, key, value, headers."""


@dataclass(eq=False)
class Partition:
    """A log of entries, with gaps where some were removed."""

    entries: list[Entry] = field(default_factory=list)
    begin: int = 0
    end: int = 0
    open: dict[int, Part] = field(default_factory=dict)
    """By producer."""
    epochs: dict[int, int] = field(default_factory=dict)
    hidden: tuple[float, int] = (0.0, 0)
    """Until when readers see an older last stable offset, and which."""

    @property
    def stable(self) -> int:
        if not self.open:
            return self.end
        return max(self.begin, min(part.first for part in self.open.values()))

    def shown(self, now: float) -> int:
        until, at = self.hidden
        if now >= until:
            return self.stable
        return max(self.begin, min(at, self.stable))

    def add(self, message: Message, part: Part | None, now_ms: int, *, is_marker: bool = False) -> int:
        offset = self.end
        self.entries.append(Entry(offset, *message, part, is_marker, now_ms))
        self.end += 1
        return offset

    def between(self, start: int, stop: int) -> list[Entry]:
        first = bisect_left(self.entries, start, key=lambda entry: entry.offset)
        last = bisect_left(self.entries, stop, first, key=lambda entry: entry.offset)
        return self.entries[first:last]

    def committed(self, start: int, stop: int) -> list[Entry]:
        """Returns records that readers of committed ones get."""
        return [
            entry
            for entry in self.between(start, stop)
            if not entry.is_marker and (entry.part is None or entry.part.state == COMMITTED)
        ]

    def cut(self, before: int) -> None:
        self.begin = max(self.begin, min(before, self.end))
        del self.entries[: bisect_left(self.entries, self.begin, key=lambda entry: entry.offset)]

    def compact(self, stop: int, tombstones_before_ms: int) -> None:
        """Keeps the last committed record of each key, and deletions for their time."""
        stop = min(stop, self.stable)
        last: dict[bytes | None, int] = {}
        for entry in self.committed(self.begin, stop):
            last[entry.key] = entry.offset
        self.entries = [
            entry
            for entry in self.entries
            if entry.offset >= stop
            or (
                not entry.is_marker
                and last.get(entry.key) == entry.offset
                and (entry.value is not None or entry.appended_ms > tombstones_before_ms)
            )
        ]


@dataclass(eq=False)
class StoredTopic:
    name: str
    id: str
    partitions: list[Partition]
    configs: dict[str, str]


@dataclass(eq=False)
class Transactions:
    """What the coordinator knows of a transactional id."""

    producer: int
    epoch: int = -1
    state: str = "empty"
    """empty, ongoing, or ending."""
    timeout_s: float = 60.0
    number: int = 0
    partitions: dict[tuple[str, int], None] = field(default_factory=dict)
    outcome: str = ABORTED


class Broker:
    """All that the brokers of a cluster know. Methods are what requests do when they arrive."""

    def __init__(self, scheduler: Scheduler, *, marker_delay_s: float, show_delay_s: float) -> None:
        self.scheduler = scheduler
        self.topics: dict[str, StoredTopic] = {}
        self.groups: dict[str, dict[tuple[str, int], int]] = {}
        self.away_until = 0.0
        self.on_commit: Callable[[tuple[str, int], Sequence[Entry]], None] = lambda place, entries: None
        self.on_append: Callable[[tuple[str, int], Sequence[Message]], None] = lambda place, messages: None
        self._marker_delay_s = marker_delay_s
        self._show_delay_s = show_delay_s
        self._transactions: dict[str, Transactions] = {}
        self._numbers = 0

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    @property
    def now_ms(self) -> int:
        return int((1_700_000_000 + self.scheduler.now) * 1000)

    # Topics.

    def create(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        if name in self.topics:
            raise RefusedError(KafkaError.TOPIC_ALREADY_EXISTS)
        parts = [Partition() for _ in range(partitions)]
        self.topics[name] = StoredTopic(name, f"id-{self._number()}", parts, dict(configs or {}))

    def grow(self, name: str, partitions: int) -> None:
        found = self.topic(name).partitions
        if partitions <= len(found):
            raise RefusedError(KafkaError.INVALID_PARTITIONS)
        found += [Partition() for _ in range(partitions - len(found))]

    def delete(self, name: str) -> None:
        self.topic(name)
        del self.topics[name]

    def topic(self, name: str) -> StoredTopic:
        found = self.topics.get(name)
        if found is None:
            raise RefusedError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found

    def partition(self, target: tuple[str, int]) -> Partition:
        name, number = target
        topic = self.topics.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            raise RefusedError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return topic.partitions[number]

    def delete_records(self, target: tuple[str, int], before: int) -> None:
        topic = self.topic(target[0])
        if topic.configs.get("cleanup.policy") == "compact":
            raise RefusedError(KafkaError.POLICY_VIOLATION)
        self.partition(target).cut(before)

    def compact(self) -> None:
        """Compacts all topics that want it, up to anywhere."""
        for topic in self.topics.values():
            if "compact" in topic.configs.get("cleanup.policy", ""):
                kept_ms = int(topic.configs.get("delete.retention.ms", 24 * 3600 * 1000))
                for partition in topic.partitions:
                    stop = self.scheduler.rng.randint(partition.begin, partition.end)
                    partition.compact(stop, self.now_ms - kept_ms)

    def append(self, target: tuple[str, int], messages: Sequence[Message]) -> int:
        """Writes records outside of transactions; returns the offset of the first one."""
        partition = self.partition(target)
        first = partition.end
        for message in messages:
            partition.add(message, None, self.now_ms)
        self.on_append(target, messages)
        return first

    # Transactions.

    def init_producer(self, name: str, timeout_s: float) -> tuple[int, int] | None:
        """Returns producer and epoch; None says that what was open has to end first: ask again."""
        found = self._transactions.get(name)
        if found is None:
            found = self._transactions[name] = Transactions(self._number())
        found.timeout_s = timeout_s
        if found.state == "ongoing":
            found.epoch += 1
            self._end(found, ABORTED)
        if found.state == "ending":
            return None
        found.epoch += 1
        return found.producer, found.epoch

    def add_partitions(self, name: str, epoch: int, targets: Sequence[tuple[str, int]]) -> bool:
        """Makes partitions part of a transaction; False says that the last one has to end first: ask again."""
        found = self._checked(name, epoch)
        if found.state == "ending":
            return False
        for target in targets:
            self.partition(target)
        if found.state == "empty":
            found.state, found.number, found.partitions = "ongoing", found.number + 1, {}
            number = found.number
            self.scheduler.later(found.timeout_s, lambda: self._expire(found, number))
        found.partitions.update(dict.fromkeys(targets))
        return True

    def produce(self, name: str, epoch: int, target: tuple[str, int], messages: Sequence[Message]) -> int:
        """Writes records in a transaction; returns the offset of the first one."""
        partition, found = self.partition(target), self._transactions[name]
        if partition.epochs.get(found.producer, -1) > epoch:
            raise RefusedError(KafkaError.INVALID_PRODUCER_EPOCH)
        if found.epoch != epoch:
            raise RefusedError(KafkaError.INVALID_PRODUCER_EPOCH)
        if found.state != "ongoing" or target not in found.partitions:
            raise RefusedError(KafkaError.INVALID_TXN_STATE)
        partition.epochs[found.producer] = epoch
        part = partition.open.get(found.producer)
        if part is None:
            part = partition.open[found.producer] = Part(partition.end)
        first = partition.end
        for message in messages:
            partition.add(message, part, self.now_ms)
        return first

    def end(self, name: str, epoch: int, outcome: str) -> None:
        """Decides a transaction."""
        found = self._checked(name, epoch)
        if found.state == "ongoing":
            self._end(found, outcome)
        elif found.outcome != outcome or found.number == 0:
            raise RefusedError(KafkaError.INVALID_TXN_STATE)

    def ongoing(self) -> list[str]:
        """Returns who has a transaction open."""
        return [name for name, found in self._transactions.items() if found.state == "ongoing"]

    def _checked(self, name: str, epoch: int) -> Transactions:
        found = self._transactions[name]
        if found.epoch != epoch:
            raise RefusedError(KafkaError.PRODUCER_FENCED)
        return found

    def _expire(self, found: Transactions, number: int) -> None:
        if found.state == "ongoing" and found.number == number:
            self.scheduler.note(None, f"broker: transaction of producer {found.producer} has expired")
            found.epoch += 1
            self._end(found, ABORTED)

    def _end(self, found: Transactions, outcome: str) -> None:
        found.state, found.outcome = "ending", outcome
        rng = self.scheduler.rng
        for target in found.partitions:
            delay = rng.random() ** 4 * self._marker_delay_s
            self.scheduler.later(delay, lambda target=target: self._mark(found, target))  # type: ignore[misc]

    def _mark(self, found: Transactions, target: tuple[str, int]) -> None:
        del found.partitions[target]
        if not found.partitions:
            found.state = "empty"
        if target[0] not in self.topics:
            return
        partition = self.partition(target)
        before = partition.stable
        part = partition.open.pop(found.producer, None)
        partition.epochs[found.producer] = found.epoch
        if part is not None:
            part.state = found.outcome
            if part.state == COMMITTED:
                self.on_commit(target, [entry for entry in partition.entries if entry.part is part])
        partition.add((0, None, None, ()), None, self.now_ms, is_marker=True)
        if self._show_delay_s:
            until = self.scheduler.now + self.scheduler.rng.random() ** 4 * self._show_delay_s
            partition.hidden = (until, min(before, partition.shown(self.scheduler.now)))
