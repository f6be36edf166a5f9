"""Assignment of slots to executors: balance, standby copies, warm-up before a move, and loss."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.assignment import WARM_UP, Assignment, LiveExecutor, Rules, assign

A1, A2 = LiveExecutor("1", "a"), LiveExecutor("2", "a")
B, C = LiveExecutor("3", "b"), LiveExecutor("4", "c")
RULES = Rules(standby_replicas=0, max_warmup_replicas=2, acceptable_lag=10)
ONE_STANDBY = Rules(standby_replicas=1, max_warmup_replicas=2, acceptable_lag=10)


def active(found: Assignment) -> dict[int, str]:
    return {slot: executor.id for slot, executor in found.active.items()}


def test_slots_stay_where_they_ran() -> None:
    ran = {0: B, 1: A1, 2: B, 3: A1}
    assert active(assign(ran, [A1, B], {}, range(4), RULES)) == {0: "3", 1: "1", 2: "3", 3: "1"}


def test_one_executor_has_everything_and_keeps_no_copies() -> None:
    found = assign({0: B, 1: B}, [B], {}, range(2), ONE_STANDBY)
    assert found == Assignment({0: B, 1: B})
    assert list(found.copies()) == []


def test_nothing_is_assigned_without_executors() -> None:
    assert assign({0: B}, [], {}, [0], ONE_STANDBY) == Assignment()


def test_a_slot_that_never_ran_is_left_to_spark() -> None:
    assert assign({1: B}, [A1, B], {}, range(2), RULES).active.keys() == {1}


def test_slots_without_state_move_at_once() -> None:
    found = assign({0: A1, 1: A1}, [A1, B], {}, [], ONE_STANDBY)
    assert active(found) == {0: "3", 1: "1"}
    assert not found.waiting
    assert list(found.copies()) == []


def test_slots_move_at_once_between_executors_of_a_machine() -> None:
    found = assign({0: A1, 1: A1}, [A1, A2], {}, range(2), ONE_STANDBY)
    assert sorted(active(found).values()) == ["1", "2"]
    assert not found.waiting
    # A second copy on the same machine would be the same one.
    assert list(found.copies()) == []


def test_a_slot_with_state_warms_up_before_it_moves() -> None:
    found = assign({0: A1, 1: A1}, [A1, B], {}, range(2), RULES)
    assert active(found) == {0: "1", 1: "1"}
    assert found.warmups == {0: "b"}
    assert found.waiting == {0}
    assert list(found.copies()) == [(0, "b", WARM_UP)]


@pytest.mark.parametrize(("lag", "where"), [(11, "1"), (10, "3"), (0, "3")])
def test_a_slot_moves_when_its_copy_lacks_no_more_than_is_acceptable(lag: int, where: str) -> None:
    found = assign({0: A1, 1: A1}, [A1, B], {(0, "b"): lag}, range(2), RULES)
    assert found.active[0].id == where
    assert bool(found.warmups) == (where == "1")


def test_the_slot_that_lacks_least_is_the_one_that_moves() -> None:
    found = assign({0: A1, 1: A1}, [A1, B], {(1, "b"): 5_000}, range(2), RULES)
    assert found.warmups == {1: "b"}


def test_no_more_slots_warm_up_at_once_than_is_allowed() -> None:
    ran = dict.fromkeys(range(8), A1)
    found = assign(ran, [A1, B], {}, range(8), RULES)
    assert (len(found.warmups), len(found.waiting)) == (2, 4)
    # Those that are being warmed up are gone on with.
    lags = {(slot, "b"): 1_000 for slot in found.warmups}
    assert assign(ran, [A1, B], lags, range(8), RULES).warmups == found.warmups


def test_a_standby_that_catches_up_needs_no_warm_up_beside_it() -> None:
    found = assign({0: A1, 1: A1}, [A1, B], {}, range(2), ONE_STANDBY)
    assert found.standbys == {0: ("b",), 1: ("b",)}
    assert not found.warmups
    assert found.waiting == {0}


def test_standbys_are_spread_over_other_machines() -> None:
    found = assign({0: A1, 1: B, 2: C}, [A1, A2, B, C], {}, range(3), ONE_STANDBY)
    for slot, hosts in found.standbys.items():
        assert found.active[slot].host not in hosts
    assert sorted(hosts for (hosts,) in found.standbys.values()) == ["a", "b", "c"]
    two = assign({0: A1}, [A1, B, C], {}, [0], Rules(standby_replicas=5))
    assert two.standbys == {0: ("b", "c")}


def test_a_standby_stays_where_it_is() -> None:
    ran = {0: A1}
    assert assign(ran, [A1, B, C], {(0, "c"): 0}, [0], ONE_STANDBY).standbys == {0: ("c",)}
    # One that is caught up is better than one that only has begun.
    assert assign(ran, [A1, B, C], {(0, "b"): 5_000, (0, "c"): 3}, [0], ONE_STANDBY).standbys == {0: ("c",)}


def test_slots_of_an_executor_that_is_gone_go_to_the_copy_that_lacks_least() -> None:
    gone = LiveExecutor("9", "z")
    lags = {(0, "b"): 40, (0, "c"): 3, (1, "b"): 70_000}
    found = assign({0: gone, 1: gone}, [A1, B, C], lags, range(2), ONE_STANDBY)
    assert active(found) == {0: "4", 1: "3"}
    assert found.standbys[0] != ("c",)


def test_a_machine_with_another_executor_keeps_the_slots_of_one_that_is_gone() -> None:
    found = assign({0: A1}, [A2, B], {(0, "b"): 3}, [0], ONE_STANDBY)
    assert active(found) == {0: "2"}


def test_slots_without_a_copy_go_to_who_has_least_to_do() -> None:
    gone = LiveExecutor("9", "z")
    found = assign({0: A1, 1: gone, 2: gone}, [A1, B, C], {}, range(3), RULES)
    assert sorted(active(found).values()) == ["1", "3", "4"]


def test_executors_get_slots_by_their_cores() -> None:
    large = LiveExecutor("9", "z", cores=6)
    found = assign(dict.fromkeys(range(8), B), [B._replace(cores=2), large], {}, [], RULES)
    assert sorted(active(found).values()) == ["3"] * 2 + ["9"] * 6


@dataclass
class Cluster:
    """Executors that come and go, slots that run where they are assigned to, and copies that catch up in the end."""

    rules: Rules
    stateful: frozenset[int]
    executors: dict[str, LiveExecutor] = field(default_factory=dict)
    ran: dict[int, LiveExecutor] = field(default_factory=dict)
    lags: dict[tuple[int, str], int] = field(default_factory=dict)
    found: Assignment = field(default_factory=Assignment)

    def assign(self) -> None:
        hosts = {executor.host for executor in self.executors.values()}
        self.lags = {copy: lag for copy, lag in self.lags.items() if copy[1] in hosts}
        before = self.ran
        self.found = found = assign(before, self.executors.values(), self.lags, self.stateful, self.rules)
        assert found.active.keys() == before.keys()
        assert set(found.active.values()) <= set(self.executors.values())
        assert len(found.warmups) <= self.rules.max_warmup_replicas
        for slot, executor in before.items():
            moves_to = found.active[slot]
            if slot in self.stateful and executor.id in self.executors and moves_to.host != executor.host:
                assert self.lags[slot, moves_to.host] <= self.rules.acceptable_lag
        for slot in self.stateful & before.keys():
            standbys = found.standbys.get(slot, ())
            assert len(set(standbys)) == len(standbys) == min(self.rules.standby_replicas, len(hosts) - 1)
            assert found.active[slot].host not in standbys
            assert standbys or not self.rules.standby_replicas or len(hosts) == 1
        for slot, host in found.warmups.items():
            assert host not in (found.active[slot].host, *found.standbys.get(slot, ()))

    def go_on(self, lag: int) -> None:
        """Slots run, and copies that are wanted get so far."""
        for slot, executor in self.found.active.items():
            if self.ran[slot].host != executor.host:
                self.lags[slot, self.ran[slot].host] = 0
        self.ran = dict(self.found.active)
        wanted = {(slot, host) for slot, host, _ in self.found.copies()}
        self.lags = {copy: min(lag, self.lags.get(copy, lag)) for copy in wanted}


@given(
    slots=st.integers(1, 12),
    share=st.sets(st.integers(0, 11)),
    rules=st.builds(
        Rules, standby_replicas=st.integers(0, 2), max_warmup_replicas=st.integers(1, 3), acceptable_lag=st.just(10)
    ),
    changes=st.lists(
        st.tuples(st.sampled_from(["joins", "leaves"]), st.integers(0, 5), st.sampled_from("abcd"), st.integers(1, 3)),
        min_size=1,
        max_size=8,
    ),
    lag=st.sampled_from([0, 10, 11, 100_000]),
)
def test_whatever_happens_slots_end_up_balanced_and_only_warm_ones_move(
    slots: int, share: set[int], rules: Rules, changes: list[tuple[str, int, str, int]], lag: int
) -> None:
    first = LiveExecutor("first", "a")
    cluster = Cluster(rules, frozenset(share) & frozenset(range(slots)), {"first": first})
    cluster.ran = dict.fromkeys(range(slots), first)
    for number, (what, which, host, cores) in enumerate(changes):
        if what == "joins":
            cluster.executors[str(number)] = LiveExecutor(str(number), host, cores)
        elif len(cluster.executors) > 1:
            cluster.executors.pop(sorted(cluster.executors)[which % len(cluster.executors)])
        cluster.assign()
        cluster.go_on(lag)
    for _ in range(slots + 1):
        cluster.assign()
        cluster.go_on(0)
    cluster.assign()
    assert not cluster.found.waiting
    assert cluster.found.active == cluster.ran
    loads = dict.fromkeys(cluster.executors.values(), 0)
    for executor in cluster.ran.values():
        loads[executor] += 1
    # Nobody has so much more to do than another one that a slot should still move.
    for more, load in loads.items():
        assert all(load / more.cores <= (other + 1) / less.cores for less, other in loads.items())
