"""Position of an application: the input offsets whose results are all in the changelogs."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.topics.log import Offsets, TopicLog, TopicPartition
from headrace.topology.levels import back_edges
from headrace.topology.topology import Topology
from headrace.views.position import Position


@dataclass
class _Candidate:
    """A position, and the ends of back edges to read before all its results are in the changelogs."""

    position: Position
    ends: Offsets
    hops: int


class NoProgress:
    """The progress behind a topic that no application is waited for: everything that is in it counts."""

    batch_id = -1

    def __init__(self) -> None:
        self.positions: Offsets = {}

    def look(self) -> Position:
        return Position()


class Progress:
    """Tells the position that all changelogs have reached.

    A micro-batch commits its inputs together with everything that follows from them, except for what goes over a back
    edge, which the next one reads. So behind back edges a position counts once that has been read as well, and what
    follows from it again, as often as there are back edges.
    """

    def __init__(self, topology: Topology, application: str, log: TopicLog) -> None:
        self._application = application
        self._log = log
        self._edges = {topology.full_topic_name(topic, application) for topic in back_edges(topology)}
        self._candidate: _Candidate | None = None
        self._reached = Position()
        self.positions: Offsets = {}
        """Up to where each input was consumed when it was looked last."""
        self.batch_id = -1

    def look(self) -> Position:
        """Returns the position: a reader that then asks for the ends of the changelogs and reads up to there has it."""
        last = self._log.last_batch(self._application)
        self.batch_id = -1 if last is None else last.batch_id
        self.positions = self._log.positions(self._application)
        found = Position.consumed({target: at for target, at in self.positions.items() if target[0] not in self._edges})
        if not self._edges:
            return found
        return self._behind_edges(found)

    def _behind_edges(self, found: Position) -> Position:
        edges: list[TopicPartition] = [
            (topic, partition) for topic in sorted(self._edges) for partition in range(self._log.partitions_of(topic))
        ]
        ends = self._log.end_offsets(edges)
        begins = self._log.begin_offsets(edges)
        read = {target: max(self.positions.get(target, 0), begins[target]) for target in edges}
        if all(read[target] >= ends[target] for target in edges):
            self._candidate = None
            self._reached = found
            return found
        waiting = self._candidate
        if waiting is not None and all(read[target] >= end for target, end in waiting.ends.items()):
            waiting.hops -= 1
            waiting.ends = ends
            if waiting.hops <= 0:
                self._reached = self._reached.merge(waiting.position)
                waiting = self._candidate = None
        if waiting is None:
            self._candidate = _Candidate(found, ends, len(self._edges))
        return self._reached
