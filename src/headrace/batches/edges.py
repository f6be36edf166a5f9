"""Records over repartition edges: packed into blobs by the task that sends them, unpacked by the one that reads them.

Both go page by page: a task that sends half a million records to another one never has them all in memory as objects,
and those that it has are still warm in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from headrace.batches.layout import Layout
from headrace.runtime.task import Task, TaskId
from headrace.topics.blob import info, pack_all, unpack
from headrace.topics.journal import EdgeBlob
from headrace.topics.log import Output, Raw, Topic
from headrace.topics.record_partitioning import Sticky, spread

_BATCH_BITS = 32
"""Records that cross an edge have no offset in a log: theirs is made of the batch and their place in it."""
_WORTHWHILE = 1000
"""Records for each receiver that are packed before the batch ends: fewer would make many small blobs."""


class EdgeWriter:
    """What a task sends over edges in one micro-batch."""

    def __init__(self, layout: Layout, task: Task) -> None:
        self._layout = layout
        self._task = task
        self._sequences: dict[tuple[str, int], int] = {}
        self.blobs: list[EdgeBlob] = []
        self.counts: dict[str, int] = {}
        """Records by topic."""

    def take_page(self) -> None:
        """Packs what the task has written to edges since the last time, where it is worth the while."""
        self._take(self._is_worthwhile)

    def take_rest(self) -> None:
        """Packs everything that the task has written to edges since the last time."""
        self._take(lambda topic, _: topic in self._layout.edges)

    def _is_worthwhile(self, topic: str, count: int) -> bool:
        return topic in self._layout.edges and count >= _WORTHWHILE * self._layout.partitions[topic]

    def _take(self, is_wanted: Callable[[str, int], bool]) -> None:
        for topic, outputs in self._task.take_outputs(is_wanted):
            self.counts[topic] = self.counts.get(topic, 0) + len(outputs)
            reader = self._layout.edges[topic]
            for partition, part in spread(Topic(topic, self._layout.partitions[topic]), outputs, FIRST_PARTITION):
                for blob in pack_all(part):
                    sequence = self._sequences.get((topic, partition), 0)
                    self._sequences[topic, partition] = sequence + 1
                    receiver, sender = str(TaskId(reader, partition)), str(self._task.id)
                    self.blobs.append(EdgeBlob(receiver, topic, sender, sequence, blob))


def feed_blobs(
    task: Task, blobs: Sequence[EdgeBlob], batch_id: int, between_pages: Callable[[], None]
) -> dict[str, int]:
    """Hands over what other tasks have sent; returns how many records it is, by topic."""
    counts: dict[str, int] = {}
    base = batch_id << _BATCH_BITS
    # In the order in which they were sent: a shuffle promises none.
    ordered = sorted(blobs, key=lambda each: (each.topic, each.sender, each.sequence))
    for (topic, sender), group in groupby(ordered, key=lambda each: (each.topic, each.sender)):
        sent = [each.blob for each in group]
        count = sum(info(blob).records for blob in sent)
        task.add_upstream_pages(topic, task.id.partition, TaskId.parse(sender), _unpacked(sent, base, between_pages))
        counts[topic] = counts.get(topic, 0) + count
        base += count
    return counts


def _unpacked(blobs: Sequence[bytes], base: int, between_pages: Callable[[], None]) -> Iterator[list[Raw]]:
    for blob in blobs:
        between_pages()
        page = unpack(blob, base)
        base += len(page)
        yield page


class _FirstPartition(Sticky):
    """Sends records without a key to the first partition, as the test driver does."""

    __slots__ = ()

    def __call__(self, output: Output, partitions: int) -> int:
        return 0


FIRST_PARTITION = _FirstPartition(0)
"""Where records without a key go over an edge."""
