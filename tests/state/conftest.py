"""Every test of this folder that takes ``engine`` or ``engines`` runs on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from headrace.state import Engine, MemoryEngine, OverlayEngine
from headrace.state.engines.environment import Environment
from headrace.state.engines.lmdb import LmdbEnvironment
from headrace.state.engines.rocksdb import RocksDbEnvironment

MakeEngine = Callable[[], Engine]
OpenEnvironment = Callable[[Path], Environment]


def open_lmdb(directory: Path) -> LmdbEnvironment:
    return LmdbEnvironment(directory, map_size=1 << 20)


ENVIRONMENTS: dict[str, OpenEnvironment] = {"lmdb": open_lmdb, "rocksdb": RocksDbEnvironment}


@pytest.fixture(params=["memory", "lmdb", "rocksdb", "overlay-memory", "overlay-lmdb", "overlay-rocksdb"])
def engines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeEngine]:
    """Makes new, empty engines of one kind, also many within one test."""
    kind: str = request.param
    environments: list[Environment] = []
    numbers = count()

    def on_disk() -> Engine:
        if not environments:
            environments.append(ENVIRONMENTS[kind.removeprefix("overlay-")](tmp_path / "environment"))
        engine = environments[0].engine(f"engine-{next(numbers) % 8}")
        engine.clear()
        return engine

    def make() -> Engine:
        base = MemoryEngine() if kind.endswith("memory") else on_disk()
        return OverlayEngine(base) if kind.startswith("overlay") else base

    yield make
    for environment in environments:
        environment.close()


@pytest.fixture
def engine(engines: MakeEngine) -> Engine:
    return engines()
