"""Histories on Kafka, with the broker in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise

from headrace.batches.plan import Plan
from headrace.config import StreamsConfig
from headrace.topics.journal import DurableLog, TaskRecord
from headrace.topics.kafka import clients
from headrace.topics.kafka.history import History as Batches
from headrace.topics.kafka.kafka_log import KafkaLog
from headrace.topics.kafka.progress_topics import batches_topic
from headrace.topology.topology import Topology
from tests.simulation.broker import Broker, Entry, Message
from tests.simulation.history import INTERNAL, LOOP_TOPIC, OUTPUTS, History, Setup
from tests.simulation.invariants import Violation
from tests.simulation.program import APPLICATION, PARTITIONS
from tests.simulation.rules import Switch
from tests.simulation.threads import World

_BATCHES = batches_topic(APPLICATION)


class KafkaHistory(History):
    """A history on the broker in memory."""

    def __init__(
        self,
        seed: int,
        setup: Setup,
        trace: Callable[[str], None] | None = None,
        *,
        keeps_records: bool = True,
    ) -> None:
        super().__init__(seed, setup, trace)
        self._keeps_records = keeps_records
        self.broker = Broker(self.scheduler, marker_delay_s=setup.marker_delay_s, show_delay_s=setup.show_delay_s)
        self.broker.on_commit = self._note_commit
        self.broker.on_append = self._note_append
        World.broker = self.broker
        World.truncated = self._recreate
        self._handles = 0
        self._commits: dict[str, list[int]] = {}

    def create_topics(self) -> None:
        for name in ("in", *OUTPUTS):
            self.broker.create(name, PARTITIONS)
        for name in INTERNAL:
            self.broker.create(name, PARTITIONS, self._configs(name))

    def _configs(self, name: str) -> dict[str, str]:
        if name == LOOP_TOPIC:
            return {"cleanup.policy": "delete", "retention.ms": "-1"}
        return {"cleanup.policy": "compact", "delete.retention.ms": str(self.setup.tombstones_ms)}

    def _recreate(self) -> None:
        """Makes changelogs anew within a reset; at once, since a deletion that comes late is fatal."""
        if self.setup.recreates:
            for name in INTERNAL:
                if name != LOOP_TOPIC:
                    self.broker.delete(name)
                    self.broker.create(name, PARTITIONS, self._configs(name))

    def open_log(self) -> DurableLog:
        self._handles += 1
        return KafkaLog(
            # Another address for each process: clients of one address are shared.
            f"simulated-{self._handles}",
            producer={"transaction.timeout.ms": int(self.setup.transaction_timeout_s * 1000)},
            task_timeout=timedelta(seconds=self.setup.task_timeout_s),
        )

    def prepare(self, log: DurableLog, program: Topology, config: StreamsConfig) -> None:
        """Topics are there, and resets keep them."""

    def append(self, partition: int, key: bytes, value: bytes) -> None:
        self.broker.append(("in", partition), [(self.broker.now_ms, key, value, ())])

    def read(self, topic: str, partition: int, start: int, stop: int) -> list[tuple[bytes, bytes | None]]:
        found = self.broker.partition((topic, partition)).committed(start, stop)
        return [(entry.key or b"", entry.value) for entry in found]

    def begin(self, topic: str, partition: int) -> int:
        return self.broker.partition((topic, partition)).begin

    def disturb(self) -> None:
        rng, setup, now = self.scheduler.rng, self.setup, self.scheduler.now
        if rng.random() < setup.away:
            self.broker.away_until = now + rng.random() ** 2 * setup.task_timeout_s * 1.5
            self.scheduler.note(None, f"broker: away until {self.broker.away_until:.1f}")
        if rng.random() < setup.compaction:
            self.broker.compact()

    def calm(self) -> None:
        self.broker.away_until = 0.0

    def close(self) -> None:
        clients._open.clear()

    # What is looked at from outside.

    def _batches(self) -> Batches:
        found = Batches()
        topic = self.broker.topics.get(_BATCHES)
        for entry in topic.partitions[0].entries if topic is not None else ():
            found = found.with_record(entry.offset, entry.key or b"", entry.value or b"")
        return found

    def is_unfinished(self) -> bool:
        return self._batches().is_resetting

    def is_caught_up(self) -> bool:
        state = self._batches().state
        if state.begun is not None:
            return False
        for topic in ("in", LOOP_TOPIC):
            for number, partition in enumerate(self.broker.topics[topic].partitions):
                if state.positions.get((topic, number), partition.begin) < partition.end:
                    return False
        partitions = [partition for topic in self.broker.topics.values() for partition in topic.partitions]
        return all(each.stable == each.end for each in partitions) and self.has_all_ticks()

    def check_started(self, incarnation: int) -> None:
        """Checks that nobody has to wait behind what a former driver has left open."""
        left = self.broker.ongoing()
        if left and self._batches().newest == incarnation:
            message = f"driver {incarnation} has started, and transactions of a former one are open: {left}"
            raise Violation(message)

    def decide(self, plan: Plan) -> None:
        records = self._records().items()
        World.decided = frozenset(task for task, record in records if record.batch_id == plan.batch_id)

    def _note_append(self, target: tuple[str, int], messages: Sequence[Message]) -> None:
        if target[0] != _BATCHES:
            return
        kind, _, number = (messages[0][1] or b"").partition(b" ")
        if kind == b"reset-done" and int(number) == self._batches().newest:
            self._commits.clear()
            self.note_reset(
                {
                    (topic, number): partition.end
                    for topic in OUTPUTS
                    for number, partition in enumerate(self.broker.topics[topic].partitions)
                }
            )

    def _note_commit(self, target: tuple[str, int], entries: Sequence[Entry]) -> None:
        for entry in entries if target[0].endswith("-tasks") else ():
            if (entry.key or b"").startswith(b"record"):
                record, task = TaskRecord.unpack(entry.value or b""), _task_of(target, entry)
                self._commits.setdefault(task, []).append(record.batch_id)
                self.scheduler.note(None, f"broker: task {task} has committed batch {record.batch_id}")

    def _records(self) -> dict[str, TaskRecord]:
        """Returns the last record of each task."""
        found: dict[str, TaskRecord] = {}
        for topic in self.broker.topics.values():
            for number, partition in enumerate(topic.partitions if topic.name.endswith("-tasks") else ()):
                for entry in partition.committed(partition.begin, partition.end):
                    if (entry.key or b"").startswith(b"record"):
                        found[_task_of((topic.name, number), entry)] = TaskRecord.unpack(entry.value or b"")
        return found

    def check_progress(self) -> None:
        for task, batches in self._commits.items():
            if any(following <= before for before, following in pairwise(batches)):
                message = f"task {task} has committed batches {batches}"
                raise Violation(message)
        if not self._keeps_records:
            return
        records = self._records()
        for number, partition in enumerate(self.broker.topics["in"].partitions):
            found = {(topic, n): at for topic, n, at in records[f"0_{number}"].positions}
            if found.get(("in", number)) != partition.end:
                message = f"task 0_{number} stands at {found}, and its input ends at {partition.end}"
                raise Violation(message)

    def describe(self) -> str:
        state = self._batches().state
        return (
            f"batch {state.batch_id}, begun {state.begun is not None}, positions {state.positions}; "
            f"{self.describe_failures()}"
        )


def _task_of(place: tuple[str, int], entry: Entry) -> str:
    """Returns whose record it is; where tasks share a partition, its key says it."""
    named = (entry.key or b"").partition(b" ")[2].decode()
    return named or f"{place[0].removesuffix('-tasks').rpartition('-')[2]}_{place[1]}"


def run_kafka(seed: int, switch: Switch | None = None, trace: Callable[[str], None] | None = None) -> KafkaHistory:
    """Runs the history of a seed; raises Violation if it is not as it must be."""
    setup = Setup.of(seed)
    if switch is not None:
        setup = setup.with_switch(switch)
    history = KafkaHistory(seed, setup, trace, keeps_records=switch is None or switch.rule != "6")
    history.run()
    return history
