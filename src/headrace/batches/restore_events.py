"""Events of state restore, as Kafka Streams tells them: when a store begins, how far it is, and when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from headrace.batches.reports import StoreRestore, TaskReport


class StateRestoreListener(Protocol):
    """Listener that an application calls while it restores stores from changelogs, from a thread of its own.

    It is not called for a store that lacks nothing. If it has a method ``on_restore_suspended(topic, partition, store,
    total)``, that is called when a restore has ended before it was done, after ``total`` records: because the
    application stops or has failed, or because the task is restored anew elsewhere.
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


RESTORE_CALLS = {
    "on_restore_start": "(topic, partition, store, start, end)",
    "on_batch_restored": "(topic, partition, store, offset, count)",
    "on_restore_end": "(topic, partition, store, total)",
}
"""The methods of a listener, and what each is called with."""
SUSPENDED = "on_restore_suspended"
"""A method that a listener need not have; it is called as ``on_restore_end`` is."""


class RestoreEvent(NamedTuple):
    """Something to be told: the method of a listener, and its arguments."""

    method: str
    arguments: tuple[Any, ...]


class RestoreEvents:
    """Makes events of what tasks report."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], StoreRestore] = {}
        """The last event of each task and store, until the task takes part."""
        self.waiting: set[str] = set()
        """Tasks that do not take part yet, because they are being restored."""

    def of(self, reports: Iterable[TaskReport]) -> list[RestoreEvent]:
        """Returns what is new; a task that takes part has all its stores."""
        events: list[RestoreEvent] = []
        for report in reports:
            for each in report.restores:
                events += self._progress((report.task, each.store), each)
            if report.lag is None:
                self.waiting.discard(report.task)
            else:
                self.waiting.add(report.task)
            if report.receipt is not None:
                for key in [key for key in self._known if key[0] == report.task]:
                    each = self._known.pop(key)
                    if each.left > 0:
                        events.append(_event("on_restore_end", each, each.records))
        return events

    def suspend(self) -> list[RestoreEvent]:
        """Returns the events that end restores which will not be continued."""
        events = [_event(SUSPENDED, each, each.records) for each in self._known.values() if each.left > 0]
        self._known.clear()
        self.waiting.clear()
        return events

    def _progress(self, key: tuple[str, str], each: StoreRestore) -> Iterator[RestoreEvent]:
        before = self._known.get(key)
        self._known[key] = each
        if before is not None and before.left > 0 and each.position < before.position:
            yield _event(SUSPENDED, before, before.records)
            before = None
        if before is None:
            before = each._replace(position=each.start, records=0)
            yield _event("on_restore_start", each, each.start, each.end)
        elif before.left <= 0:
            return
        if each.position > before.position:
            yield _event("on_batch_restored", each, each.position, each.records - before.records)
        if each.left <= 0:
            yield _event("on_restore_end", each, each.records)


def _event(method: str, each: StoreRestore, *numbers: int) -> RestoreEvent:
    return RestoreEvent(method, (each.topic, each.partition, each.store, *numbers))
