"""Distribution of records over partitions: explicit, by the key's hash, or sticky for records without a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from headrace.errors import TopicError
from headrace.topics.log import Output, Topic
from headrace.topics.partitioner import known_partitions

_partition_of = itemgetter(0)
_key_of = itemgetter(2)

STICKY_BYTES = 16 * 1024
"""Records without a key stay with a partition for so long, as with Kafka's producer and its ``batch.size``."""


class Sticky:
    """Sticky partitioner of records without a key: one partition until it has got a fair share, then the next one."""

    __slots__ = ("_left", "_turn")

    def __init__(self, start: int) -> None:
        self._turn = start
        self._left = STICKY_BYTES

    def __call__(self, output: Output, partitions: int) -> int:
        chosen = self._turn % partitions
        self._left -= len(output[3] or b"") + 16
        if self._left <= 0:
            self._turn += 1
            self._left = STICKY_BYTES
        return chosen


def spread(topic: Topic, outputs: Sequence[Output], sticky: Sticky) -> Iterator[tuple[int, Sequence[Output]]]:
    """Returns the records of each partition that gets any, in their order.

    >>> users = Topic("users", 4)
    >>> list(spread(users, [(None, 1, b"alice", b"x", ()), (2, 1, b"alice", b"y", ())], Sticky(0)))
    [(1, [(None, 1, b'alice', b'x', ())]), (2, [(2, 1, b'alice', b'y', ())])]
    >>> list(spread(users, [(4, 1, b"alice", b"x", ())], Sticky(0)))
    Traceback (most recent call last):
    ...
    headrace.errors.TopicError: topic 'users' has partitions 0 to 3; a record was written to partition 4; correct the \
partitioner, or create the topic with more partitions
    """
    if not outputs:
        return
    partitions = topic.partitions
    named = set(map(_partition_of, outputs))
    explicit = named - {None}
    _check(topic, explicit)
    keyless = None in map(_key_of, outputs)
    if keyless and topic.is_compacted:
        message = (
            f"topic '{topic.name}' is compacted, so its records need keys; a record without one was written; give it a "
            "key, or create the topic with cleanup.policy=delete"
        )
        raise TopicError(message)
    if partitions == 1:
        yield 0, outputs
        return
    if len(explicit) == len(named) == 1:
        # As in a changelog, to which a task writes one partition.
        yield explicit.pop(), outputs
        return
    rooms: list[list[Output]] = [[] for _ in range(partitions)]
    put = [room.append for room in rooms]
    partition_of = known_partitions(partitions)
    if explicit or keyless:
        for output in outputs:
            partition, _, key, _, _ = output
            if partition is None:
                partition = sticky(output, partitions) if key is None else partition_of[key]
            put[partition](output)
    else:
        for chosen, output in zip(map(partition_of.__getitem__, map(_key_of, outputs)), outputs, strict=True):
            put[chosen](output)
    yield from ((partition, room) for partition, room in enumerate(rooms) if room)


def _check(topic: Topic, explicit: Iterable[int | None]) -> None:
    for partition in explicit:
        if not isinstance(partition, int) or not 0 <= partition < topic.partitions:
            message = (
                f"topic '{topic.name}' has partitions 0 to {topic.partitions - 1}; a record was written to partition "
                f"{partition}; correct the partitioner, or create the topic with more partitions"
            )
            raise TopicError(message)
