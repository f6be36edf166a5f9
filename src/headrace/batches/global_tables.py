"""Global tables: a copy per machine, shared by its processes, and read up to where the plan says."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.batches.layout import Layout
from headrace.batches.task_host import TaskHost
from headrace.batches.working_copy import boot_id
from headrace.private_directory import make_directories
from headrace.runtime.gc_pause import collector_paused
from headrace.runtime.global_task import make_global_task
from headrace.runtime.task import Task
from headrace.state.engines.changes import Changes
from headrace.state.engines.lmdb import LmdbEnvironment
from headrace.topics.log import TopicLog

_OWN = "."
_POSITIONS = b"positions"
_AT_ONCE = 50_000


class GlobalTables:
    """The global stores of one application. A batch sees the same tables on all hosts: its plan says up to where."""

    def __init__(self, layout: Layout, log: TopicLog, directory: Path) -> None:
        self._layout = layout
        self._log = log
        self._directory = directory
        make_directories(directory)
        with self._locked():
            # Rows are not forced to the disk, so a copy from before a reboot may be damaged. It is read again.
            name = boot_id()
            for other in directory.iterdir():
                if other.is_dir() and other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            self._environment = LmdbEnvironment(directory / name)
        self._own = self._environment.engine(_OWN)
        self._host = TaskHost(layout, log, self._environment.engine, {})
        made = make_global_task(layout.topology, layout.config, self._host)
        assert made is not None, "only topologies with global stores get here"
        self._task: Task = made
        self._seen: dict[str, int] = self._positions()
        self._counted: dict[str, float] = {}

    @property
    def stores(self) -> Mapping[str, Any]:
        return self._task.stores

    def _positions(self) -> dict[str, int]:
        found = self._own.get(_POSITIONS)
        return {} if found is None else dict(json.loads(found))

    def catch_up(self, ends: Mapping[str, int], now_ms: int) -> None:
        """Reads the topics up to the offsets of a plan; another worker may have done it."""
        mine = {f"{topic}/{partition}": (topic, partition) for topic, partition in self._layout.global_partitions()}
        self._host.clock_ms = now_ms
        if all(self._seen.get(name, 0) >= ends.get(name, 0) for name in mine):
            return
        with self._locked():
            positions = self._positions()
            if positions != self._seen:
                for store in self._task.stores.values():
                    store.reload()
            for name, (topic, partition) in mine.items():
                while (start := positions.get(name, self._begin(topic, partition))) < ends.get(name, 0):
                    positions[name] = self._read(topic, partition, start, ends[name])
                    self._commit(positions)
            self._seen = positions

    def new_counts(self) -> dict[str, float]:
        """Returns by how much the counters have grown: each host counts what it reads, as Kafka Streams does."""
        counts = self._task.state.metrics()
        grown = {name: value - self._counted.get(name, 0) for name, value in counts.items()}
        self._counted = counts
        return {name: value for name, value in grown.items() if value}

    def _begin(self, topic: str, partition: int) -> int:
        target = (topic, partition)
        return self._log.begin_offsets([target])[target]

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

    def _commit(self, positions: Mapping[str, int]) -> None:
        engines = self._task.engines()
        changes = {name: engine.changes() for name, engine in engines.items()}
        own = Changes(rows={_POSITIONS: json.dumps(positions).encode()})
        self._environment.apply(changes, {_OWN: own})
        for engine in engines.values():
            engine.rollback()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._directory / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        self._task.close()
        self._environment.close()
