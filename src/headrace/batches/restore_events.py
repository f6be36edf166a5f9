"""Events of state restore, as Kafka Streams tells them: when a store begins, how far it is, and when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from headrace.batches.reports import StoreRestore, TaskReport


class StateRestoreListener(Protocol):
    """Whom an application tells that stores are restored from their changelogs; from a thread of its own.

    A store that lacks nothing is not told of.
    """

    def on_restore_start(self, topic: str, partition: int, store: str, start: int, end: int) -> None:
        """A store begins to be restored, from offset ``start`` to before ``end``."""
        ...

    def on_batch_restored(self, topic: str, partition: int, store: str, offset: int, count: int) -> None:
        """``count`` more records were restored, up to before ``offset``."""
        ...

    def on_restore_end(self, topic: str, partition: int, store: str, total: int) -> None:
        """A store is restored, with ``total`` records."""
        ...


class RestoreEvents:
    """Makes events of what tasks report."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], StoreRestore] = {}

    @property
    def is_restoring(self) -> bool:
        """Whether any store is being restored."""
        return bool(self._running)

    def tell(self, reports: Iterable[TaskReport], listener: StateRestoreListener | None) -> None:
        """Tells what is new; a task that takes part has all its stores."""
        for report in reports:
            self._tell(report.restores, listener)
            if report.receipt is not None:
                partition = int(report.task.rpartition("_")[2])
                self._end([key for key in self._running if self._is_of(key, report, partition)], listener)

    def _is_of(self, key: tuple[str, int], report: TaskReport, partition: int) -> bool:
        return key[1] == partition and key[0] in {each.store for each in report.restores}

    def _tell(self, restores: Sequence[StoreRestore], listener: StateRestoreListener | None) -> None:
        for each in restores:
            key = (each.store, each.partition)
            before = self._running.get(key)
            if before is None:
                before = each._replace(position=each.start, records=0)
                if listener is not None:
                    listener.on_restore_start(each.topic, each.partition, each.store, each.start, each.end)
            if each.position > before.position and listener is not None:
                count = each.records - before.records
                listener.on_batch_restored(each.topic, each.partition, each.store, each.position, count)
            self._running[key] = each
            if each.left <= 0:
                self._end([key], listener)

    def _end(self, keys: Sequence[tuple[str, int]], listener: StateRestoreListener | None) -> None:
        for key in keys:
            each = self._running.pop(key)
            if listener is not None:
                listener.on_restore_end(each.topic, each.partition, each.store, each.records)
