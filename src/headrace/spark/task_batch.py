"""A micro-batch as one task sees it: read the ranges, process, write the outputs, save the changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from headrace.errors import OffsetOutOfRangeError
from headrace.runtime.punctuation import NEVER
from headrace.runtime.task import Task
from headrace.spark.application import Application
from headrace.spark.chunks import ChunkLog, StoreChanges, digest_of
from headrace.spark.layout import Program, TaskPlace
from headrace.spark.live_task import LiveTask
from headrace.spark.plan import Plan, Range
from headrace.spark.receipts import Row, TaskReport, edge_origin, parse_origin
from headrace.spark.worker_host import partitions_in
from headrace.topics.blob import pack_all, unpack
from headrace.topics.log import Output, Raw, Topic, TopicLog
from headrace.topics.spread import Sticky, spread

logger = logging.getLogger(__name__)

_BATCH_BITS = 32
"""Records that cross an edge have no offset in a log: theirs is made of the batch and their place in it."""
_PAGE_BYTES = 4 << 20
"""A range is read in pages of about this size, so that a long one never lies in memory as a whole."""


class _FirstPartition(Sticky):
    """Sends records without a key to the first partition, as the test driver does."""

    __slots__ = ()

    def __call__(self, output: Output, partitions: int) -> int:
        return 0


_FIRST_PARTITION = _FirstPartition(0)


class TaskBatch:
    """One attempt of one task at one micro-batch; ``check`` is called before it is finished, and may raise."""

    def __init__(
        self, application: Application, place: TaskPlace, plan: Plan, attempt: int, check: Callable[[], None]
    ) -> None:
        self.application = application
        self.place = place
        self.plan = plan
        self.attempt = attempt
        self._check = check
        self.program: Program = application.layout.programs[place.program]
        self.now_ms = plan.now_ms[place.program]

    def run(self, live: LiveTask, blobs: Sequence[Row], chunks: ChunkLog | None) -> tuple[list[Row], TaskReport]:
        """Processes everything; returns blobs for other tasks and what the driver must know."""
        task = live.task
        ranges = self.plan.ranges.get(self.place.key, ())
        for each in ranges:
            self._feed(task, each)
        consumed = self._feed_blobs(task, blobs)
        task.punctuate_wall_clock()
        task.process_all()
        task.commit()
        positions = {(each.topic, each.partition): self._position(task, each) for each in ranges}
        records = sum(positions[each.topic, each.partition] - each.start for each in ranges)
        for each in ranges:
            count = positions[each.topic, each.partition] - each.start
            consumed[each.topic] = consumed.get(each.topic, 0) + count
        task.drop_queued()
        outputs = task.take_outputs()
        produced = {topic: len(written) for topic, written in outputs}
        changes = live.save(chunks)
        sent: list[Row] = []
        count = 0
        log, program = self.application.log, self.program
        with log.stage(
            self.application.id,
            self.plan.batch_id,
            self.place.name,
            self.attempt,
            plan=self.plan.digest(),
            checkpoint=self.application.checkpoint,
            changes=lambda: digest_of(changes),
        ) as stage:
            for topic, written in outputs:
                if topic in program.edges:
                    sent += self._send(topic, written)
                else:
                    partitions_in(log, program.in_log(topic))
                    stage.write(program.in_log(topic), written)
                    count += len(written)
            for topic, written in self._changelogs(task, changes):
                stage.write(topic, written)
            self._check()
            receipt = stage.finish(positions)
        clock_ms = task.next_wall_clock_ms
        nodes, measures = task.state.take_figures()
        report = TaskReport(
            self.place.key,
            receipt,
            records,
            count,
            None if clock_ms == NEVER else clock_ms,
            live.rows(),
            0 if chunks is None else chunks.weight,
            counters=live.new_counts(),
            consumed={topic: count for topic, count in consumed.items() if count},
            produced=produced,
            nodes=nodes,
            measures=measures,
            late=task.state.late_samples.take(),
            restored=live.take_restored(),
        )
        return sent, report

    def _feed(self, task: Task, each: Range) -> None:
        pages = _pages(self.application.log, each, self.program.config.on_offset_out_of_range)
        task.add_pages(self._topic(each), each.partition, pages, resumes_ms=each.resumes_ms)

    def _topic(self, each: Range) -> str:
        return each.topic.removeprefix(self.program.prefix)

    def _position(self, task: Task, each: Range) -> int:
        left = task.next_offset(self._topic(each), each.partition)
        return each.end if left is None else left

    def _feed_blobs(self, task: Task, rows: Sequence[Row]) -> dict[str, int]:
        """Hands over what other tasks have sent; returns how many records it is, by topic."""
        counts: dict[str, int] = {}
        # In the order in which they were sent: the shuffle promises none.
        base = self.plan.batch_id << _BATCH_BITS
        for row in sorted(rows, key=lambda row: (row.origin, row.sequence)):
            topic, upstream = parse_origin(row.origin)
            assert row.blob is not None, "only heartbeats have no blob"
            raws = unpack(row.blob, base)
            base += len(raws)
            task.add_upstream_records(topic, self.place.id.partition, upstream, raws)
            counts[topic] = counts.get(topic, 0) + len(raws)
        return counts

    def _send(self, topic: str, outputs: Sequence[Output]) -> list[Row]:
        """Packs what goes over an edge, for each task that gets some of it."""
        program, origin = self.program, edge_origin(topic, self.place.id)
        reader = program.edges[topic]
        rows = []
        for partition, part in spread(Topic(topic, program.partitions[topic]), outputs, _FIRST_PARTITION):
            key = self.application.layout.key_of(program.prefix, reader, partition)
            rows += [Row(key, origin, sequence, blob) for sequence, blob in enumerate(pack_all(part))]
        return rows

    def _changelogs(self, task: Task, changes: StoreChanges) -> Iterable[tuple[str, list[Output]]]:
        """Returns the changes of stores that can be queried as records of their changelog topics."""
        topics = self.application.changelogs[self.program.prefix]
        now_ms = max(task.state.stream_time_ms, 0)
        for name, each in changes.items():
            if name not in topics:
                continue
            store = task.stores[name]
            yield (
                topics[name],
                [
                    (
                        self.place.id.partition,
                        now_ms if timestamp_ms is None else timestamp_ms,
                        key,
                        value,
                        () if value is None else store.changelog_headers,
                    )
                    for key, value, timestamp_ms in store.changelog_records(each)
                ],
            )

    def append(self, letters: Iterable[tuple[str, list[Output]]]) -> None:
        """Writes dead letters of a failing task at once: the batch that they belong to will not be committed."""
        for topic, outputs in letters:
            name = self.program.in_log(topic)
            partitions_in(self.application.log, name)
            self.application.log.append(name, outputs)


def _pages(log: TopicLog, each: Range, on_loss: str) -> Iterator[list[Raw]]:
    start = each.start
    while start < each.end:
        try:
            found = log.read(each.topic, each.partition, start, each.end, max_bytes=_PAGE_BYTES)
        except OffsetOutOfRangeError as error:
            if on_loss == "fail" or start >= error.begin:
                raise
            # Retention was faster than we were. Of this range, "latest" leaves out what is left, too.
            lost_to = min(error.begin, each.end) if on_loss == "earliest" else each.end
            logger.warning("%s-%d: records %d to %d are gone unread", each.topic, each.partition, start, lost_to - 1)
            start = lost_to
            continue
        if not found:
            # Compaction or retention has removed the rest.
            break
        start = found[-1][0] + 1
        yield found
