"""The script of a program as a source of plans: a step after the other, each until nothing is left to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.app.scripted_runs.hosted import Hosted, Step
from headrace.batches.layout import Layout
from headrace.batches.plan import Plan, Range
from headrace.batches.planner import global_ends, is_due
from headrace.batches.reports import TaskReport
from headrace.topics.journal import TaskStatus
from headrace.topics.log import Offsets, Raw, TopicLog, TopicPartition


class Script:
    """Plans the micro-batches of one program; see ``headrace.batches.application_run.PlanSource``.

    The first batch opens all tasks, the last one lets them write what they know.
    """

    def __init__(self, hosted: Hosted, layout: Layout, log: TopicLog) -> None:
        self._hosted = hosted
        self._layout = layout
        self._log = log
        self._reads: dict[TopicPartition, str] = {
            target: place.name for place in layout.tasks for target in layout.log_inputs(place)
        }
        self._positions: Offsets = dict.fromkeys(self._reads, 0)
        self._seen: Offsets = dict.fromkeys(hosted.answered, 0)
        self._steps: Iterator[Step] = iter(hosted.steps)
        self._is_running = False
        self._is_settled = False
        self._statuses: dict[str, TaskStatus] = {}
        self.lag = 0
        self.begun_at: Offsets = {}
        self.finished = False
        self.outdated = False

    def next_plan(self, batch_id: int) -> Plan | None:
        everyone = frozenset(place.name for place in self._layout.tasks)
        if batch_id == 0:
            return self._plan(batch_id, [], everyone)
        ranges = self._go_on()
        if ranges is not None:
            return self._plan(batch_id, ranges, self._due())
        if not self._is_settled:
            self._is_settled = True
            return self._plan(batch_id, [], everyone)
        self.finished = True
        return None

    def waits_for(self) -> tuple[Offsets, float]:
        """Returns that it waits for nothing."""
        return {}, 0.0

    def take_obsolete(self) -> Offsets:
        """Returns that nothing is deleted: it ends soon."""
        return {}

    def _go_on(self) -> list[Range] | None:
        """Returns what to read next: the rest of a step, or the beginning of the next one; None at the end."""
        ends = self._log.end_offsets([*self._positions, *self._seen])
        unread = [(target, ends[target]) for target, start in self._positions.items() if ends[target] > start]
        if not unread:
            if self._is_running:
                self._answer(ends)
            step = next(self._steps, None)
            self._is_running = step is not None
            if step is None:
                return None
            unread = self._begin(step)
        return [Range(*target, self._positions[target], end, None) for target, end in unread]

    def _begin(self, step: Step) -> list[tuple[TopicPartition, int]]:
        self._hosted.now_ms += step.advance_ms
        found: list[tuple[TopicPartition, int]] = []
        for topic, outputs in step.records:
            written = self._log.append(topic, outputs)
            found += [((topic, each), end) for each, (_, end) in written.items() if (topic, each) in self._reads]
        return found

    def _answer(self, ends: Mapping[TopicPartition, int]) -> None:
        answer: dict[TopicPartition, list[Raw]] = {}
        for target, start in self._seen.items():
            if ends[target] > start:
                answer[target] = self._log.read(*target, start, ends[target])
                self._seen[target] = ends[target]
        self._hosted.answers.append(answer)
        self._hosted.after_step(len(self._hosted.answers) - 1)

    def _due(self) -> frozenset[str]:
        now_ms = self._hosted.now_ms
        return frozenset(name for name, status in self._statuses.items() if is_due(status.next_clock_ms, now_ms))

    def _plan(self, batch_id: int, ranges: Sequence[Range], due: frozenset[str]) -> Plan:
        by_task: dict[str, tuple[Range, ...]] = {}
        for each in ranges:
            task = self._reads[each.topic, each.partition]
            by_task[task] = (*by_task.get(task, ()), each)
        return Plan(
            batch_id,
            self._hosted.now_ms,
            by_task,
            due,
            {name: status.stamp for name, status in self._statuses.items()},
            global_ends(self._layout, self._log),
        )

    def done(self, plan: Plan, reports: Sequence[TaskReport], duration_ms: float) -> None:
        """Notes how far tasks have read, when their clocks are due and what they have counted."""
        for report in reports:
            if report.receipt is not None:
                self._statuses[report.task] = report.receipt.status
                read = {at: offset for at, offset in report.receipt.positions.items() if at in self._positions}
                self._positions.update(read)
            for name, value in report.counters.items():
                self._hosted.counters[name] = self._hosted.counters.get(name, 0) + value
