"""Placement of slots on a cluster that this test plays: executors, the standby job, and time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

import pytest

from headrace import StreamsConfig
from headrace.spark.assignment import WARM_UP, LiveExecutor
from headrace.spark.placement import Demand, Placement
from headrace.spark.standby_job import Answers, Orders

A, B, C = LiveExecutor("1", "a"), LiveExecutor("2", "b"), LiveExecutor("3", "c")
PROBING_S = 60.0


class Cluster:
    """A cluster whose copies lack what ``lags`` says, or nothing; ``asked`` are the orders of its standby jobs."""

    def __init__(self, *executors: LiveExecutor, standbys: int = 0, slots: int = 2) -> None:
        self.executors = list(executors)
        self.demand = Demand(slots, frozenset(range(slots)), standbys, 1)
        self.lags: dict[tuple[int, str], int | None] = {}
        self.asked: list[Orders] = []
        self.now = 0.0
        config = StreamsConfig(
            acceptable_recovery_lag=10, probing_rebalance_interval=timedelta(seconds=PROBING_S), max_warmup_replicas=1
        )
        self.placement = Placement(
            config,
            demand=lambda: self.demand,
            look=lambda: self.executors,
            is_alive=lambda id_: any(executor.id == id_ for executor in self.executors),
            keep=self._keep,
            clock=lambda: self.now,
        )

    def _keep(self, orders: Orders, locations: Mapping[str, list[str]], _demand: Demand) -> Answers:
        assert orders
        assert orders.keys() <= locations.keys()
        self.asked.append(orders)
        wanted = [(slot, host) for host, ranks in orders.items() for slot in ranks]
        lags = {copy: self.lags.get(copy, 0) for copy in wanted}
        return {copy: lag for copy, lag in lags.items() if lag is not None}

    def run_batch(self) -> list[tuple[str, ...]] | None:
        """Lets slots run where they prefer, or on the first executor."""
        preferred = self.placement.preferred(self.demand.slots)
        for slot in range(self.demand.slots):
            wanted = preferred[slot] if preferred is not None else ()
            self.placement.note(slot, wanted[0] if wanted else self.executors[0].location)
        return preferred

    def step(self, seconds: float = 1.0) -> list[Orders]:
        """Lets some time pass; returns the orders of the jobs that were run."""
        before = len(self.asked)
        self.now += seconds
        self.placement.step()
        return self.asked[before:]


def test_nothing_is_preferred_before_a_slot_has_run_on_an_executor() -> None:
    cluster = Cluster(A)
    assert cluster.placement.preferred(2) is None


def test_one_executor_gets_no_standby_job() -> None:
    cluster = Cluster(A, standbys=1)
    cluster.run_batch()
    assert [cluster.step(30.0) for _ in range(3)] == [[], [], []]
    assert cluster.run_batch() == [(A.location,), (A.location,)]


def test_slots_prefer_where_they_ran_before_anybody_has_looked() -> None:
    cluster = Cluster(A, B, slots=1)
    cluster.placement.note(0, B.location)
    assert cluster.placement.preferred(1) == [(B.location,)]
    cluster.executors = [A]
    assert cluster.placement.preferred(1) == [()]


def test_a_slot_moves_to_an_executor_that_joins_once_its_copy_is_caught_up() -> None:
    cluster = Cluster(A)
    cluster.run_batch()
    cluster.step()
    cluster.executors = [A, B]
    cluster.lags[0, "b"] = 5_000
    assert cluster.step() == [{"b": {0: WARM_UP}}]
    assert cluster.run_batch() == [(A.location,), (A.location,)]
    # It is looked at when the interval is over, and not before; until then copies are only kept.
    cluster.lags[0, "b"] = 3
    assert cluster.step(30.0) == [{"b": {0: WARM_UP}}]
    assert cluster.run_batch() == [(A.location,), (A.location,)]
    cluster.step(PROBING_S)
    assert cluster.run_batch() == [(B.location,), (A.location,)]
    # What is left open where it was is closed.
    assert cluster.step() == [{"a": {0: None}}]
    assert cluster.step(300.0) == []


def test_a_slot_with_little_state_moves_when_it_is_first_looked_at() -> None:
    cluster = Cluster(A)
    cluster.run_batch()
    cluster.step()
    cluster.executors = [A, B]
    # The copy is being opened, so its lag is not known at once.
    cluster.lags[0, "b"] = None
    assert cluster.step() == [{"b": {0: WARM_UP}}]
    cluster.lags[0, "b"] = 10
    assert cluster.step() == [{"b": {0: WARM_UP}}]
    assert cluster.run_batch() == [(B.location,), (A.location,)]


def test_copies_that_are_not_known_are_asked_for_less_and_less_often() -> None:
    cluster = Cluster(A, B, standbys=1, slots=1)
    cluster.run_batch()
    cluster.lags[0, "b"] = None
    times = [second for second in range(60) if cluster.step()]
    assert times == [0, 1, 3, 7, 15, 31, 51]


def test_standbys_are_kept_and_take_over_when_an_executor_is_lost() -> None:
    cluster = Cluster(A, B, C, standbys=1, slots=1)
    cluster.run_batch()
    assert cluster.step() == [{"b": {0: 0}}]
    # They are kept alive, also when nothing changes.
    assert cluster.step() == []
    assert cluster.step(20.0) == [{"b": {0: 0}}]
    # If its executor is lost in the middle of a job, the slot goes on at the host of the standby.
    assert cluster.run_batch() == [(A.location, "b")]
    cluster.executors = [B, C]
    assert cluster.run_batch() == [(B.location, "c")]
    assert cluster.step() == [{"c": {0: 0}}]


def test_moves_are_told_once_before_the_slot_runs_elsewhere() -> None:
    cluster = Cluster(A)
    placement = cluster.placement
    cluster.run_batch()
    cluster.step()
    assert placement.take_moves() == frozenset()
    cluster.executors = [A, B]
    cluster.step()
    cluster.step()
    assert placement.take_moves() == {0}
    assert placement.take_moves() == frozenset()
    cluster.run_batch()
    cluster.executors = [B]
    cluster.step()
    assert placement.take_moves() == {1}
    cluster.run_batch()
    assert placement.take_moves() == frozenset()
    # Back again is another move.
    cluster.executors = [A]
    cluster.step()
    assert placement.take_moves() == {0, 1}


def test_the_former_place_of_a_slot_keeps_the_standby() -> None:
    cluster = Cluster(A, standbys=1)
    cluster.run_batch()
    cluster.executors = [A, B]
    # Both slots have a standby there, and one of them moves.
    assert cluster.step() == [{"b": {0: 0, 1: 0}}]
    assert cluster.run_batch() == [(B.location, "a"), (A.location, "b")]
    assert cluster.step() == [{"a": {0: 0}, "b": {1: 0}}]
    assert cluster.step() == []


def test_a_slot_that_ran_elsewhere_by_chance_is_closed_there() -> None:
    cluster = Cluster(A, B)
    cluster.placement.note(0, A.location)
    cluster.placement.note(1, B.location)
    assert cluster.step() == []
    # Its executor was busy.
    cluster.placement.note(0, B.location)
    assert cluster.placement.preferred(2) == [(A.location,), (B.location,)]
    assert cluster.step() == [{"b": {0: None}}]
    assert cluster.step(30.0) == []


def test_other_applications_are_told_to_those_who_keep_copies() -> None:
    cluster = Cluster(A, B, standbys=1, slots=1)
    cluster.run_batch()
    orders = cluster.step()
    assert cluster.step() == []
    cluster.demand = cluster.demand._replace(generation=2)
    assert cluster.step() == orders
    # With more slots, tasks are spread in another way, and nothing is known of any copy.
    cluster.demand = cluster.demand._replace(slots=2, stateful=frozenset(range(2)))
    cluster.lags = {(0, "b"): 5_000, (1, "b"): 5_000, (1, "a"): 5_000}
    cluster.run_batch()
    cluster.step()
    assert cluster.run_batch() == [(A.location, "b"), (A.location, "b")]


def test_a_failing_standby_job_is_told_and_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.spark.placement._LOOK_S", 0.001)
    monkeypatch.setattr("headrace.spark.placement._ASK_S", 0.001)
    cluster = Cluster(A)
    cluster.run_batch()
    failures = 2

    def failing() -> Demand:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            message = "the cluster is away"
            raise RuntimeError(message)
        cluster.placement._over.set()
        return cluster.demand

    cluster.placement._demand = failing
    with caplog.at_level(logging.WARNING):
        cluster.placement.start()
        assert cluster.placement._thread is not None
        cluster.placement._thread.join(30)
    assert caplog.text.count("standby copies could not be looked after: the cluster is away") == 2
    cluster.placement.close()
