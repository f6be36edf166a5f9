"""A task in a worker between two micro-batches: built once, used again as long as nothing has happened elsewhere."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.errors import ProcessorStateError
from headrace.runtime.task import Task
from headrace.spark.application import Application
from headrace.spark.chunks import ChunkLog, StoreChanges
from headrace.spark.layout import TaskPlace
from headrace.spark.worker_host import WorkerHost
from headrace.spark.working_copy import WorkingCopy, died_in, discard

logger = logging.getLogger(__name__)


class LiveTask:
    """A task above its working copy; one without stores has no copy.

    A batch leaves its changes in the overlays. The next one finds out whether Spark has committed them: if the chunks
    are where the batch has left them, the changes are written to the copy; otherwise the task is built anew.
    """

    def __init__(
        self,
        application: Application,
        place: TaskPlace,
        chunks: ChunkLog | None,
        tables: Mapping[str, Any],
        *,
        clock_ms: int,
    ) -> None:
        program = application.layout.programs[place.program]
        topology = program.topology
        part = next(part for part in program.parts if part.id == place.id.subtopology)
        builders = [topology.store_builders[store] for store in part.state_stores]
        self._copy: WorkingCopy | None = None
        self._restored = 0
        if builders:
            assert chunks is not None, "a program with stores runs with Spark's state"
            self._copy = WorkingCopy(application.directory / place.name)
        try:
            if self._copy is not None and chunks is not None:
                self._restored = self._copy.catch_up(chunks)
            remembered = chunks.remembered if chunks is not None else b""
            self.host = WorkerHost(program, application.log, self._engine, tables)
            self.host.clock_ms = clock_ms
            self.task = Task(
                place.id,
                [topology.nodes[name] for name in part.nodes],
                topology.children,
                builders,
                program.config,
                self.host,
                pickle.loads(remembered) if remembered else None,
            )
            for source, topic, partition in place.inputs:
                self.task.add_partition(source, topic, partition)
        except BaseException:
            if self._copy is not None:
                self._copy.close()
            raise
        self._stamp = chunks.stamp if chunks is not None else ""
        self._changes: StoreChanges = {}
        self._counted: dict[str, float] = {}

    def _engine(self, store: str) -> Any:
        assert self._copy is not None, "only tasks with stores ask for engines"
        return self._copy.engine(store)

    def is_current(self, chunks: ChunkLog | None) -> bool:
        """Brings the copy to the committed version; False if the task does not know what happened since."""
        if chunks is None:
            return True
        if chunks.stamp != self._stamp:
            return False
        if self._copy is not None:
            if not self._copy.is_untouched():
                return False
            if self._changes and not self._copy.settle(self._changes, self._copy.version, chunks.version):
                return False
            if self._copy.version != chunks.version:
                return False
            for engine in self.task.engines().values():
                engine.rollback()
        self._changes = {}
        return True

    def begin(self, batch: str) -> None:
        """Starts a batch on the copy."""
        if self._copy is not None:
            self._copy.begin(batch)

    def save(self, chunks: ChunkLog | None) -> StoreChanges:
        """Hands Spark what the batch has changed, and returns it."""
        if chunks is None:
            return {}
        engines = self.task.engines()
        changes = {store: each for store, engine in engines.items() if (each := engine.changes())}
        if changes:
            chunks.append(
                changes,
                live_rows=self.rows(),
                current=lambda store, key: engines[store].get(key) if store in engines else None,
            )
        chunks.save(pickle.dumps(self.task.remember()))
        self.task.forget_volatile()
        if self._copy is not None and not self._copy.is_untouched():
            message = (
                f"the working copy of task {self.task.id} was changed by somebody else while a batch ran on it; "
                "nothing of the batch was kept; leave the state directory alone while the application runs"
            )
            raise ProcessorStateError(message)
        self._stamp, self._changes = chunks.stamp, changes
        return changes

    def rows(self) -> int:
        """Returns how many rows the stores have, as far as they are in the copy."""
        return 0 if self._copy is None else self._copy.rows(self.task.stores)

    def new_counts(self) -> dict[str, float]:
        """Returns by how much the counters have grown since they were asked for last."""
        counts = self.task.state.metrics()
        grown = {name: value - self._counted.get(name, 0) for name, value in counts.items()}
        self._counted = counts
        return {name: value for name, value in grown.items() if value}

    def take_restored(self) -> int:
        """Returns how many rows were restored for this task, once."""
        restored, self._restored = self._restored, 0
        return restored

    def end(self) -> None:
        """Ends a batch on the copy."""
        if self._copy is not None:
            self._copy.end()

    def close(self) -> None:
        """Closes processors, stores and files; what user code raises here has no consequence any more."""
        try:
            with suppress(Exception):
                self.end()
            self.task.close()
        except Exception as error:
            logger.warning("task %s: closing it failed: %s", self.task.id, error)
        finally:
            if self._copy is not None:
                self._copy.close()


def distrust(directory: Path, batch: str, attempt: int) -> None:
    """Deletes a copy on which an earlier attempt of this batch has killed its process."""
    if attempt > 0 and died_in(directory, batch):
        discard(directory)
