"""Reads the stores that a program has left on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.runtime.task import Task, TaskId
from headrace.spark.global_tables import GlobalTables
from headrace.spark.layout import Program
from headrace.spark.worker_host import WorkerHost
from headrace.state.disk import LmdbEnvironment
from headrace.testing.store_getters import StoreGetters
from headrace.topics.log import TopicLog


class LeftStores(StoreGetters):
    """The stores of one program, asked for as those of a test driver are; close it when they have been read."""

    def __init__(self, program: Program, log: TopicLog, directory: Path) -> None:
        self._found: dict[str, dict[int, Any]] = {}
        self._closing: list[Any] = []
        self.tasks: list[Task] = []
        # Any: what the getters need of a driver's host is only the two methods below.
        self._host: Any = self
        tables: Mapping[str, Any] = {}
        if program.topology.global_stores:
            opened = GlobalTables(program, log, directory / f"{program.prefix}global")
            self._closing.append(opened)
            opened.catch_up(_global_ends(program, log), 0)
            tables = opened.stores
            self._found |= {name: {0: store} for name, store in tables.items()}
        for part in program.parts:
            for partition in range(program.task_count(part) if part.state_stores else 0):
                task_id = TaskId(part.id, partition)
                environment = LmdbEnvironment(directory / f"{program.prefix}{task_id}")
                task = Task(
                    task_id,
                    [program.topology.nodes[name] for name in part.nodes],
                    program.topology.children,
                    [program.topology.store_builders[name] for name in part.state_stores],
                    program.config,
                    WorkerHost(program, log, environment.engine, tables),
                )
                self.tasks.append(task)
                self._closing += [task, environment]
                for name, store in task.stores.items():
                    self._found.setdefault(name, {})[partition] = store

    def stores_named(self, name: str) -> dict[int, Any]:
        return self._found.get(name, {})

    def all_stores(self) -> dict[str, Any]:
        return {name: found[min(found)] for name, found in self._found.items()}

    def close(self) -> None:
        for each in self._closing:
            each.close()


def _global_ends(program: Program, log: TopicLog) -> dict[str, int]:
    targets = [
        (program.in_log(store.topic), partition)
        for store in program.topology.global_stores.values()
        for partition in range(program.partitions[store.topic])
    ]
    return {f"{topic}/{partition}": end for (topic, partition), end in log.end_offsets(targets).items()}
