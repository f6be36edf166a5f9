"""Common part of the tests of stores: serdes of every sort, builders, a task, and restoring from a changelog."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings

from headrace.serdes import Serde, Serdes
from headrace.state import CacheBudget, Engine, MemoryEngine, OverlayEngine, StoreBuilder

same_fixture = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

# Keys and values as objects, keys as bytes, values as bytes, both as bytes.
SERDES: dict[str, tuple[Serde[Any], Serde[Any]]] = {
    "objects": (Serdes.string(), Serdes.long()),
    "bytes-keys": (Serdes.of(str.encode, bytes.decode), Serdes.long()),
    "bytes-values": (Serdes.string(), Serdes.json()),
    "bytes": (Serdes.json(), Serdes.json()),
}


class Task:
    """The record at hand, and how many writes were refused."""

    def __init__(self) -> None:
        self.origin: tuple[str, int] | None = ("in", 0)
        self.offset = 0
        self.dropped = 0

    def drop(self) -> None:
        self.dropped += 1


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def build(builder: StoreBuilder, engine: Engine | None = None, *, cache: int | None = None) -> Any:
    """Makes a store with a task of its own, cached if ``cache`` gives it that many bytes."""
    if cache is not None:
        builder = builder.with_caching_enabled()
    budget = None if cache is None else CacheBudget(cache)
    return builder.build(engine or MemoryEngine(), cache_budget=budget, task=Task())


class Replica:
    """A store on an overlay and a twin, which is kept by the changelog records of each commit."""

    def __init__(self, builder: StoreBuilder, *, cache: int | None = None) -> None:
        self.engine = OverlayEngine(MemoryEngine())
        self.store = build(builder, self.engine, cache=cache)
        self.twin = build(builder)

    def commit(self) -> None:
        self.store.flush_cache()
        self.store.flush_writes()
        records = self.store.changelog_records(self.engine.changes())
        self.engine.commit()
        # Restoring happens in batches of any size.
        middle = len(records) // 2
        self.twin.restore(records[:middle])
        self.twin.restore(records[middle:])
