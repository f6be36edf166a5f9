"""Garbage of a worker is found after tasks, and what lives on is not walked through again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from headrace.spark.worker_garbage import WorkerGarbage


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _sight() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def _by_hand() -> Iterator[None]:
    """As in a worker, where nothing is collected by itself."""
    gc.disable()
    yield
    gc.enable()


def test_new_garbage_is_collected() -> None:
    garbage = WorkerGarbage()
    gone = weakref.ref(Knot())
    garbage.collect()
    assert gone() is None


@pytest.mark.usefixtures("_by_hand")
def test_soon_after_a_collection_there_is_another_one_only_if_there_is_much_that_is_new() -> None:
    garbage = WorkerGarbage(lambda: 0.0)
    garbage.collect()
    gone = weakref.ref(Knot())
    garbage.collect()
    assert gone() is not None
    kept = [[number] for number in range(600_000)]
    garbage.collect()
    assert gone() is None
    assert kept


@pytest.mark.usefixtures("_by_hand")
def test_where_there_is_next_to_nothing_it_waits_for_more_until_there_was_something() -> None:
    garbage = WorkerGarbage(lambda: 0.0)
    garbage.collect()
    kept = [[[number] for number in range(600_000)]]
    assert garbage.collect() == 0
    kept.append([[number] for number in range(600_000)])
    gone = weakref.ref(Knot())
    garbage.collect()
    assert gone() is not None
    knots = [Knot() for _ in range(600_000)]
    del knots
    assert garbage.collect() > 600_000
    gone = weakref.ref(Knot())
    kept.append([[number] for number in range(600_000)])
    garbage.collect()
    assert gone() is None


def test_collector_that_spark_has_switched_on_is_off_again() -> None:
    assert gc.isenabled()
    try:
        WorkerGarbage().collect()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_lives_on_is_out_of_sight() -> None:
    garbage, rows = WorkerGarbage(), [[number] for number in range(100)]
    garbage.collect()
    seen = {id(each) for each in gc.get_objects()}
    assert not any(id(row) in seen for row in rows)


def test_what_becomes_garbage_later_is_collected_in_the_end() -> None:
    now = 0.0
    garbage = WorkerGarbage(lambda: now)
    knot = Knot()
    gone = weakref.ref(knot)
    garbage.collect()
    del knot
    garbage.collect()
    assert gone() is not None
    now = 3600.0
    garbage.collect()
    assert gone() is None
