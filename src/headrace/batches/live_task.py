"""A task between two micro-batches: built once, and used again as long as nothing has happened to it elsewhere."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any, NamedTuple

from headrace.batches.application import Application
from headrace.batches.layout import TaskPlace
from headrace.batches.reports import StoreRestore, join_restores
from headrace.batches.restore import restore_task
from headrace.batches.task_host import TaskHost
from headrace.batches.working_copy import Applied, CopyTakenError
from headrace.errors import ProcessorStateError
from headrace.runtime.task import Task
from headrace.runtime.task_memory import pack_memory, unpack_memory
from headrace.state.engines.changes import Changes
from headrace.state.engines.engine import Engine
from headrace.state.engines.memory import MemoryEngine
from headrace.state.engines.overlay import OverlayEngine
from headrace.state.stores.segmented import SegmentedStore
from headrace.topics.journal import EdgeBlob, Receipt, TaskCommitState, TaskJournal, TaskRecord, Written
from headrace.topics.log import Offsets, Output, TopicPartition

logger = logging.getLogger(__name__)

_SAMPLES = 16
"""How many moments of a store's retention are remembered: of its changelog, one part of so many is kept too long."""
_FIGURES_EVERY_S = 10.0
_COUNTED_ROWS = 256
"""Of how many changed rows of a store it is looked up whether they are new; more are extrapolated."""
_WALKED_ROWS = 4_096
"""How many rows a store may have of which those are counted, one by one, that expire."""


class _Sample(NamedTuple):
    """The end of a changelog at the moment when its store had seen rows up to a time."""

    offset: int
    observed_ms: int


class LiveTask:
    """A task above its working copy; one without stores has no copy.

    A batch leaves its changes in the overlays. The next plan says by the stamp whether they were committed: then they
    are taken over; otherwise the task is dropped, and built anew from the log.
    """

    def __init__(
        self,
        application: Application,
        place: TaskPlace,
        journal: TaskJournal,
        head: TaskCommitState,
        tables: Mapping[str, Any],
        *,
        clock_ms: int,
        ahead: Sequence[StoreRestore] = (),
    ) -> None:
        layout = application.layout
        part = layout.parts[place.id.subtopology]
        builders = [layout.topology.store_builders[store] for store in part.state_stores]
        memory = {} if head.record is None else unpack_memory(head.record.memory)
        self._place = place
        self._journal = journal
        self._changelogs = {store: place.changelogs[store] for store in place.changelogs if store in layout.changelogs}
        self._copy = layout.copy_of(place, application.directory) if place.changelogs else None
        self._restores: list[StoreRestore] = []
        samples = memory.pop("samples", {})
        try:
            if self._copy is not None:
                own = restore_task(layout, place, head, application.log, self._copy, memory.pop("clocks", {}))
                self._restores = join_restores(ahead, own)
            self.host = TaskHost(layout, application.log, self._engine, tables)
            self.host.clock_ms = clock_ms
            self.task = Task(
                place.id,
                [layout.topology.nodes[name] for name in part.nodes],
                layout.topology.children,
                builders,
                layout.config,
                self.host,
                memory,
            )
            for source, topic, partition in place.inputs:
                self.task.add_partition(source, topic, partition)
        except BaseException:
            if self._copy is not None:
                self._copy.close()
            raise
        self.stamp = "" if head.record is None else head.record.stamp
        self._lineage = token_hex(8) if head.record is None else head.record.lineage
        if self._copy is not None:
            self._copy.belong_to(self._lineage)
        self.changelogged = 0
        """Records that the last commit has written to changelogs."""
        self._positions: Offsets = {}
        if head.record is not None:
            self._positions = {(topic, n): offset for topic, n, offset in head.record.positions}
        self._ends: Offsets = dict(head.ends)
        self._changes: dict[str, Changes] = {}
        self._counted: dict[str, float] = {}
        self._samples: dict[str, deque[_Sample]] = {
            store: deque(_Sample(*each) for each in samples.get(store, ()))
            for store in self._changelogs
            if isinstance(self.task.stores[store], SegmentedStore)
        }
        self._figures_due = 0.0
        known = {} if head.record is None else head.record.rows
        self._rows = {name: self._count(name, known) for name in self.task.stores}

    def _engine(self, store: str) -> Engine:
        if self._copy is None or store not in self._place.changelogs:
            # It has no changelog: it is lost with this process, as in Kafka Streams.
            return MemoryEngine()
        return self._copy.engine(store)

    def take_over(self) -> bool:
        """Applies the committed changes of the last batch; False if another process has the copy now."""
        if self._copy is not None:
            if not self._copy.is_untouched():
                return False
            applied = {
                store: Applied(known.topic_id, self._restored_offset(store, known.offset))
                for store in self._place.changelogs
                if (known := self._copy.applied(store)) is not None
            }
            try:
                self._copy.settle({store: self._changes[store] for store in applied if store in self._changes}, applied)
            except ProcessorStateError:
                # An attempt that was given up may have opened it. The next one to open it may write.
                return False
        for store, engine in self.task.engines().items():
            if store in self._place.changelogs:
                engine.rollback()
            else:
                engine.commit()
            self._rows[store] = self._recount(store, engine.base)
        self._changes = {}
        return True

    def _restored_offset(self, store: str, before: int) -> int:
        target = (self._place.changelogs[store], self._place.id.partition)
        return self._ends[target] if store in self._changelogs else self._positions.get(target, before)

    def begin(self, batch_id: int) -> None:
        """Starts a batch on the copy."""
        if self._copy is not None:
            self._copy.begin(batch_id)

    def commit(
        self,
        batch_id: int,
        positions: Mapping[TopicPartition, int],
        outputs: Written,
        edges: list[EdgeBlob],
        next_clock_ms: int | None,
    ) -> Receipt:
        """Commits what the batch has done, changes of stores included, or stages it for the driver to commit."""
        engines = self.task.engines()
        changes = {store: each for store, engine in engines.items() if (each := engine.changes())}
        changelogs = self._changelog_records(changes)
        clocks = unlogged_rows(self.task, self._place)
        memory = pack_memory(self.task.remember(), clocks, self._samples)
        self.task.forget_volatile()
        if self._copy is not None and not self._copy.is_untouched():
            message = (
                f"the working copy of task {self.task.id} was changed by somebody else while a batch ran on it; "
                "nothing of the batch was kept; leave the state directory alone while the application runs"
            )
            raise CopyTakenError(message)
        merged = {**self._positions, **positions}
        listed = [(*target, offset) for target, offset in merged.items()]
        stores = self.task.stores
        rows = {
            name: self._rows[name]
            + engine.growth(
                stores[name].entry_bounds, at_most=_COUNTED_ROWS, with_ranges=self._rows[name] <= _WALKED_ROWS
            )
            for name, engine in engines.items()
        }
        record = TaskRecord(batch_id, token_hex(8), listed, next_clock_ms, memory, self._lineage, rows=rows)
        receipt = self._journal.commit(record, [*outputs, *changelogs], edges)
        for topic, written in changelogs:
            target = (topic, self._place.id.partition)
            bounds = receipt.written.get(target)
            self._ends[target] = self._ends[target] + len(written) if bounds is None else bounds[1]
        self.stamp, self._positions, self._changes, self._rows = record.stamp, merged, changes, rows
        self.changelogged = sum(len(written) for _, written in changelogs)
        return receipt

    def _count(self, name: str, known: Mapping[str, int]) -> int:
        """Returns how many entries a store has; where that takes a scan, as the last commit says."""
        base, bounds = self.task.engines()[name].base, self.task.stores[name].entry_bounds
        if bounds is None:
            return base.count()
        return known[name] if name in known else sum(1 for _ in base.scan(*bounds))

    def _recount(self, name: str, base: Engine) -> int:
        """Returns how many entries a store has, counted anew where that costs nothing and ends an estimate."""
        known = self._rows[name]
        if not isinstance(base, OverlayEngine):
            return base.count() if self.task.stores[name].entry_bounds is None else known
        if self.task.stores[name].entry_bounds is None:
            return known if base.size else base.base.count()
        expired = name in self._changes and self._changes[name].ranges and known > _WALKED_ROWS
        # Rows that wait to be written may be there already: at most so many are left.
        return base.size + base.base.count() if expired else known

    def _changelog_records(self, changes: Mapping[str, Changes]) -> list[tuple[str, list[Output]]]:
        partition, now_ms = self._place.id.partition, max(self.task.state.stream_time_ms, 0)
        found = []
        for name, each in changes.items():
            topic = self._changelogs.get(name)
            if topic is None:
                continue
            records = self.task.stores[name].changelog_outputs(each, partition, now_ms)
            if records:
                found.append((topic, records))
        return found

    def obsolete(self) -> dict[TopicPartition, int]:
        """Returns offsets before which changelogs have only rows that have expired; mostly nothing.

        A row that was written when a store had seen times up to *t* has a time of at most *t*. What is remembered of
        the past goes into the record of the task, so that it outlives the process: a retention may be long.
        """
        found: dict[TopicPartition, int] = {}
        for name, samples in self._samples.items():
            store = self.task.stores[name]
            target = (self._changelogs[name], self._place.id.partition)
            while samples and samples[0].observed_ms < store.live_from_ms:
                found[target] = samples.popleft().offset
            observed_ms = store.observed_stream_time_ms
            if not samples or observed_ms - samples[-1].observed_ms > store.retention_ms // _SAMPLES:
                samples.append(_Sample(self._ends[target], observed_ms))
        return found

    def engine_figures(self) -> dict[str, Mapping[str, float]]:
        """Returns figures of the engines on disk, now and then: asking costs more than a small batch."""
        now = time.monotonic()
        if self._copy is None or now < self._figures_due:
            return {}
        self._figures_due = now + _FIGURES_EVERY_S
        return self._copy.metrics()

    def rows(self) -> int:
        """Returns how many entries all stores have."""
        return sum(self._rows.values())

    def new_counts(self) -> dict[str, float]:
        """Returns by how much the counters have grown since they were asked for last."""
        counts = self.task.state.metrics()
        grown = {name: value - self._counted.get(name, 0) for name, value in counts.items()}
        self._counted = counts
        return {name: value for name, value in grown.items() if value}

    def take_restores(self) -> list[StoreRestore]:
        """Returns the restores of this task, once."""
        restores, self._restores = self._restores, []
        return restores

    def end(self) -> None:
        """Ends a batch on the copy."""
        if self._copy is not None:
            self._copy.end()

    def close(self, *, write: bool = False) -> None:
        """Closes processors, stores and files; what user code raises here has no consequence any more.

        With ``write`` what is known to be committed gets into the copy, so that the next one has less to restore.
        """
        try:
            with suppress(Exception):
                self.end()
            self.task.close()
        except Exception as error:
            logger.warning("task %s: closing it failed: %s", self.task.id, error)
        finally:
            self._journal.close()
            if self._copy is not None:
                if write:
                    with suppress(ProcessorStateError):
                        self._copy.write()
                self._copy.close()


def unlogged_rows(task: Task, place: TaskPlace) -> dict[str, dict[bytes, bytes]]:
    """Returns the rows of a task's stores that no changelog has, by store: clocks and counters."""
    found = {}
    for name in place.changelogs:
        store, engine = task.stores[name], task.engines()[name]
        rows = {row: data for row in store.unlogged_rows if (data := engine.get(row)) is not None}
        if rows:
            found[name] = rows
    return found
