"""Histories on the embedded log: its transactions are atomic, so others run before and after each of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from tempfile import mkdtemp
from typing import TypeVar

from headrace.app.topics import external_partitions, internal_topics, make_internal
from headrace.batches.plan import Plan
from headrace.config import StreamsConfig
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.embedded.tables import Tables
from headrace.topics.journal import DurableLog
from headrace.topology.topology import Topology
from tests.simulation.history import INTERNAL, LOOP_TOPIC, OUTPUTS, History, Setup
from tests.simulation.invariants import Violation
from tests.simulation.program import APPLICATION, PARTITIONS
from tests.simulation.rules import Switch
from tests.simulation.threads import World

T = TypeVar("T")

_MEMORY = "/dev/shm"
_MAP_BYTES = 1 << 22


class SteppedLog(EmbeddedLog):
    """The log with a step around each transaction."""

    on_reset: Callable[[], None] | None = None

    def _read(self, action: Callable[[Tables], T]) -> T:
        World.scheduler.step("read")
        return super()._read(action)

    def _write(self, action: Callable[[Tables], T]) -> T:
        World.scheduler.step(f"write: {action.__qualname__}")
        done = super()._write(action)
        if self.on_reset is not None:
            self.on_reset()
        World.scheduler.step("written")
        return done


class EmbeddedHistory(History):
    """A history on a log in a directory."""

    def __init__(self, seed: int, setup: Setup, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, setup, trace)
        self._directory = mkdtemp(prefix="headrace-simulation-", dir=_MEMORY if os.path.isdir(_MEMORY) else None)
        self._handles: list[EmbeddedLog] = []
        self.log = EmbeddedLog(self._directory, sync="none", map_size=_MAP_BYTES)

    def create_topics(self) -> None:
        for name in ("in", *OUTPUTS):
            self.log.create_topic(name, partitions=PARTITIONS)

    def open_log(self) -> DurableLog:
        log = SteppedLog(self._directory, sync="none", map_size=_MAP_BYTES)
        current = World.scheduler.current
        if current is not None and current.process.name.startswith("reset"):
            log.on_reset = self._note_reset
        self._handles.append(log)
        return log

    def _note_reset(self) -> None:
        self.note_reset(self.log.end_offsets(self._targets(*OUTPUTS)))

    def prepare(self, log: DurableLog, program: Topology, config: StreamsConfig) -> None:
        """Makes internal topics: a reset deletes them."""
        external = external_partitions(program, APPLICATION, log)
        make_internal(internal_topics(program, config, external), config, log)

    def append(self, partition: int, key: bytes, value: bytes) -> None:
        time_ms = int((1_700_000_000 + self.scheduler.now) * 1000)
        self.log.append("in", [(partition, time_ms, key, value, ())])

    def read(self, topic: str, partition: int, start: int, stop: int) -> list[tuple[bytes, bytes | None]]:
        start = max(start, self.begin(topic, partition))
        return [(key or b"", value) for _, _, key, value, _ in self.log.read(topic, partition, start, stop)]

    def begin(self, topic: str, partition: int) -> int:
        return self.log.begin_offsets([(topic, partition)])[topic, partition]

    def disturb(self) -> None:
        if self.scheduler.rng.random() < self.setup.compaction:
            self.log.clean()

    def calm(self) -> None:
        pass

    def check_started(self, incarnation: int) -> None:
        """Nobody leaves anything open."""

    def decide(self, plan: Plan) -> None:
        """A batch is there or it is not: nothing is to be decided."""

    def is_unfinished(self) -> bool:
        """Never: a reset is one transaction."""
        return False

    def _targets(self, *topics: str) -> list[tuple[str, int]]:
        return [(topic, number) for topic in topics for number in range(PARTITIONS)]

    def is_caught_up(self) -> bool:
        if not set(INTERNAL) <= set(self.log.topics()):
            return False
        positions = self.log.positions(APPLICATION)
        targets = [*self._targets("in"), *((LOOP_TOPIC, n) for n in range(self.log.partitions_of(LOOP_TOPIC)))]
        ends = self.log.end_offsets(targets)
        return all(positions.get(target, 0) >= end for target, end in ends.items()) and self.has_all_ticks()

    def check_progress(self) -> None:
        positions = self.log.positions(APPLICATION)
        for target, end in self.log.end_offsets(self._targets("in")).items():
            if positions.get(target, 0) != end:
                message = f"the application stands at {positions}, and {target} ends at {end}"
                raise Violation(message)

    def describe(self) -> str:
        last = self.log.last_batch(APPLICATION)
        return (
            f"batch {-1 if last is None else last.batch_id}, positions {self.log.positions(APPLICATION)}; "
            f"{self.describe_failures()}"
        )

    def close(self) -> None:
        for log in (*self._handles, self.log):
            log.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def run_embedded(
    seed: int, switch: Switch | None = None, trace: Callable[[str], None] | None = None
) -> EmbeddedHistory:
    """Runs the history of a seed; raises Violation if it is not as it must be."""
    setup = Setup.of(seed)
    if switch is not None:
        setup = setup.with_switch(switch)
    history = EmbeddedHistory(seed, setup, trace)
    history.run()
    return history
