"""Processes that share views: who keeps what follows from who is alive. Here they share a process and a clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Materialized, StreamsBuilder
from headrace.errors import StateStoreMigratedError, StreamsRebalancingError
from headrace.topics.log import Output
from headrace.topics.partitioner import partition_for
from headrace.views import (
    FailureReason,
    HostInfo,
    KeyQuery,
    QueryableStoreTypes,
    StateQueryRequest,
    StoreQueryParameters,
)
from headrace.views.membership import Member, active_keeper, keepers, ranking
from headrace.views.view_node import Lease, ViewNode
from tests.views.kit import SOON, Place, topology_of

LEASE = Lease(timedelta(seconds=1), timedelta(seconds=5))
TASKS = [f"0_{each}" for each in range(8)]
FACE = StoreQueryParameters.from_name_and_type("counts", QueryableStoreTypes.key_value_store())


def counting(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(materialized=Materialized("counts"))


class Group:
    """Nodes on one log and one clock, which is moved by hand."""

    def __init__(self, place: Place, *, standbys: int = 0) -> None:
        self.place = place
        self.now_ms = 1_000_000
        self.standbys = standbys
        self.nodes: dict[str, ViewNode] = {}
        self._ports = 0

    def start(self, name: str) -> ViewNode:
        config = self.place.config(**{"num.standby.replicas": self.standbys})
        self._ports += 1
        directory: Path = self.place.directory / "nodes" / name
        node = ViewNode(
            topology_of(counting),
            config,
            self.place.log,
            directory,
            # A name that is drawn would now and then get no task at all.
            name=name,
            host=HostInfo(name, self._ports),
            lease=LEASE,
            clock=lambda: self.now_ms,
        )
        self.nodes[name] = node
        return node

    def tick(self, *, seconds: float = 1, times: int = 3) -> None:
        """Lets time pass, and everybody do what is to be done then, as often as news take to get around."""
        self.now_ms += int(seconds * 1000)
        for _ in range(times):
            for node in self.nodes.values():
                while node.tick():
                    pass

    def kill(self, name: str) -> None:
        """It says nothing any more; its files stay."""
        self.nodes.pop(name).views.close()

    def kept(self) -> dict[str, frozenset[str]]:
        return {name: node.assigned for name, node in self.nodes.items()}

    def active(self) -> dict[str, list[str]]:
        """Who takes itself for the active one, by task."""
        return {task: [n for n, node in self.nodes.items() if node.is_active(task)] for task in TASKS}

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, **{"in": 8})
    bound = made.write("in", [(f"k{number % 40}", 1, number) for number in range(400)])
    with made.streams(counting) as streams:
        assert streams._own_views.views().wait_for(bound.position, SOON)
    yield made
    made.close()


@pytest.fixture
def group(place: Place) -> Iterator[Group]:
    made = Group(place)
    yield made
    made.close()


@pytest.fixture
def doubled(place: Place) -> Iterator[Group]:
    """Nodes that keep a standby of everything."""
    made = Group(place, standbys=1)
    yield made
    made.close()


def ask(node: ViewNode, key: str) -> Any:
    return node.views.store(FACE.enable_stale_stores()).get(key)


def test_one_node_keeps_everything(group: Group) -> None:
    node = group.start("one")
    group.tick()
    assert node.assigned == set(TASKS)
    assert {ask(node, f"k{number}") for number in range(40)} == {10}


def test_nodes_share_the_tasks_and_exactly_one_is_active(group: Group) -> None:
    for name in ("one", "two", "three"):
        group.start(name)
    group.tick()
    assert all(len(who) == 1 for who in group.active().values())
    kept = group.kept()
    assert sorted(task for tasks in kept.values() for task in tasks) == TASKS


def test_every_node_knows_who_has_a_key(group: Group) -> None:
    nodes = [group.start(name) for name in ("one", "two", "three")]
    group.tick()
    for number in range(40):
        key = f"k{number}"
        (found,) = {node.query_metadata_for_key("counts", key) for node in nodes}
        assert found.partition == partition_for(key.encode(), 8)
        owner = group.nodes[found.active_host.host]
        assert owner.views.store(FACE.with_partition(found.partition)).get(key) == 10
    assert {each.host for each in nodes[0].metadata_for_all_streams_clients()} == {"one", "two", "three"}


def test_partition_on_another_node_is_not_present(group: Group) -> None:
    one, two = group.start("one"), group.start("two")
    group.tick()
    task = min(two.assigned)
    elsewhere = int(task.split("_")[1])
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k1")).with_partitions([elsewhere])
    assert one.views.query(request).partition_results[elsewhere].failure_reason is FailureReason.NOT_PRESENT
    with pytest.raises(StateStoreMigratedError, match="is here; query_metadata_for_key"):
        one.views.store(FACE.with_partition(elsewhere))


def test_standby_answers_only_who_takes_it(doubled: Group) -> None:
    for name in ("one", "two"):
        doubled.start(name)
    doubled.tick()
    assert all(tasks == set(TASKS) for tasks in doubled.kept().values())
    task, (active,) = next(iter(doubled.active().items()))
    standby = doubled.nodes["two" if active == "one" else "one"]
    partition = int(task.split("_")[1])
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("k1")).with_partitions([partition])
    assert standby.views.query(request).partition_results[partition].is_success
    refused = standby.views.query(request.require_active()).partition_results[partition]
    assert refused.failure_reason is FailureReason.NOT_ACTIVE
    with pytest.raises(StreamsRebalancingError, match="standby"):
        standby.views.store(FACE.with_partition(partition))
    assert standby.views.store(FACE.with_partition(partition).enable_stale_stores()) is not None


def test_others_take_over_when_the_lease_of_a_dead_node_ends(group: Group) -> None:
    for name in ("one", "two", "three"):
        group.start(name)
    group.tick()
    before = group.kept()
    group.kill("two")
    group.tick(seconds=4)
    assert group.kept() == {name: before[name] for name in ("one", "three")}
    group.tick(seconds=2)
    kept = group.kept()
    assert kept["one"] | kept["three"] == set(TASKS)
    # Who is alive keeps what it had.
    assert all(before[name] <= kept[name] for name in kept)
    assert all(len(who) == 1 for who in group.active().values())


def test_standby_that_takes_over_has_everything_already(doubled: Group) -> None:
    for name in ("one", "two", "three"):
        doubled.start(name)
    doubled.tick()
    doubled.kill("two")
    reads: list[int] = []
    for node in doubled.nodes.values():
        tail = node.views._tail
        original = tail._read

        def counted(part: Any, start: int, *others: Any, read: Any = original) -> Any:
            reads.append(start)
            return read(part, start, *others)

        tail._read = counted  # type: ignore[method-assign, assignment]
    doubled.now_ms += 6_000
    for node in doubled.nodes.values():
        node.membership.refresh()
        node._members = node.membership.live(doubled.now_ms, LEASE.length_ms)
        node._tell(doubled.now_ms)
    for node in doubled.nodes.values():
        node.membership.refresh()
        node._members = node.membership.live(doubled.now_ms, LEASE.length_ms)
    # Before anything was read: somebody ready is active for every task.
    assert all(len(who) == 1 for who in doubled.active().values())
    assert reads == []


def test_new_node_is_asked_once_it_is_ready_and_the_old_one_answers_until_then(group: Group) -> None:
    one = group.start("one")
    group.tick()
    two = group.start("two")
    two.membership.refresh()
    two._members = two.membership.live(group.now_ms, LEASE.length_ms)
    # It has announced itself, and has nothing yet.
    two._tell(group.now_ms)
    while one.tick():
        pass
    assert one.assigned == set(TASKS)
    assert all(one.is_active(task) for task in TASKS)
    group.tick()
    assert two.assigned
    assert one.assigned == set(TASKS) - two.assigned
    assert all(len(who) == 1 for who in group.active().values())


def test_node_that_comes_back_has_its_name_its_share_and_its_files(group: Group) -> None:
    for name in ("one", "two"):
        group.start(name)
    group.tick()
    share = group.nodes["two"].assigned
    group.kill("two")
    again = group.start("two")
    state = again.views._tail.replica.state
    assert {f"0_{partition}" for _, partition in state.parts} == share
    # What has come since is yet to be read.
    assert not any(part.ready for part in state.parts.values())
    group.tick(times=1)
    assert again.assigned == share
    assert sorted(again.ready_tasks()) == sorted(share)


def test_node_that_leaves_is_gone_at_once(group: Group) -> None:
    for name in ("one", "two"):
        group.start(name)
    group.tick()
    group.nodes.pop("two").close()
    group.tick(seconds=0)
    assert group.nodes["one"].assigned == set(TASKS)


def test_node_that_was_asleep_does_not_take_itself_for_the_active_one(group: Group) -> None:
    one, two = group.start("one"), group.start("two")
    group.tick()
    assert two.assigned
    for _ in range(3):
        group.now_ms += 3_000
        one.tick()
    assert one.assigned == set(TASKS)
    assert not any(two.is_active(task) for task in TASKS)
    group.tick()
    assert all(len(who) == 1 for who in group.active().values())


def test_members_that_are_long_dead_are_taken_off_the_list(group: Group) -> None:
    group.start("one")
    group.start("two")
    group.tick()
    group.kill("two")
    group.tick(seconds=LEASE.length.total_seconds() * 61)
    assert [each.id for each in group.nodes["one"].membership.members()] == [group.nodes["one"].id]


MEMBERS = st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8)


@given(MEMBERS, st.integers(0, 3))
def test_who_comes_or_goes_changes_nothing_between_the_others(members: set[str], standbys: int) -> None:
    for task in TASKS:
        before = keepers(task, members, standbys)
        gone = min(members)
        rest = members - {gone}
        after = keepers(task, rest, standbys)
        assert [each for each in before if each != gone] == [each for each in after if each in before]
        assert ranking(task, members) == ranking(task, sorted(members, reverse=True))


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(-1, 5), max_size=6), st.integers(0, 2))
def test_active_one_is_ready_if_anybody_is(lags: dict[str, int], standbys: int) -> None:
    live = {name: Member(name, HostInfo("here", 1), 0, {"0_0": lag}) for name, lag in lags.items()}
    found = active_keeper("0_0", live, standbys)
    assert (found is None) == (not live)
    if any(lag >= 0 for lag in lags.values()):
        assert found is not None
        assert lags[found] >= 0


GOOD = {"host": "h", "port": 1, "heartbeat": 1_000_000, "lags": {"0_0": 0}}
WRONG: tuple[dict[str, Any], ...] = (
    *({"host": 1}, {"host": "a/b@c"}, {"host": ""}),
    *({"port": "80"}, {"port": 70_000}, {"port": True}),
    *({"heartbeat": "now"}, {"heartbeat": None}, {"heartbeat": 1e300}),
    *({"lags": []}, {"lags": {"0_0": "x"}}, {"lags": {"x": 1}}, {"lags": {"0_0": None}}),
    {"signature": 5},
)
MALFORMED = (
    *(b"", b"null", b"[]", b"5", b"{", b"\xff", b"[" * 100_000),
    *(json.dumps({**GOOD, **changed}).encode() for changed in WRONG),
)


def test_malformed_announcements_are_left_out_and_said_once(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    node = group.start("a")
    senders = [f"sender-{number}".encode() for number in range(len(MALFORMED))]
    records: list[Output] = [(0, 0, key, value, ()) for key, value in zip(senders, MALFORMED, strict=True)]
    records.append((0, 0, b"\xff\xfe", json.dumps(GOOD).encode(), ()))
    for _ in range(3):
        group.place.log.append(node.membership.topic, records)
        group.now_ms += 300
        node.tick()
    assert node.members().keys() == {node.id}
    assert node.metadata_for_all_streams_clients()
    told = [each for each in caplog.records if "is left out" in each.getMessage()]
    assert len(told) == len(records)
