"""Global tables: a copy per machine, shared by its processes, and read up to where the plan says."""

from __future__ import annotations

import fcntl
import logging
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace.batches.layout import Layout
from headrace.batches.plan import partition_name
from headrace.batches.restore import tombstones_ms
from headrace.batches.task_host import TaskHost
from headrace.batches.working_copy import copy_origin
from headrace.errors import OffsetOutOfRangeError
from headrace.private_directory import make_directories
from headrace.runtime.gc_pause import collector_paused
from headrace.runtime.global_task import make_global_task
from headrace.runtime.task import Task
from headrace.state.engines.changes import Changes
from headrace.state.engines.lmdb import LmdbEnvironment
from headrace.topics.log import TopicLog

logger = logging.getLogger(__name__)

_OWN = "."
_STATE = b"state"
_AT_ONCE = 50_000
_NOTE_EVERY_MS = 60_000
"""How often it is noted that a copy is current, although nothing has changed."""


class _CopyState(msgspec.Struct, array_like=True, frozen=True):
    """State of the copy, as of one transaction."""

    topics: dict[str, str] = {}
    """The ids of the topics that it is from."""
    positions: dict[str, int] = {}
    """The next offset to read, by ``partition_name``."""
    current_ms: int = 0
    """When it was known last that nothing was missing; of a copy that is read from the beginning, when that began."""


class GlobalTables:
    """The global stores of one application. A batch sees the same tables on all hosts: its plan says up to where.

    A copy is read again from the beginning if its topics were made anew, if they were cut off behind it, or if
    compaction may have dropped tombstones that it has not seen.
    """

    def __init__(self, layout: Layout, log: TopicLog, directory: Path) -> None:
        self._log = log
        self._directory = directory
        self._targets = {partition_name(*target): target for target in layout.global_partitions()}
        # Before anything is open: a topic may be gone.
        topics = {topic for topic, _ in self._targets.values()}
        self._topics = {topic: log.topic_id(topic) for topic in topics}
        self._tombstones_ms = min(tombstones_ms(log, topic) for topic in topics)
        make_directories(directory)
        with self._locked():
            name = copy_origin()
            for other in directory.iterdir():
                if other.is_dir() and other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            self._environment = LmdbEnvironment(directory / name)
        self._own = self._environment.engine(_OWN)
        self._host = TaskHost(layout, log, self._environment.engine, {})
        made = make_global_task(layout.topology, layout.config, self._host)
        assert made is not None, "only topologies with global stores get here"
        self._task: Task = made
        self._seen = self._read_state()
        self._counted: dict[str, float] = {}

    @property
    def stores(self) -> Mapping[str, Any]:
        return self._task.stores

    def _read_state(self) -> _CopyState:
        found = self._own.get(_STATE)
        return _CopyState() if found is None else msgspec.msgpack.decode(found, type=_CopyState)

    def catch_up(self, ends: Mapping[str, int], now_ms: int) -> None:
        """Reads the topics up to the offsets of a plan; another worker may have done it."""
        self._host.clock_ms = now_ms
        if self._has_all(self._seen, ends) and _now_ms() - self._seen.current_ms < _NOTE_EVERY_MS:
            return
        with self._locked():
            state = self._read_state()
            if state.positions != self._seen.positions or state.topics != self._seen.topics:
                self._reload()
            while not self._has_all(state, ends):
                state = self._read_on(state if self._is_usable(state) else self._wiped(), ends)
            self._seen = replace(state, current_ms=_now_ms())
            self._write(self._seen, {})

    def _has_all(self, state: _CopyState, ends: Mapping[str, int]) -> bool:
        positions = state.positions
        return state.topics == self._topics and all(
            positions.get(name, 0) >= ends.get(name, 0) for name in self._targets
        )

    def _is_usable(self, state: _CopyState) -> bool:
        return state.topics == self._topics and _now_ms() - state.current_ms < self._tombstones_ms

    def _read_on(self, state: _CopyState, ends: Mapping[str, int]) -> _CopyState:
        """Reads up to the ends; returns the state then. What was cut off meanwhile is read from the new beginning."""
        begins = self._log.begin_offsets(self._targets.values())
        found = {name: begins[target] for name, target in self._targets.items()}
        state = replace(state, positions={**found, **state.positions})
        for name, (topic, partition) in self._targets.items():
            while (start := state.positions[name]) < ends.get(name, 0):
                try:
                    reached = self._read(topic, partition, start, ends[name])
                except OffsetOutOfRangeError as error:
                    logger.info("global tables are read again from the beginning: %s", error)
                    return self._wiped()
                state = replace(state, positions={**state.positions, name: reached})
                self._commit(state)
        return state

    def new_counts(self) -> dict[str, float]:
        """Returns by how much the counters have grown: each host counts what it reads, as Kafka Streams does."""
        counts = self._task.state.metrics()
        grown = {name: value - self._counted.get(name, 0) for name, value in counts.items()}
        self._counted = counts
        return {name: value for name, value in grown.items() if value}

    def _read(self, topic: str, partition: int, start: int, end: int) -> int:
        raws = self._log.read(topic, partition, start, end, max_records=_AT_ONCE)
        if not raws:
            return end
        with collector_paused():
            self._task.add_records(topic, partition, raws)
            self._task.process_all()
            self._task.commit()
        self._task.take_outputs()
        return raws[-1][0] + 1

    def _commit(self, state: _CopyState) -> None:
        engines = self._task.engines()
        self._write(state, {name: engine.changes() for name, engine in engines.items()})
        for engine in engines.values():
            engine.rollback()

    def _write(self, state: _CopyState, changes: Mapping[str, Changes]) -> None:
        own = Changes(rows={_STATE: msgspec.msgpack.encode(state)})
        self._environment.apply(changes, {_OWN: own})

    def _wiped(self) -> _CopyState:
        """Forgets all rows; returns the state then."""
        # First the state: a copy that has none is not used, whatever rows are left.
        self._own.delete(_STATE)
        for name in self._task.engines():
            self._environment.engine(name).clear()
        self._reload()
        return _CopyState(self._topics, {}, _now_ms())

    def _reload(self) -> None:
        """Goes on with what the copy has."""
        for engine in self._task.engines().values():
            engine.rollback()
        for store in self._task.stores.values():
            store.reload()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._directory / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        self._task.close()
        self._environment.close()


def _now_ms() -> int:
    return int(time.time() * 1000)
