"""Unread records of repartition topics when an application is taken over from Kafka Streams.

Between tasks of Headrace records go over edges within a micro-batch, and no topic holds them. Kafka Streams writes them
to topics, and what it has not read there is read once, as ordinary ranges of the tasks behind the edges, before
anything else. The deepest level comes first: what lies there is older than anything that the levels above will send.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.batches.layout import Layout, TaskPlace
from headrace.batches.plan import Plan, Range
from headrace.topics.log import ReadableLog, TopicPartition


class UnreadEdges:
    """Ranges of repartition topics that are still to be read, level by level.

    Only an application that was taken over has positions in such topics, so for all others there is nothing to do.
    """

    def __init__(self, layout: Layout, log: ReadableLog, positions: Mapping[TopicPartition, int]) -> None:
        self._layout = layout
        self._log = log
        begun = {target: at for target, at in positions.items() if target[0] in layout.edges}
        ends = log.end_offsets(begun)
        self._left = {target: (at, ends[target]) for target, at in begun.items() if ends[target] > at}

    def __bool__(self) -> bool:
        return bool(self._left)

    def next_ranges(self, positions: Mapping[TopicPartition, int]) -> dict[str, tuple[Range, ...]]:
        """Returns what the tasks of the deepest level read that have anything left.

        A task takes records of its other inputs along, at ``positions``, as far as they are not younger: then it
        processes all of them in the order of time, as Kafka Streams would.
        """
        readers = [(place, found) for place in self._layout.tasks if (found := self._unread_ranges(place))]
        deepest = max(place.level for place, _ in readers)
        return {
            place.name: (*edges, *self._input_ranges(place, edges, positions))
            for place, edges in readers
            if place.level == deepest
        }

    def _unread_ranges(self, place: TaskPlace) -> tuple[Range, ...]:
        return tuple(
            Range(topic, partition, *self._left[topic, partition], None)
            for _, topic, partition in place.inputs
            if (topic, partition) in self._left
        )

    def _input_ranges(
        self, place: TaskPlace, edges: tuple[Range, ...], positions: Mapping[TopicPartition, int]
    ) -> list[Range]:
        times = [self._log.latest_time(each.topic, each.partition, each.start, each.end) for each in edges]
        latest_ms = max((time_ms for time_ms in times if time_ms is not None), default=-1)
        targets = {target: positions[target] for target in self._layout.log_inputs(place)}
        ends = self._log.end_offsets(targets)
        found = []
        for target, start in targets.items():
            cut = self._log.offset_after(*target, start, ends[target], latest_ms)
            end = ends[target] if cut is None else cut
            if end > start:
                found.append(Range(*target, start, end, None))
        return found

    def done(self, plan: Plan) -> None:
        """Takes notice of a batch that was committed."""
        for ranges in plan.ranges.values():
            for each in ranges:
                self._left.pop((each.topic, each.partition), None)
