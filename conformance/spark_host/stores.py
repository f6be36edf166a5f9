"""Reads the stores that a program has left on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.batches.application import Application
from headrace.batches.global_tables import GlobalTables
from headrace.batches.layout import Layout
from headrace.batches.live_task import LiveTask
from headrace.runtime.task import Task
from headrace.testing.store_getters import StoreGetters
from headrace.topics.journal import DurableLog


class LeftStores(StoreGetters):
    """The stores of one program, asked for as those of a test driver are; close it when they have been read."""

    def __init__(self, layout: Layout, log: DurableLog, directory: Path) -> None:
        self._found: dict[str, dict[int, Any]] = {}
        self._closing: list[Any] = []
        self.tasks: list[Task] = []
        # Any: what the getters need of a driver's host is only the two methods below.
        self._host: Any = self
        tables: Mapping[str, Any] = {}
        if layout.topology.global_stores:
            opened = GlobalTables(layout, log, directory / "global")
            self._closing.append(opened)
            ends = log.end_offsets(layout.global_partitions())
            opened.catch_up({f"{topic}/{partition}": end for (topic, partition), end in ends.items()}, 0)
            tables = opened.stores
            self._found |= {name: {0: store} for name, store in tables.items()}
        application = Application(
            "left",
            layout,
            log,
            directory,
            incarnation=log.open_journal(
                layout.config.application_id, [place.name for place in layout.tasks]
            ).incarnation,
        )
        for place in layout.tasks:
            if not layout.parts[place.id.subtopology].state_stores:
                continue
            own = [
                (topic, place.id.partition) for store, topic in place.changelogs.items() if store in layout.changelogs
            ]
            journal = log.task_journal(application.id, application.incarnation, place.name, own)
            live = LiveTask(application, place, journal, journal.open(), tables, clock_ms=0)
            self.tasks.append(live.task)
            self._closing.append(live)
            for name, store in live.task.stores.items():
                self._found.setdefault(name, {})[place.id.partition] = store

    def stores_named(self, name: str) -> dict[int, Any]:
        return self._found.get(name, {})

    def all_stores(self) -> dict[str, Any]:
        return {name: found[min(found)] for name, found in self._found.items()}

    def close(self) -> None:
        for each in self._closing:
            each.close()
