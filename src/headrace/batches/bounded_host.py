"""Host of a bounded task: stores in files of its own, a clock that stands still, global tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.batches.bounded_rows import BoundedJob
from headrace.runtime.global_task import make_global_task
from headrace.state import Engine, MemoryEngine, OverlayEngine, StoreBuilder
from headrace.state.engines.changes import Changes
from headrace.state.engines.environment import DISK_ENGINES, Environment, disk_engine, open_environment


class BoundedHost:
    """Host of a bounded task: stores in files below a directory, a clock that stands still."""

    def __init__(self, job: BoundedJob, directory: Path, tables: Mapping[str, Any]) -> None:
        self._job = job
        self._directory = directory
        self._environments: dict[str, Environment] = {}
        self._memory: dict[str, MemoryEngine] = {}
        self.global_stores = tables

    def now_ms(self) -> int:
        return self._job.now_ms

    def topic_name(self, topic: str) -> str:
        return self._job.layout.topic_name(topic)

    def partitions_of(self, topic: str) -> int:
        # Topics that are only written have as many as the widest one that is read, unless the application says more.
        partitions = self._job.layout.partitions
        return partitions.get(topic) or max(partitions.values(), default=1)

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        return OverlayEngine(self._engine_below(builder.name, disk_engine(builder, self._job.layout.config)))

    def _engine_below(self, name: str, kind: str | None) -> Engine:
        for known in DISK_ENGINES:
            if kind == known:
                if kind not in self._environments:
                    self._environments[kind] = open_environment(known, self._directory / known, self._job.layout.config)
                return self._environments[kind].engine(name)
        return self._memory.setdefault(name, MemoryEngine())

    def fill(self, builder: StoreBuilder, rows: Mapping[bytes, bytes | None]) -> None:
        """Writes rows of a store before its task is made."""
        self._engine_below(builder.name, disk_engine(builder, self._job.layout.config)).apply(Changes(rows=dict(rows)))

    def close(self) -> None:
        for environment in self._environments.values():
            environment.close()


def global_stores(job: BoundedJob) -> Mapping[str, Any]:
    """Returns the global tables with everything that their topics have."""
    layout = job.layout
    made = make_global_task(layout.topology, layout.config, _GlobalHost(job))
    if made is None:
        return {}
    for topic, raws in job.tables.items():
        made.add_records(topic, 0, raws)
    while made.process_one():
        pass
    made.commit()
    made.take_outputs()
    for engine in made.engines().values():
        engine.commit()
    return made.stores


class _GlobalHost(BoundedHost):
    """Keeps global tables in memory."""

    def __init__(self, job: BoundedJob) -> None:
        super().__init__(job, Path(), {})

    def partitions_of(self, topic: str) -> int:
        return 1

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        return OverlayEngine(MemoryEngine())
