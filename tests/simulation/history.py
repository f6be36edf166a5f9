"""One history: an application that is disturbed for a while and then left alone, and what must hold in the end."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache

import orjson

from headrace.batches.plan import Plan
from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.topics.journal import DurableLog
from headrace.topics.partitioner import partition_for
from headrace.topology.topology import Topology
from tests.simulation import patches
from tests.simulation.cluster import Driver, Machines
from tests.simulation.disk import Disk
from tests.simulation.invariants import Violation, check_outputs, check_table
from tests.simulation.program import APPLICATION, DROPPED, LOOPED, PARTITIONS, TICKS, WRITTEN, topology
from tests.simulation.rules import Switch
from tests.simulation.scheduler import HistoryStuckError, Process, Rates, Scheduler
from tests.simulation.threads import World

LOOP_TOPIC = f"{APPLICATION}-loop"
CHANGELOGS = {store: f"{APPLICATION}-{store}-changelog" for store in ("first", "second")}
INTERNAL = (LOOP_TOPIC, *CHANGELOGS.values())
OUTPUTS = ("first-out", "out")
_KEYS = 4
_CALM_S = 150.0
"""Within which the application has caught up when nothing disturbs it any more."""
_STARTS = 20
_NEVER = ("are gone from topic", "cannot be read from", "was begun with another plan", "and its progress with it")
"""Failures of drivers that nothing in a history excuses."""
_LATE_S = 30.0
"""For what was left behind to come to its end."""


@dataclass(frozen=True)
class Setup:
    """Everything that is decided before a history begins."""

    rates: Rates
    in_memory: bool
    shared_disk: bool
    workers: int
    affinity: float
    unheard_s: float
    speculation: float
    lost_results: float
    failing: float
    marker_delay_s: float
    show_delay_s: float
    transaction_timeout_s: float
    task_timeout_s: float
    records: int
    max_batch_records: int
    restore_lag: int
    tombstones_ms: int
    disturbed_steps: int
    second_driver: float
    reset: float
    away: float
    compaction: float
    dropped: float = 0.25
    """Share of records that are dropped at random."""
    driver_decides: bool = False
    recreates: bool = False
    """Whether a reset deletes changelogs and makes them anew, as other tools do."""
    standbys: float = 0.0
    """That a worker keeps a standby copy of a task, or lets it go, after a batch."""
    run_behind_failures: bool = False
    table: bool = False
    """Whether the input is kept as a table."""

    @classmethod
    def of(cls, seed: int) -> Setup:
        """Draws it: in each history some faults are frequent, and some do not happen."""
        rng = random.Random(f"setup {seed}")

        def sometimes(most: float, share: float = 0.5) -> float:
            return most * rng.random() ** 2 if rng.random() < share else 0.0

        return cls(
            Rates(
                crash=sometimes(0.01, 0.7),
                pause=sometimes(0.01, 0.7),
                lost=sometimes(0.02),
                unanswered=sometimes(0.02),
                delayed=sometimes(0.05),
                stay=rng.choice((0.0, 0.3, 0.6, 0.9)),
                longest_pause_s=rng.choice((1.0, 8.0, 40.0)),
            ),
            in_memory=rng.random() < 0.4,
            shared_disk=rng.random() < 0.5,
            workers=rng.randint(1, 3),
            affinity=rng.choice((0.3, 0.9, 1.0)),
            unheard_s=rng.choice((0.5, 3.0, 15.0)),
            speculation=sometimes(0.3, 0.4),
            lost_results=sometimes(0.5, 0.5),
            failing=sometimes(0.05, 0.4),
            marker_delay_s=rng.choice((0.0, 0.05, 2.0)),
            show_delay_s=rng.choice((0.0, 0.05, 1.0)),
            transaction_timeout_s=rng.choice((2.0, 60.0, 900.0)),
            task_timeout_s=rng.choice((3.0, 20.0)),
            records=rng.randint(4, 16),
            max_batch_records=rng.choice((2, 5, 1000)),
            restore_lag=rng.choice((0, 1, 10_000)),
            tombstones_ms=rng.choice((1_000, 24 * 3600 * 1000)),
            disturbed_steps=rng.choice((300, 800, 2_000)),
            second_driver=sometimes(0.5, 0.6),
            reset=sometimes(0.3, 0.3),
            away=sometimes(0.3, 0.3),
            compaction=sometimes(0.6, 0.5),
            recreates=rng.random() < 0.3,
            standbys=sometimes(0.7, 0.5),
            table=rng.random() < 0.4,
        )

    def with_switch(self, switch: Switch) -> Setup:
        """Returns the setup in which a rule that is not kept shows sooner."""
        rates = replace(self.rates, **{n: max(v, getattr(self.rates, n)) for n, v in switch.rates.items()})
        return replace(self, rates=rates, **{"standbys": 0.0, "table": False, **switch.setup})


@cache
def _config(task_timeout_s: float, max_batch_records: int, restore_lag: int, tombstones_ms: int) -> StreamsConfig:
    return StreamsConfig(
        application_id=APPLICATION,
        task_timeout=timedelta(seconds=task_timeout_s),
        max_batch_records=max_batch_records,
        acceptable_recovery_lag=restore_lag,
        extras={"topic.delete.retention.ms": tombstones_ms, "topic.min.cleanable.dirty.ratio": 0.01},
    )


class History(ABC):
    """A history on some log."""

    def __init__(self, seed: int, setup: Setup, trace: Callable[[str], None] | None) -> None:
        patches.install()
        self.seed = seed
        self.setup = setup
        self.scheduler = Scheduler(seed, setup.rates, trace=trace)
        World.scheduler = self.scheduler
        World.failing = setup.failing
        World.decided = frozenset()
        self.drivers: list[Driver] = []
        self.written: list[tuple[str, str]] = []
        """Kind and id of all records of the input."""
        self._previous: dict[str, str | None] = {}
        """The record of the same key that was written before, by id."""
        self._last: dict[str, str] = {}
        self.boundaries: list[Mapping[tuple[str, int], int]] = [{}]
        """Ends of the outputs at the beginning, and when a reset was finished."""
        self._disks = [Disk() for _ in range(1 if setup.shared_disk else 3)]
        self._resets: list[Process] = []

    # What differs from log to log.

    @abstractmethod
    def create_topics(self) -> None: ...
    @abstractmethod
    def open_log(self) -> DurableLog:
        """Opens the log for the process that runs now."""

    @abstractmethod
    def prepare(self, log: DurableLog, program: Topology, config: StreamsConfig) -> None:
        """What a driver does before it starts."""

    @abstractmethod
    def append(self, partition: int, key: bytes, value: bytes) -> None:
        """Writes a record to the input."""

    @abstractmethod
    def read(self, topic: str, partition: int, start: int, stop: int) -> list[tuple[bytes, bytes | None]]:
        """Returns what readers see."""

    @abstractmethod
    def begin(self, topic: str, partition: int) -> int: ...
    @abstractmethod
    def disturb(self) -> None:
        """Does now and then what only this log knows."""

    @abstractmethod
    def calm(self) -> None: ...
    @abstractmethod
    def is_unfinished(self) -> bool:
        """Whether a reset has begun and not ended."""

    @abstractmethod
    def is_caught_up(self) -> bool: ...
    @abstractmethod
    def check_progress(self) -> None: ...
    @abstractmethod
    def describe(self) -> str: ...
    @abstractmethod
    def close(self) -> None: ...
    @abstractmethod
    def check_started(self, incarnation: int) -> None:
        """Called when a driver has opened its journal."""

    @abstractmethod
    def decide(self, plan: Plan) -> None:
        """Looks which tasks have committed a batch, if the driver decides that."""

    @property
    def batches(self) -> int:
        return sum(driver.batches for driver in self.drivers)

    # From the beginning to the end.

    def run(self) -> None:
        """Raises Violation if anything is not as it must be."""
        try:
            operator = Process(self.scheduler, "operator", may_fail=False)
            self.scheduler.max_steps = 400_000
            self.scheduler.run(operator.spawn(self._operate, "operator"))
        except HistoryStuckError as error:
            message = f"stuck: {error}; {self.describe()}"
            raise Violation(message) from error
        finally:
            self.scheduler.close()
            self.close()

    def _operate(self) -> None:
        self.create_topics()
        self._disturb()
        self._calm()
        self._catch_up("after the faults")
        self._stop_drivers()
        for key in range(_KEYS):
            self._write(f"k{key}", WRITTEN, f"final-{key}")
        self._catch_up("in the last round")
        self._stop_drivers()
        self._check()

    def _disturb(self) -> None:
        scheduler, setup, rng = self.scheduler, self.setup, self.scheduler.rng
        source = Process(scheduler, "source", may_fail=False)
        produced = source.spawn(self._produce, "source")
        self._start_driver()
        scheduler.faulty = True
        end = scheduler.steps + setup.disturbed_steps
        while scheduler.steps < end or not produced.is_over:
            scheduler.sleep(rng.random() ** 2 * 1.5)
            alive = [driver for driver in self.drivers if not driver.is_over]
            if not alive or (rng.random() < setup.second_driver and len(alive) < 3):
                self._start_driver()
            if rng.random() < setup.reset and not self._is_resetting:
                self._start_reset()
            self.disturb()

    def _calm(self) -> None:
        scheduler = self.scheduler
        scheduler.faulty = False
        self.calm()
        scheduler.note(None, "---- calm")
        scheduler.resume_all()
        # A reset that was interrupted has to be finished.
        before = len(self._resets)
        while self.is_unfinished() or self._is_resetting:
            if len(self._resets) - before > _STARTS:
                message = f"a reset does not come to its end; {self.describe()}"
                raise Violation(message)
            if not self._is_resetting:
                self._start_reset()
            scheduler.sleep(0.5)

    def _catch_up(self, when: str) -> None:
        scheduler = self.scheduler
        deadline, starts, started_at = scheduler.now + _CALM_S, 0, -1
        while not self.is_caught_up():
            scheduler.sleep(0.3)
            if scheduler.now > deadline or starts > _STARTS:
                message = f"{when} the application does not catch up; {self.describe()}"
                raise Violation(message)
            if self.is_unfinished() and not self._is_resetting:
                # Announced so late that its process had given up: drivers name the remedy.
                self._start_reset()
            # A driver that a reset has deposed, and that has nothing to do, does not know yet.
            if self.drivers[-1].is_over or started_at != len(self.boundaries):
                starts, started_at = starts + 1, len(self.boundaries)
                self._start_driver()

    def _stop_drivers(self) -> None:
        for driver in self.drivers:
            driver.is_stopping = True
        deadline = self.scheduler.now + 2 * _CALM_S
        while not all(driver.is_over for driver in self.drivers):
            if self.scheduler.now > deadline:
                message = f"a driver does not stop; {self.describe()}"
                raise Violation(message)
            self.scheduler.sleep(0.2)
        self.scheduler.sleep(_LATE_S)

    # Who takes part.

    def _produce(self) -> None:
        rng = self.scheduler.rng
        for number in range(self.setup.records):
            kind = DROPPED if rng.random() < self.setup.dropped else rng.choice((WRITTEN, WRITTEN, LOOPED))
            self._write(f"k{rng.randrange(_KEYS)}", kind, f"id{number}")
            if rng.random() < 0.5:
                self.scheduler.sleep(rng.random() * 0.5)

    def _write(self, key: str, kind: str, id_: str) -> None:
        data = key.encode()
        self.written.append((kind, id_))
        self._previous[id_], self._last[key] = self._last.get(key), id_
        self.append(partition_for(data, PARTITIONS), data, orjson.dumps({"kind": kind, "id": id_, "hop": 0}))

    def _start_driver(self) -> None:
        setup = self.setup
        config = _config(setup.task_timeout_s, setup.max_batch_records, setup.restore_lag, setup.tombstones_ms)
        machines = Machines(
            self._disks,
            setup.workers,
            setup.affinity,
            setup.unheard_s,
            setup.speculation,
            setup.lost_results,
            run_behind_failures=setup.run_behind_failures,
            standbys=setup.standbys,
            decide=self.decide if setup.driver_decides else None,
        )
        number, program = len(self.drivers), topology(in_memory=setup.in_memory, table=setup.table)
        self.drivers.append(
            Driver(self.scheduler, number, program, config, machines, self.open_log, self.prepare, self.check_started)
        )

    def _start_reset(self) -> None:
        process = Process(self.scheduler, f"reset{len(self._resets)}")
        self._resets.append(process)
        self.scheduler.note(process, "begins")

        def reset() -> None:
            try:
                self.open_log().reset_application(APPLICATION, INTERNAL)
            except StreamsError as error:
                self.scheduler.note(process, f"fails: {error}")
            process.is_dead = True

        process.spawn(reset, "reset")

    @property
    def _is_resetting(self) -> bool:
        return any(not process.is_dead for process in self._resets)

    # What must hold.

    def note_reset(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Takes notice that a reset is finished, and where outputs end: from here on everything is done once more."""
        self.scheduler.note(None, "---- reset is done")
        self.boundaries.append(ends)

    def _check(self) -> None:
        for driver in self.drivers:
            if driver.failure is not None and any(each in str(driver.failure) for each in _NEVER):
                message = f"{driver.process.name} has failed: {driver.failure}"
                raise Violation(message)
        for since, begins in enumerate(self.boundaries):
            ends = self.boundaries[since + 1] if since + 1 < len(self.boundaries) else None
            outputs = {
                topic: [
                    [
                        (key.decode(), orjson.loads(value or b"null"))
                        for key, value in self.read(
                            topic, number, begins.get((topic, number), 0), ends[topic, number] if ends else 1 << 60
                        )
                    ]
                    for number in range(PARTITIONS)
                ]
                for topic in OUTPUTS
            }
            check_outputs(outputs, None if ends else self.written, None if ends else self._stores())
            if self.setup.table:
                check_table(outputs["first-out"], self._previous)
        self.check_progress()

    def _stores(self) -> dict[str, dict[str, str]]:
        """Returns the rows of the changelogs, by store."""
        found: dict[str, dict[str, str]] = {}
        for store, topic in CHANGELOGS.items():
            rows = found[store] = {}
            for number in range(PARTITIONS):
                for key, value in self.read(topic, number, self.begin(topic, number), 1 << 60):
                    if value is None:
                        rows.pop(key.decode(), None)
                    else:
                        rows[key.decode()] = value.decode()
        return found

    def has_all_ticks(self) -> bool:
        """Whether all clocks have done what they have to do since the last reset."""
        begins = self.boundaries[-1]
        written = [
            value
            for number in range(PARTITIONS)
            for _, value in self.read("out", number, begins.get(("out", number), 0), 1 << 60)
        ]
        return sum(b'"tick-' in (value or b"") for value in written) >= TICKS * PARTITIONS

    def describe_failures(self) -> str:
        failures = [f"{d.process.name}: {d.failure}" for d in self.drivers if d.failure is not None]
        return f"last failures: {failures[-3:]}"
