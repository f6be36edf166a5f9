"""Plans micro-batches for many programs at once: a step of each, or what is left of its last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headrace.app.scripted.hosted import Hosted, Step
from headrace.spark.application import Application
from headrace.spark.plan import Plan, Range
from headrace.spark.receipts import TaskReport
from headrace.topics.log import Offsets, Raw, TopicLog, TopicPartition


class _Script:
    """How far one program has come."""

    def __init__(self, hosted: Hosted, reads: Mapping[TopicPartition, str]) -> None:
        self.hosted = hosted
        self.reads = reads
        """The key of the task that reads a partition."""
        self.positions: Offsets = dict.fromkeys(reads, 0)
        self.seen: Offsets = dict.fromkeys(hosted.answered, 0)
        self._steps: Iterator[Step] = iter(hosted.steps)
        self._running = False
        self.finished = False

    def targets(self) -> Iterable[TopicPartition]:
        return [*self.positions, *self.seen]

    def go_on(self, ends: Mapping[TopicPartition, int], log: TopicLog) -> list[Range]:
        """Returns what to read next: the rest of a step, or the beginning of the next one."""
        unread = [(target, ends[target]) for target, start in self.positions.items() if ends[target] > start]
        if not unread:
            if self._running:
                self._answer(ends, log)
            step = next(self._steps, None)
            self._running = step is not None
            self.finished = step is None
            if step is None:
                return []
            unread = self._begin(step, log)
        return [Range(*target, self.positions[target], end, None) for target, end in unread]

    def _begin(self, step: Step, log: TopicLog) -> list[tuple[TopicPartition, int]]:
        self.hosted.now_ms += step.advance_ms
        found: list[tuple[TopicPartition, int]] = []
        for topic, outputs in step.records:
            name = self.hosted.prefix + topic
            written = log.append(name, outputs)
            found += [((name, each), end) for each, (_, end) in written.items() if (name, each) in self.reads]
        return found

    def _answer(self, ends: Mapping[TopicPartition, int], log: TopicLog) -> None:
        answer: dict[TopicPartition, list[Raw]] = {}
        for (topic, partition), start in self.seen.items():
            end = ends[topic, partition]
            if end > start:
                answer[topic.removeprefix(self.hosted.prefix), partition] = log.read(topic, partition, start, end)
                self.seen[topic, partition] = end
        self.hosted.answers.append(answer)
        self.hosted.after_step(len(self.hosted.answers) - 1)


class Feed:
    """Where the micro-batches of all programs come from; it ends the query when the last script has ended."""

    def __init__(self, application: Application, programs: Sequence[Hosted]) -> None:
        self._log = application.log
        layout = application.layout
        reads: dict[str, dict[TopicPartition, str]] = {each.prefix: {} for each in programs}
        self._keys = frozenset(place.key for place in layout.tasks)
        self._program_of = {place.key: place.program for place in layout.tasks}
        for place in layout.tasks:
            reads[place.program] |= dict.fromkeys(layout.ranges(place), place.key)
        self._scripts = {each.prefix: _Script(each, reads[each.prefix]) for each in programs}
        self._global = [
            (program.in_log(store.topic), partition)
            for program in layout.programs.values()
            for store in program.topology.global_stores.values()
            for partition in range(program.partitions[store.topic])
        ]
        self._clocks: dict[str, int | None] = {}
        self._settled = False
        self.batches = 0

    def next_plan(self, batch_id: int) -> Plan | None:
        """Goes on with every script. The first batch opens all tasks, the last one lets them write what they know."""
        self.batches += 1
        if batch_id == 0:
            return self._plan(batch_id, {}, self._keys)
        active = [script for script in self._scripts.values() if not script.finished]
        ends = self._log.end_offsets([target for script in active for target in script.targets()])
        ranges: dict[str, list[Range]] = {}
        for script in active:
            for each in script.go_on(ends, self._log):
                ranges.setdefault(script.reads[each.topic, each.partition], []).append(each)
        if any(not script.finished for script in active):
            return self._plan(batch_id, ranges, self._due())
        if self._settled:
            return None
        self._settled = True
        return self._plan(batch_id, {}, self._keys)

    def _due(self) -> frozenset[str]:
        now_ms = {prefix: script.hosted.now_ms for prefix, script in self._scripts.items()}
        return frozenset(
            key for key, clock in self._clocks.items() if clock is not None and clock <= now_ms[self._program_of[key]]
        )

    def _plan(self, batch_id: int, ranges: Mapping[str, Sequence[Range]], due: frozenset[str]) -> Plan:
        ends = self._log.end_offsets(self._global)
        return Plan(
            batch_id,
            {prefix: script.hosted.now_ms for prefix, script in self._scripts.items()},
            {key: tuple(several) for key, several in ranges.items()},
            due,
            {f"{topic}/{partition}": end for (topic, partition), end in ends.items()},
        )

    def done(self, plan: Plan, reports: Sequence[TaskReport], duration_ms: float) -> None:
        """Notes how far tasks have read, when their clocks are due and what they have counted."""
        for report in reports:
            script = self._scripts[self._program_of[report.task]]
            self._clocks[report.task] = report.next_clock_ms
            if report.receipt is not None:
                script.positions.update(report.receipt.positions)
            for name, value in report.counters.items():
                script.hosted.counters[name] = script.hosted.counters.get(name, 0) + value
