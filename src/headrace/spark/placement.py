"""Placement of slots on the executors of a cluster: which ones there are, where slots run, and which copies are kept.

Nothing of it decides what a micro-batch does. A copy that is missing, stale or in the wrong place costs time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from headrace.config import StreamsConfig
from headrace.spark.assignment import Assignment, LiveExecutor, Rules, assign
from headrace.spark.standby_job import Answers, Orders
from headrace.spark.worker_start import host_and_id

logger = logging.getLogger(__name__)

_LOOK_S = 1.0
"""Pause between two looks at the executors."""
_ASK_S = 20.0
"""After which copies are asked how far they are. Spark ends Python workers that had nothing to do for a minute."""
_PATIENCE_S = 5.0


class Demand(NamedTuple):
    """Demand for placement: the slots, and how many standby copies each gets."""

    slots: int
    stateful: frozenset[int]
    """Slots with tasks that have state."""
    standby_replicas: int
    generation: int
    """Another one whenever the applications are others."""


Keep: TypeAlias = Callable[[Orders, Mapping[str, list[str]], Demand], Answers]
"""Lets hosts keep copies, given what they are to keep, and the executors of each host."""


class Placement:
    """Follows the executors of a cluster: ``look`` lists them, ``is_alive`` asks for one, ``keep`` runs the job.

    Where the driver's own process runs the tasks, nothing is ever noted, and nothing is done.
    """

    def __init__(
        self,
        config: StreamsConfig,
        *,
        demand: Callable[[], Demand],
        look: Callable[[], Collection[LiveExecutor]],
        is_alive: Callable[[str], bool],
        keep: Keep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._demand = demand
        self._look = look
        self._is_alive = is_alive
        self._keep = keep
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[int, LiveExecutor] = {}
        """Where slots ran last."""
        self._held: dict[str, set[int]] = {}
        """By host: slots of which something may be open there."""
        self._lags: dict[tuple[int, str], int] = {}
        self._caught_up: set[tuple[int, str]] = set()
        """Copies of which that was told."""
        self._executors: frozenset[LiveExecutor] = frozenset()
        self._demanded = Demand(0, frozenset(), 0, 0)
        self._assignment = Assignment()
        self._moves: dict[int, str] = {}
        """Slots that were said to move, and to which executor."""
        self._assigned_at = 0.0
        self._sent_orders: Orders = {}
        """The orders that hosts have got; they are sent again at the next probe."""
        self._ask_at = 0.0
        self._pause_s = _LOOK_S
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, slot: int, location: str) -> None:
        """Takes notice of where a slot has run."""
        host, id_ = host_and_id(location)
        with self._lock:
            before = self._last.get(slot)
            if before is not None and before.id == id_:
                return
            self._last[slot] = LiveExecutor(id_, host)
            self._held.setdefault(host, set()).add(slot)
            self._lags.pop((slot, host), None)
            if before is not None and before.host != host:
                # What it leaves is a copy, too, until somebody looks.
                self._lags.setdefault((slot, before.host), 0)

    def take_moves(self) -> frozenset[int]:
        """Returns the slots that are to run elsewhere than they ran last, as far as that is known; each move once."""
        with self._lock:
            moving = {
                slot: executor.id
                for slot, executor in self._assignment.active.items()
                if slot in self._last and self._last[slot].id != executor.id
            }
            new = frozenset(slot for slot, id_ in moving.items() if self._moves.get(slot) != id_)
            self._moves = moving
            return new

    def preferred(self, slots: int) -> list[tuple[str, ...]] | None:
        """Returns what slots prefer: their executor, then the hosts of their standby copies; None if all is one.

        Spark would wait for an executor that is gone, in each stage, as long as for one that is busy.
        """
        with self._lock:
            if not self._last:
                return None
            used = {executor.id for executor in (*self._last.values(), *self._assignment.active.values())}
            gone = {id_ for id_ in used if not self._is_alive(id_)}
            if any(executor.id in gone for executor in self._assignment.active.values()):
                self._executors = frozenset(each for each in self._executors if each.id not in gone)
                self._assign()
            return [self._preferences(slot, gone) for slot in range(slots)]

    def _preferences(self, slot: int, gone: Collection[str]) -> tuple[str, ...]:
        executor = self._assignment.active.get(slot) or self._last.get(slot)
        if executor is None or executor.id in gone:
            return ()
        return executor.location, *self._assignment.standbys.get(slot, ())

    def start(self) -> None:
        """Looks after executors and copies from now on, in a thread of its own."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="headrace-placement", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_S):
            try:
                self.step()
            except Exception as error:
                if not self._over.is_set():
                    logger.warning("standby copies could not be looked after: %s", error)
                self._over.wait(_ASK_S)

    def step(self) -> None:
        """Looks at the executors, and does what follows from it."""
        executors, demand = frozenset(self._look()), self._demand()
        with self._lock:
            if demand.slots != self._demanded.slots:
                # Tasks are spread over slots in another way now.
                self._lags.clear()
                self._last = {slot: executor for slot, executor in self._last.items() if slot < demand.slots}
            if executors != self._executors or demand != self._demanded:
                self._executors, self._demanded, self._sent_orders = executors, demand, {}
                self._assign()
            elif self._assignment.active.keys() != self._last.keys():
                self._assign()
            orders = self._standby_orders()
            is_probing = self._is_probing_due()
            if orders == self._sent_orders and not is_probing and not (orders and self._clock() >= self._ask_at):
                return
            hosts: dict[str, list[str]] = {}
            for executor in sorted(self._executors):
                hosts.setdefault(executor.host, []).append(executor.location)
        answers = self._keep(orders, hosts, demand) if orders else {}
        with self._lock:
            self._take(orders, answers, is_probing=is_probing)

    def _is_probing_due(self) -> bool:
        interval_s = self._config.probing_rebalance_interval.total_seconds()
        return bool(self._assignment.waiting) and self._clock() - self._assigned_at >= interval_s

    def _assign(self) -> None:
        hosts = {executor.host for executor in self._executors}
        self._lags = {copy: lag for copy, lag in self._lags.items() if copy[1] in hosts}
        self._caught_up &= self._lags.keys()
        self._held = {host: slots for host, slots in self._held.items() if host in hosts}
        rules = Rules(
            self._demanded.standby_replicas, self._config.max_warmup_replicas, self._config.acceptable_recovery_lag
        )
        before = self._assignment
        self._assignment = assign(self._last, self._executors, self._lags, self._demanded.stateful, rules)
        self._assigned_at = self._clock()
        for slot, executor in self._assignment.active.items():
            origin = before.active.get(slot)
            if origin is not None and origin.id != executor.id:
                logger.info("slot %d moves from %s to %s", slot, origin.location, executor.location)
        for slot, host in self._assignment.warmups.items():
            if before.warmups.get(slot) != host:
                logger.info("slot %d warms up on %s", slot, host)

    def _standby_orders(self) -> Orders:
        """Returns what each host is to keep of slots that run elsewhere, and to close."""
        active = self._assignment.active
        orders: dict[str, dict[int, int | None]] = {
            host: {slot: None for slot in slots if slot not in active or active[slot].host != host}
            for host, slots in self._held.items()
        }
        for slot, host, rank in self._assignment.copies():
            orders.setdefault(host, {})[slot] = rank
        return {host: ranks for host, ranks in orders.items() if ranks}

    def _take(self, orders: Orders, answers: Answers, *, is_probing: bool) -> None:
        """Takes notice of what hosts have answered."""
        is_news = bool(answers.keys() - self._lags.keys())
        acceptable_lag = self._config.acceptable_recovery_lag
        for (slot, host), lag in answers.items():
            if orders[host][slot] is None:
                self._held.get(host, set()).discard(slot)
                self._lags.pop((slot, host), None)
                continue
            if lag <= acceptable_lag and (slot, host) not in self._caught_up:
                logger.info("the copy of slot %d on %s is caught up", slot, host)
                self._caught_up.add((slot, host))
            self._held.setdefault(host, set()).add(slot)
            self._lags[slot, host] = lag
        self._sent_orders = self._standby_orders()
        copies = [(slot, host) for host, ranks in orders.items() for slot in ranks]
        if all(copy in answers and answers[copy] <= acceptable_lag for copy in copies):
            self._ask_at, self._pause_s = self._clock() + _ASK_S, _LOOK_S
        else:
            self._ask_at, self._pause_s = self._clock() + self._pause_s, min(_ASK_S, 2 * self._pause_s)
        if is_probing or (is_news and self._assignment.waiting):
            self._assign()

    def close(self) -> None:
        """Ends the thread; a job of its that takes long is left to itself."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)


class UntoldMoves:
    """Moves of slots that applications have not been told of: they are when a task of theirs goes on there.

    >>> moves = UntoldMoves()
    >>> moves.add({0}, ["orders"])
    >>> moves.take("orders", ["0_1"], {"0_0": 0, "0_1": 1})
    set()
    >>> moves.take("orders", ["0_0", "0_1"], {"0_0": 0, "0_1": 1})
    {'0_0'}
    >>> moves.take("orders", ["0_0"], {"0_0": 0, "0_1": 1})
    set()
    """

    def __init__(self) -> None:
        self._slots: dict[str, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add(self, slots: Collection[int], applications: Iterable[str]) -> None:
        """Notes that slots go on elsewhere."""
        for key in applications if slots else ():
            self._slots.setdefault(key, set()).update(slots)

    def take(self, application: str, tasks: Iterable[str], slots: Mapping[str, int]) -> set[str]:
        """Returns those of the tasks with work whose slots have moved; each move once."""
        untold = self._slots.get(application)
        if untold is None:
            return set()
        moved = {task for task in tasks if slots[task] in untold}
        untold -= {slots[task] for task in moved}
        # Where the application has no task there is nothing to tell.
        untold &= set(slots.values())
        if not untold:
            del self._slots[application]
        return moved

    def forget(self, application: str) -> None:
        self._slots.pop(application, None)
