"""Every test of this folder that takes ``engine`` or ``engines`` runs on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from headrace.state import Engine, MemoryEngine, OverlayEngine
from headrace.state.disk import LmdbEnvironment

MakeEngine = Callable[[], Engine]


@pytest.fixture(params=["memory", "lmdb", "overlay-memory", "overlay-lmdb"])
def engines(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeEngine]:
    """Makes new, empty engines of one kind, also many within one test."""
    kind: str = request.param
    environments: list[LmdbEnvironment] = []
    numbers = count()

    def on_disk() -> Engine:
        if not environments:
            environments.append(LmdbEnvironment(tmp_path / "lmdb", map_size=1 << 20))
        engine = environments[0].engine(f"engine-{next(numbers) % 8}")
        engine.clear()
        return engine

    def make() -> Engine:
        base = on_disk() if kind.endswith("lmdb") else MemoryEngine()
        return OverlayEngine(base) if kind.startswith("overlay") else base

    yield make
    for environment in environments:
        environment.close()


@pytest.fixture
def engine(engines: MakeEngine) -> Engine:
    return engines()
