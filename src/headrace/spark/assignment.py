"""Assignment of slots to executors: where a slot runs, where its standby copies are, and when it moves.

The rules are those of Kafka Streams' high-availability assignor, with a slot and its tasks in the place of a task:

* Slots are spread evenly, and stay where they are as far as that allows it.
* A slot with state moves only to a machine whose copy of it is caught up. Until then it stays, and the machine that it
  is meant for warms up a copy, one of few at a time.
* A slot whose executor is gone goes to the copy that lacks least.
* Standby copies lie on other machines than the active one. Working copies belong to a machine, so executors of one
  machine share them, and a slot moves between these at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

WARM_UP = -1
"""The rank of a warm-up copy. Standby copies of a slot have the ranks 0, 1, ...: the first is the best one."""

Lags = Mapping[tuple[int, str], int]
"""By slot and host: how many records of changelogs the copy there lacks."""


class LiveExecutor(NamedTuple):
    """An executor of the cluster."""

    id: str
    host: str
    cores: int = 1

    @property
    def location(self) -> str:
        """Its name where a task of Spark may prefer one; see ``worker_start.executor_location``."""
        return f"executor_{self.host}_{self.id}"


@dataclass(frozen=True)
class Rules:
    """The settings that decide how many copies there are, and when one is caught up."""

    standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_lag: int = 10_000


@dataclass(frozen=True)
class Assignment:
    """Assignment of slots to executors, and of their copies to machines."""

    active: Mapping[int, LiveExecutor] = field(default_factory=dict)
    standbys: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Hosts with standby copies, by slot; the best one first."""
    warmups: Mapping[int, str] = field(default_factory=dict)
    """Hosts that warm up a copy of a slot that will move there."""
    waiting: frozenset[int] = frozenset()
    """Slots that will move once a copy is caught up."""

    def copies(self) -> Iterator[tuple[int, str, int]]:
        """Returns slot, host and rank of every copy that is wanted besides the active ones."""
        for slot, hosts in self.standbys.items():
            for rank, host in enumerate(hosts):
                yield slot, host, rank
        for slot, host in self.warmups.items():
            yield slot, host, WARM_UP


def assign(
    last: Mapping[int, LiveExecutor],
    executors: Collection[LiveExecutor],
    lags: Lags,
    stateful: Collection[int],
    rules: Rules,
) -> Assignment:
    """Assigns the slots of which it is known where they ran last, to the executors that are alive.

    A slot runs on executor 1 and has much state. Executor 2 has none, so it gets a copy, and the slot once that is
    caught up:

    >>> one, two = LiveExecutor("1", "a"), LiveExecutor("2", "b")
    >>> ran = {0: one, 1: one}
    >>> found = assign(ran, [one, two], {}, stateful=[0, 1], rules=Rules())
    >>> [found.active[slot].id for slot in (0, 1)], found.warmups
    (['1', '1'], {0: 'b'})
    >>> found = assign(ran, [one, two], {(0, "b"): 12}, stateful=[0, 1], rules=Rules())
    >>> [found.active[slot].id for slot in (0, 1)], found.warmups
    (['2', '1'], {})
    """
    if not executors:
        return Assignment()
    copies = _Copies(last, lags, frozenset(stateful), rules.acceptable_lag)
    placed = _place_slots(last, executors, copies)
    active, waiting = dict(placed), dict[int, LiveExecutor]()
    for slot, destination in _moves(placed, executors, copies):
        if copies.is_caught_up(slot, destination.host):
            active[slot] = destination
        else:
            waiting[slot] = destination
    standbys = _standbys(active, executors, copies, rules.standby_replicas)
    # A standby copy that is still catching up needs no second one beside it.
    cold = [slot for slot, executor in waiting.items() if executor.host not in standbys.get(slot, ())]
    warmups = {slot: waiting[slot].host for slot in cold[: rules.max_warmup_replicas]}
    return Assignment(active, standbys, warmups, frozenset(waiting))


@dataclass(frozen=True)
class _Copies:
    """Copies of slots on machines."""

    last: Mapping[int, LiveExecutor]
    lags: Lags
    stateful: frozenset[int]
    acceptable_lag: int

    def lag(self, slot: int, host: str) -> float:
        """Returns how many records a slot would have to restore on a machine."""
        if slot not in self.stateful or self.last[slot].host == host:
            return 0
        return self.lags.get((slot, host), inf)

    def is_caught_up(self, slot: int, host: str) -> bool:
        return self.lag(slot, host) <= self.acceptable_lag


def _place_slots(
    last: Mapping[int, LiveExecutor], executors: Collection[LiveExecutor], copies: _Copies
) -> dict[int, LiveExecutor]:
    """Leaves slots where they are; those of executors that are gone go to the copy that lacks least."""
    alive = {executor.id: executor for executor in executors}
    placed = {slot: alive[executor.id] for slot, executor in sorted(last.items()) if executor.id in alive}
    loads = Counter(executor.id for executor in placed.values())
    for slot in sorted(last.keys() - placed.keys()):
        best = min(executors, key=lambda each: (copies.lag(slot, each.host), (loads[each.id] + 1) / each.cores, each))
        placed[slot] = best
        loads[best.id] += 1
    return placed


def _moves(
    placed: Mapping[int, LiveExecutor], executors: Collection[LiveExecutor], copies: _Copies
) -> list[tuple[int, LiveExecutor]]:
    """Returns the slots that leave executors with too many, and where they go; those that lack least come first."""
    loads = Counter(executor.id for executor in placed.values())
    surplus = {id_: loads[id_] - share for id_, share in _shares(len(placed), executors, loads).items()}
    lacking = [executor for executor in executors if surplus[executor.id] < 0]
    possible = sorted(
        (copies.lag(slot, destination.host), slot, destination)
        for slot, executor in placed.items()
        if surplus[executor.id] > 0
        for destination in lacking
    )
    moves: dict[int, LiveExecutor] = {}
    for _, slot, destination in possible:
        origin = placed[slot].id
        if slot not in moves and surplus[origin] > 0 and surplus[destination.id] < 0:
            moves[slot] = destination
            surplus[origin] -= 1
            surplus[destination.id] += 1
    return list(moves.items())


def _shares(count: int, executors: Collection[LiveExecutor], loads: Mapping[str, int]) -> dict[str, int]:
    """Returns how many slots each executor should have, in proportion to its cores; a remainder stays where it is."""
    shares = dict.fromkeys((executor.id for executor in executors), 0)
    for _ in range(count):
        least = min(
            executors,
            key=lambda each: ((shares[each.id] + 1) / each.cores, shares[each.id] >= loads.get(each.id, 0), each),
        )
        shares[least.id] += 1
    return shares


def _standbys(
    active: Mapping[int, LiveExecutor], executors: Collection[LiveExecutor], copies: _Copies, replicas: int
) -> dict[int, tuple[str, ...]]:
    """Returns the machines that keep standby copies: those that have one already, then those with the fewest.

    Among equals it is the next one in a ring, so that each machine has copies of its neighbour.
    """
    hosts = sorted({executor.host for executor in executors})
    counts: Counter[str] = Counter()
    found: dict[int, tuple[str, ...]] = {}
    for slot in sorted(copies.stateful & active.keys()):
        own = hosts.index(active[slot].host)
        others = [*hosts[own + 1 :], *hosts[:own]]
        others.sort(key=lambda host: (not copies.is_caught_up(slot, host), copies.lag(slot, host) == inf, counts[host]))
        if chosen := others[:replicas]:
            counts.update(chosen)
            found[slot] = tuple(chosen)
    return found
