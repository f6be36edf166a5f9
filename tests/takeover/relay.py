"""Relays: applications that go to and fro between Kafka Streams and Headrace, and are compared with undisturbed ones.

Each topology runs twice on the same input: as a runner, which changes hands at random moments, and as a twin, which
only Kafka Streams has. In the end outputs and changelogs of both must be the same.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from golden_cases.case import Case
from headrace import Streams, Topology
from headrace.app.engine import local_engine
from headrace.change.takeover.handing_back import hand_back
from headrace.change.takeover.taking_over import examine, take_over
from headrace.errors import ChangeRefusedError
from headrace.state import StoreBuilder
from headrace.topics.consumer_group import GroupOffset
from headrace.topics.kafka import KafkaLog
from headrace.topics.log import Output, TopicPartition
from headrace.topology.queryable_stores import logged_stores
from tests.takeover.cases import Application
from tests.takeover.java_applications import JavaApplications

_PATIENCE = timedelta(seconds=40)
_PATIENCE_S = 120.0
_STEP_S = 0.1
_AT_REST = 3
_COMPARED = frozenset({"key_value", "timestamped_key_value", "timestamped_window", "session", "versioned"})
_TIMELESS = frozenset({"key_value", "session"})
"""Stores whose rows have no time: their changelog records carry that of some record at hand."""

Input = tuple[int, Output]
"""The number of an input topic, and a record."""
Row = tuple[bytes | None, int]
Rows = dict[bytes, list[Row]]


@dataclass
class Runner:
    """An application that changes hands, and its twin."""

    application: Application
    twin: Application
    pieces: list[list[Input]]
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.application.name


@dataclass
class Figures:
    """What a relay has seen."""

    topologies: int = 0
    takeovers: int = 0
    hand_backs: int = 0
    records: int = 0
    unread: int = 0
    """Records of repartition topics that Kafka Streams had not read when it was stopped."""
    stores: Counter[str] = field(default_factory=Counter)
    """Stores with rows in their changelogs when they were taken over, by kind."""
    outputs: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)


class Relay:
    """Many applications at once, in one Java process after the other, and in this process."""

    def __init__(self, log: KafkaLog, directory: Path, cases: Iterable[Case], *, records: int, pieces: int, seed: int):
        self._log, self._directory = log, directory
        self._chance = random.Random(seed)
        self.figures = Figures()
        self.runners: list[Runner] = []
        begin_ms = time.time_ns() // 1_000_000 - 3_600_000
        for number, case in enumerate(cases):
            runner, twin = Application(f"r{seed}-{number}", case), Application(f"t{seed}-{number}", case)
            found = runner.records(records, seed, begin_ms)
            size = -(-len(found) // pieces)
            parts = [found[start : start + size] for start in range(0, len(found), size)]
            settings = {"processing.guarantee": "at_least_once"} if number % 8 == 7 else {}
            self.runners.append(Runner(runner, twin, parts, settings))
            self.figures.records += len(found)
            for application in (runner, twin):
                for topic in [*application.inputs, *application.outputs]:
                    log.create_topic(topic, partitions=application.partitions)
            self._append(twin, found)
        self.figures.topologies = len(self.runners)

    def _append(self, application: Application, records: Sequence[Input]) -> None:
        for number, topic in enumerate(application.inputs):
            self._log.append(topic, [record for at, record in records if at == number])

    def feed(self, piece: int) -> None:
        """Writes a piece of the input of all runners."""
        for runner in self.runners:
            self._append(runner.application, runner.pieces[piece])

    def start_java(self, runners: Sequence[Runner], *, twins: bool = False) -> JavaApplications:
        """Starts applications in a new Java process; some find the state directory that they have left, some do not."""
        for runner in runners:
            if self._chance.random() < 0.5:
                shutil.rmtree(self._directory / "state" / runner.name, ignore_errors=True)
        java = JavaApplications(self._directory, self._log.bootstrap_servers)
        for runner in runners:
            java.start(runner.name, runner.application.nodes, runner.settings)
            if twins:
                java.start(runner.twin.name, runner.twin.nodes, runner.settings)
        java.wait("RUNNING", [runner.name for runner in runners])
        return java

    def run_java(self, runners: Sequence[Runner], *, seconds: float, kill: bool = False) -> None:
        """Lets Kafka Streams run for a while."""
        if not runners:
            return
        java = self.start_java(runners)
        time.sleep(self._chance.uniform(0, seconds))
        if kill:
            java.kill()
            return
        java.close([runner.name for runner in runners])
        java.kill()

    def finish_java(self, runners: Sequence[Runner]) -> None:
        """Lets Kafka Streams, and the twins, run until everything is read."""
        java = self.start_java(runners, twins=True)
        names = [*(runner.name for runner in runners), *(runner.twin.name for runner in self.runners)]
        for runner in self.runners:
            if runner not in runners:
                java.start(runner.twin.name, runner.twin.nodes, {})
        for runner in self.runners:
            self.wait_until_read(runner.twin)
            if runner in runners:
                self.wait_until_read(runner.application)
        java.close(names)
        java.kill()

    def wait_until_read(self, application: Application) -> None:
        """Waits until an application has read its inputs, and what it sends to itself, and that stays so."""
        deadline, quiet = time.monotonic() + _PATIENCE_S, 0
        before: Mapping[TopicPartition, GroupOffset] = {}
        while quiet < _AT_REST:
            topics = [
                topic
                for topic in self._log.topics()
                if topic in application.inputs
                or (topic.startswith(f"{application.name}-") and topic.endswith(("-repartition", "-topic")))
            ]
            targets = [(topic, n) for topic in topics for n in range(self._log.partitions_of(topic))]
            offsets = self._log.group_offsets(application.name)
            ends = self._log.end_offsets(targets)
            unread = [target for target in targets if not self._is_read(target, offsets, ends[target])]
            quiet = quiet + 1 if not unread and offsets == before else 0
            before = offsets
            if time.monotonic() > deadline:
                message = (
                    f"{application.name} ({application.case['id']}) does not get on: {unread} of {ends}, {offsets}"
                )
                raise AssertionError(message)
            time.sleep(_STEP_S)

    def _is_read(self, target: TopicPartition, offsets: Mapping[TopicPartition, GroupOffset], end: int) -> bool:
        at = offsets[target].offset if target in offsets else self._log.begin_offsets([target])[target]
        # Behind the last record lie the ends of transactions.
        return at >= end or not self._log.read(*target, at, end)

    def run_headrace(self, runner: Runner, *, seconds: float | None = None, back: bool = True) -> None:
        """Takes an application over, runs it for a while or to the end, and hands it back."""
        application = runner.application
        config = application.config(self._log.bootstrap_servers, self._directory / "headrace")
        topology = application.topology(config)
        found = examine(topology, config, self._log, wait=_PATIENCE)
        assert found is not None, "nothing was begun before"
        self.figures.takeovers += 1
        self.figures.unread += sum(found.legacy.unread.values())
        self._count_stores(topology, runner.name)
        take_over(topology, config, self._log, found)
        streams = Streams(topology, config, log=self._log, engine=local_engine)
        if seconds is None:
            streams.run(until_end=True)
        else:
            with streams:
                time.sleep(self._chance.uniform(0.2, seconds))
        if back:
            try:
                hand_back(topology, config, self._log, wait=_PATIENCE)
            except ChangeRefusedError as refused:
                if "still to be read" not in str(refused):
                    raise
                # It was stopped before it had read what Kafka Streams has left in repartition topics.
                self.run_to_the_end(runner)
                hand_back(topology, config, self._log, wait=_PATIENCE)
            self.figures.hand_backs += 1

    def _count_stores(self, topology: Topology, name: str) -> None:
        for store, topic in logged_stores(topology, name).items():
            targets = [(topic, partition) for partition in range(self._log.partitions_of(topic))]
            begins, ends = self._log.begin_offsets(targets), self._log.end_offsets(targets)
            # Behind the last record lie the ends of transactions.
            if any(self._log.read(*target, begins[target], ends[target]) for target in targets):
                self.figures.stores[topology.store_builders[store].kind] += 1

    def run_to_the_end(self, runner: Runner) -> None:
        """Lets Headrace, which has an application, read everything."""
        application = runner.application
        config = application.config(self._log.bootstrap_servers, self._directory / "headrace")
        Streams(application.topology(config), config, log=self._log, engine=local_engine).run(until_end=True)

    def run(self, say: Callable[[str], None] = lambda _: None) -> Figures:
        """Java, Headrace, Java, which is killed, Headrace, and Java to the end; some topologies stay in Headrace."""
        # Kafka Streams cannot go on with records that wait for a table.
        returning = [each for each in self.runners if not each.application.waits_for_tables]
        # Without transactions only a clean close is exact.
        gently = [each for each in returning if each.settings]
        self.feed(0)
        self.run_java(self.runners, seconds=2)
        say("Kafka Streams was closed")
        self.feed(1)
        for runner in self.runners:
            self.run_headrace(runner, seconds=1, back=runner in returning)
        say("Headrace has taken over, and handed back")
        self.feed(2)
        self.run_java(gently, seconds=1)
        self.run_java([each for each in returning if each not in gently], seconds=2, kill=True)
        say("Kafka Streams was killed")
        for runner in returning:
            self.run_headrace(runner, seconds=1)
        say("Headrace has taken over, and handed back")
        self.feed(3)
        for runner in self.runners:
            if runner not in returning:
                self.run_to_the_end(runner)
        self.finish_java(returning)
        say("Kafka Streams has read everything")
        self.compare()
        if not self.figures.unread:
            self.figures.problems.append(
                "Kafka Streams had read all of its repartition topics whenever it was stopped, so nothing is known of "
                "takeovers that find unread records there; stop it earlier, or give it more records"
            )
        return self.figures

    def compare(self) -> None:
        """Notes in what runners and twins differ."""
        for runner in self.runners:
            self._compare_outputs(runner)
            self._compare_stores(runner)

    def _compare_outputs(self, runner: Runner) -> None:
        for ours, theirs in zip(runner.application.outputs, runner.twin.outputs, strict=True):
            found, wanted = self._rows(ours), self._rows(theirs)
            self.figures.outputs += sum(map(len, wanted.values()))
            if runner.application.is_eventual:
                found, wanted = _values(_last(found)), _values(_last(wanted))
            self._note(runner, f"output {ours}", found, wanted)

    def _compare_stores(self, runner: Runner) -> None:
        both = [self._stores(runner.application), self._stores(runner.twin)]
        # Generated names have those of topics in them.
        for (store, builder), (other, _) in zip(*(each.items() for each in both), strict=True):
            if builder.kind not in _COMPARED:
                continue
            found, wanted = (
                _last(self._rows(f"{name}-changelog"), by_time=builder.versioned)
                for name in (f"{runner.name}-{store}", f"{runner.twin.name}-{other}")
            )
            if builder.kind in _TIMELESS:
                found, wanted = _values(found), _values(wanted)
            self.figures.rows += len(wanted)
            self._note(runner, f"store {store}", found, wanted)

    def _stores(self, application: Application) -> dict[str, StoreBuilder]:
        config = application.config(self._log.bootstrap_servers, self._directory / "headrace")
        topology = application.topology(config)
        return {store: topology.store_builders[store] for store in logged_stores(topology, application.name)}

    def _note(self, runner: Runner, what: str, found: Rows, wanted: Rows) -> None:
        different = [key for key in {*found, *wanted} if found.get(key) != wanted.get(key)]
        if different:
            key = min(different)
            at, one, other = _difference(found.get(key, []), wanted.get(key, []))
            self.figures.problems.append(
                f"{runner.name} {runner.application.case['id']}, {what}: {len(different)} of {len(wanted)} keys "
                f"differ; {key!r} at {at}: found {one}, wanted {other}"
            )

    def _rows(self, topic: str) -> Rows:
        rows: Rows = {}
        for partition in range(self._log.partitions_of(topic)):
            target = (topic, partition)
            start, end = self._log.begin_offsets([target])[target], self._log.end_offsets([target])[target]
            while start < end and (page := self._log.read(topic, partition, start, end)):
                for _, time_ms, key, value, _ in page:
                    rows.setdefault(key or b"", []).append((value, time_ms))
                start = page[-1][0] + 1
        return rows


def _last(rows: Rows, *, by_time: bool = False) -> Rows:
    """Returns the last row of each key that was not deleted."""
    found = {key: [max(each, key=lambda row: row[1]) if by_time else each[-1]] for key, each in rows.items()}
    return {key: each for key, each in found.items() if each[0][0] is not None}


def _values(rows: Rows) -> Rows:
    return {key: [(value, 0) for value, _ in each] for key, each in rows.items()}


def _difference(found: list[Row], wanted: list[Row]) -> tuple[int, list[Row], list[Row]]:
    at = next((n for n, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), None)
    at = min(len(found), len(wanted)) if at is None else at
    return at, found[max(0, at - 1) : at + 3], wanted[max(0, at - 1) : at + 3]
