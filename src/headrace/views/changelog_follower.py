"""Changelog follower: keeps a replica up to date, one whole commit per step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from headrace.config import StreamsConfig
from headrace.errors import OffsetOutOfRangeError, UnknownTopicError
from headrace.topics.log import Offsets, Raw, TopicLog, TopicPartition
from headrace.topology.topology import Topology
from headrace.views.global_stores import GlobalFeed
from headrace.views.input_progress import NoProgress, Progress
from headrace.views.metadata import LagInfo
from headrace.views.position import Position
from headrace.views.replica import PartState, Replica, probe_of
from headrace.views.viewed_stores import Part, ViewedStore

logger = logging.getLogger(__name__)

_AT_ONCE = 100_000
"""Records that a backlog is applied in."""
_LARGEST_COMMIT = 1_000_000
"""Records of a commit that an up-to-date view applies in one transaction, so that no reader sees half of it."""
_TOMBSTONES_MS = 24 * 3600 * 1000
"""How long compaction leaves deletions in a topic, unless its settings say otherwise."""


def wall_clock_ms() -> int:
    """Returns the time of the machine."""
    return time.time_ns() // 1_000_000


class ChangelogFollower:
    """A replica and the changelogs that it follows. One thread steps; ``parts`` are what it is to keep.

    With a ``topology`` they are read as far as its application has committed; without one each is a topic, which is
    read to its end. ``adapt`` gets the records of a partition as they are read, and returns those to be kept.
    """

    def __init__(
        self,
        topology: Topology | None,
        config: StreamsConfig,
        log: TopicLog,
        stores: Mapping[str, ViewedStore],
        directory: Path,
        *,
        adapt: Callable[[int, list[Raw]], list[Raw]] | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._log = log
        self._adapt = adapt
        self._stores = stores
        self._clock = clock
        self.partitions = {store.topic: log.partitions_of(store.topic) for store in stores.values()}
        """How many partitions each topic has."""
        total = sum(self.partitions[store.topic] for store in stores.values())
        self.replica = Replica(directory, stores, config, parts=total)
        self._progress = NoProgress() if topology is None else Progress(topology, config.application_id, log)
        self._globals: GlobalFeed | None = None
        if topology is not None and topology.global_stores:
            self._globals = GlobalFeed(topology, config, log, self.replica)
        self._is_orphaned = False
        self._wanted: list[Part] = []
        self._check_history()
        # What has come since is not known yet, so nothing is up to date.
        self.replica.save({part: replace(each, ready=False) for part, each in self.replica.state.parts.items()})

    def _tombstones_ms(self) -> int:
        configs = [self._log.describe_topic(topic).configs for topic in self.partitions]
        return min((int(each.get("delete.retention.ms", _TOMBSTONES_MS)) for each in configs), default=_TOMBSTONES_MS)

    def keep(self, parts: Iterable[Part]) -> None:
        """Says which partitions are kept; others are given up. Global stores are always kept, and whole."""
        wanted = {*parts, *self._global_parts()}
        for part in set(self.replica.state.parts) - wanted:
            self.replica.forget(part)
        begins = self._log.begin_offsets([self._target(part) for part in wanted])
        for part in sorted(wanted):
            if self._stores[part[0]].is_global:
                if part not in self.replica.state.parts:
                    self.replica.save({part: PartState(begins[self._target(part)])})
            else:
                self.replica.hold(part, begins[self._target(part)])
        self._wanted = sorted(wanted)

    def _global_parts(self) -> list[Part]:
        return [
            (store.name, each)
            for store in self._stores.values()
            if store.is_global
            for each in range(self.partitions[store.topic])
        ]

    def _target(self, part: Part) -> TopicPartition:
        return self._stores[part[0]].topic, part[1]

    def _check_history(self) -> None:
        """Discards rows from topics that were created again, or whose tombstones may be compacted away."""
        state = self.replica.state
        self._progress.look()
        too_old = bool(state.parts) and self._clock() - state.written_ms > self._tombstones_ms()
        if self._progress.batch_id < state.batch_id or too_old:
            self._forget_all("it was away for too long" if too_old else "the application was reset")
            return
        if self._have_changed():
            self._forget_all("its topics were made anew")
            return
        for part, each in state.parts.items():
            if part[0] not in self._stores or part[1] >= self.partitions[self._stores[part[0]].topic]:
                self.replica.forget(part)
            elif each.probe is not None and not self._is_same(part, each.probe):
                self._forget_all(f"the topic of store '{part[0]}' was made anew")
                return

    def _topic_ids(self) -> dict[str, str]:
        return {topic: self._log.topic_id(topic) for topic in self.partitions}

    def _have_changed(self) -> bool:
        """Tells whether topics are others than those that were read; notes which ones they are."""
        found, known = self._topic_ids(), self.replica.state.topics
        if found != known:
            self.replica.note_topics(found)
        return any(known.get(topic, each) != each for topic, each in found.items())

    def _is_same(self, part: Part, probe: tuple[int, int]) -> bool:
        topic, partition = self._target(part)
        try:
            found = self._read_log(topic, partition, probe[0], probe[0] + 1, 1)
        except OffsetOutOfRangeError as error:
            # Removed by retention, or never there.
            return probe[0] < error.begin
        return not found or probe_of(found[0]) == probe

    def _forget_all(self, why: str) -> None:
        logger.warning("the view in '%s' is built anew: %s", self.replica.directory, why)
        topics = self.replica.state.topics
        self.replica.wipe()
        self.replica.note_topics(topics)
        if self._globals is not None:
            self._globals.reload()

    @property
    def targets(self) -> Offsets:
        """The partitions that are followed, and where each goes on."""
        parts = self.replica.state.parts
        return {self._target(part): parts[part].offset for part in self._wanted if part in parts}

    def lags(self) -> dict[str, dict[int, LagInfo]]:
        """Returns how far each partition has come, and how far it could be."""
        ends: Offsets = {}
        with suppress(UnknownTopicError):
            ends = self._log.end_offsets(self.targets)
        found: dict[str, dict[int, LagInfo]] = {}
        for part, state in self.replica.state.parts.items():
            end = ends.get(self._target(part), state.offset)
            found.setdefault(part[0], {})[part[1]] = LagInfo(state.offset, max(end, state.offset))
        return found

    def step(self) -> bool:
        """Reads available records, up to a limit; True if there are more."""
        try:
            position = self._progress.look()
            if self._progress.batch_id < self.replica.state.batch_id or self._have_changed():
                self._start_over("the application was reset")
            return self._advance(position, self._find_ends())
        except OffsetOutOfRangeError as error:
            self._start_over(f"its changelog does not reach back: {error}")
            return True
        except UnknownTopicError as error:
            # Between a reset and the next start there are no topics; what was there can still be asked for.
            if not self._is_orphaned:
                logger.warning(
                    "the view in '%s' has nothing to follow: topic '%s' is gone", self.replica.directory, error.topic
                )
            self._is_orphaned = True
            return False

    def _start_over(self, why: str) -> None:
        wanted = self._wanted
        self._forget_all(why)
        self.keep(wanted)

    def _find_ends(self) -> dict[Part, int]:
        found = self._log.end_offsets([self._target(part) for part in self._wanted])
        ends = {}
        for part in self._wanted:
            target = self._target(part)
            if self._stores[part[0]].is_source:
                # What the application has not read yet is not in its table.
                ends[part] = min(found[target], self._progress.positions.get(target, 0))
            else:
                ends[part] = found[target]
        return ends

    def _advance(self, position: Position, ends: Mapping[Part, int]) -> bool:
        parts = self.replica.state.parts
        records: dict[Part, list[Raw]] = {}
        states: dict[Part, PartState] = {}
        budget = _AT_ONCE
        behind: set[Part] = set()
        for part in self._wanted:
            state, end = parts[part], ends[part]
            if state.offset < end:
                limit = _LARGEST_COMMIT if state.ready else max(0, budget)
                found, reached = self._read(part, state.offset, end, limit)
                budget -= len(found)
                probe = probe_of(found[-1]) if found else state.probe
                states[part] = PartState(reached, reached >= end, probe)
                if found:
                    records[part] = found
                if reached < end:
                    behind.add(part)
            elif not state.ready:
                states[part] = replace(state, ready=True)
        self._apply(records, states, None if behind else position)
        self._is_orphaned = False
        return bool(behind)

    def _read(self, part: Part, start: int, end: int, limit: int) -> tuple[list[Raw], int]:
        """Returns records, and the offset behind them."""
        topic, partition = self._target(part)
        found: list[Raw] = []
        while start < end and len(found) < limit:
            more = self._read_log(topic, partition, start, end, limit - len(found))
            if not more:
                # Compaction has removed the rest.
                return found, end
            found += more
            start = more[-1][0] + 1
        return found, start

    def _read_log(self, topic: str, partition: int, start: int, stop: int, max_records: int) -> list[Raw]:
        found = self._log.read(topic, partition, start, stop, max_records=max_records)
        return found if self._adapt is None else self._adapt(partition, found)

    def _apply(
        self, records: Mapping[Part, list[Raw]], states: Mapping[Part, PartState], position: Position | None
    ) -> None:
        own = {part: raws for part, raws in records.items() if not self._stores[part[0]].is_global}
        shared = {self._target(part): raws for part, raws in records.items() if part not in own}
        extra = self._globals.feed(shared) if shared and self._globals is not None else {}
        self.replica.apply(
            own,
            states,
            position=position,
            batch_id=None if position is None else self._progress.batch_id,
            now_ms=self._clock(),
            extra=extra,
        )
        if shared and self._globals is not None:
            self._globals.settle()

    def is_ready(self, parts: Collection[Part] | None = None) -> bool:
        """Tells whether parts, or all that are kept, are at the end of a commit."""
        states = self.replica.state.parts
        return all(part in states and states[part].ready for part in (self._wanted if parts is None else parts))

    def wait(self, seconds: float) -> bool:
        """Waits until there is something to read; False when the time is over."""
        # A topic that is a table's changelog is read no further than the application has read it.
        own = {self._stores[part[0]].topic for part in self._wanted if not self._stores[part[0]].is_source}
        targets = {target: at for target, at in self.targets.items() if target[0] in own}
        try:
            return self._log.wait_for_data(targets, timedelta(seconds=seconds))
        except UnknownTopicError:
            time.sleep(seconds)
            return False

    def close(self) -> None:
        if self._globals is not None:
            self._globals.close()
        self.replica.close()
