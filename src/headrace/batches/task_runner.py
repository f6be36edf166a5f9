"""The tasks of an application in one process: which of them are open, and one task's part of a micro-batch."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from resource import RLIMIT_NOFILE, getrlimit
from typing import Any

from headrace.batches.application import Application
from headrace.batches.edges import EdgeWriter, feed_blobs
from headrace.batches.global_tables import GlobalTables
from headrace.batches.layout import TaskPlace
from headrace.batches.live_task import LiveTask
from headrace.batches.plan import Plan, Range
from headrace.batches.reports import TaskReport, TaskResult
from headrace.batches.standby import StandbyCopy
from headrace.batches.task_host import ensure_topic
from headrace.batches.working_copy import died_running, discard
from headrace.errors import FencedError, OffsetOutOfRangeError, StreamsError
from headrace.runtime.gc_pause import collector_paused
from headrace.runtime.punctuation import NEVER
from headrace.topics.journal import EdgeBlob, Receipt, TaskCommitState, TaskJournal
from headrace.topics.log import Output, Raw, TopicLog, TopicPartition

logger = logging.getLogger(__name__)

_LIVE_TASKS = max(128, min(2048, getrlimit(RLIMIT_NOFILE)[0] // 8))
"""Tasks that a process keeps open. Each has two files; one that is closed is built anew in the next micro-batch, all of
them if there are only a few more than this, because they take turns."""
_PAGE_BYTES = 4 << 20
"""A range is read in pages of about this size, so that a long one never lies in memory as a whole."""


def skip_commit_check() -> None:
    """The check before a commit of a thread that is never abandoned: none."""


class TaskRunner:
    """The tasks of one application in this process.

    ``check`` is called before anything that others can see; it raises if nobody waits for the batch any more.
    """

    def __init__(self, application: Application, *, check: Callable[[], None] = skip_commit_check) -> None:
        self._application = application
        self._check = check
        self._live: OrderedDict[str, LiveTask] = OrderedDict()
        self._standbys: dict[str, StandbyCopy] = {}
        self._tables: GlobalTables | None = None

    def place(self, task: str) -> TaskPlace:
        """Returns a task of the application by its name."""
        return self._application.layout.by_name[task]

    def knows(self, task: str) -> bool:
        """Returns whether a task is open here, as the last batch that it ran here has left it."""
        return task in self._live

    def run(
        self,
        place: TaskPlace,
        plan: Plan,
        blobs: Sequence[EdgeBlob],
        *,
        attempt: int = 0,
        check: Callable[[], None] | None = None,
    ) -> TaskResult:
        """Runs a task's part of a micro-batch, unless it has committed it before: then its results are handed on.

        Whatever is raised, the task is closed, and nothing of the batch is committed by it, or everything is: the next
        attempt finds out. ``check`` takes the place of the runner's own.
        """
        check = check or self._check
        check()
        started = time.perf_counter()
        live = self._take(place, plan, attempt)
        if isinstance(live, TaskResult):
            return live
        opened = time.perf_counter()
        try:
            live.host.clock_ms = plan.now_ms
            live.begin(plan.batch_id)
            with collector_paused():
                edges, report = self._process(live, place, plan, blobs, check)
            live.end()
        except BaseException:
            letters = live.task.take_failure_dead_letters()
            live.close()
            self._append(letters, check)
            raise
        self._live[place.name] = live
        while len(self._live) > _LIVE_TASKS:
            self._live.popitem(last=False)[1].close()
        counters = self._with_global_counts(report.counters)
        took = time.perf_counter() - started
        return TaskResult(edges, replace(report, counters=counters, seconds=took, opening=opened - started))

    def restore(self, place: TaskPlace) -> TaskReport:
        """Restores a task in the background, unless it lacks little or nothing; tells how much it lacks.

        What is wrong with its copy or its changelogs is found again, and told, when the task is run.
        """
        if place.name in self._live or not place.changelogs:
            return TaskReport(place.name, lag=0)
        standby = self._standbys.get(place.name) or StandbyCopy(self._application, place, is_awaited=True)
        try:
            standby.open()
        except StreamsError as error:
            logger.warning("the copy of task %s cannot be restored ahead: %s", place.name, error)
            return TaskReport(place.name, lag=0)
        if place.name not in self._standbys:
            if standby.lag <= self._application.layout.config.acceptable_recovery_lag:
                standby.close()
            else:
                self._standbys[place.name] = standby
                standby.start()
        return TaskReport(place.name, lag=standby.lag, restores=standby.restores)

    def follow(self, place: TaskPlace) -> int | None:
        """Keeps a standby copy of a task that runs elsewhere; tells how much the task would restore here.

        None says that this is not known yet. A copy that does not follow any more is opened anew.
        """
        if not place.changelogs:
            self.close_task(place)
            return 0
        self._close_live(place)
        standby = self._standbys.get(place.name)
        if standby is None or standby.has_failed:
            self.close_task(place)
            standby = self._standbys[place.name] = StandbyCopy(self._application, place)
            standby.start()
        return standby.distance

    def close_task(self, place: TaskPlace) -> None:
        """Closes a task, or its standby copy, that is not wanted in this process any more."""
        self._close_live(place)
        self.close_standby(place)

    def _close_live(self, place: TaskPlace) -> None:
        live = self._live.pop(place.name, None)
        if live is not None:
            live.close(write=True)

    def close_standby(self, place: TaskPlace) -> None:
        """Closes the standby copy of a task, so that another process can take it over; from any thread."""
        standby = self._standbys.pop(place.name, None)
        if standby is not None:
            standby.close()

    def close_standbys(self) -> None:
        """Closes all standby copies."""
        while self._standbys:
            self._standbys.popitem()[1].close()

    def _take(self, place: TaskPlace, plan: Plan, attempt: int) -> LiveTask | TaskResult:
        """Returns the task as it was left by the last batch, or builds it from the log, or what it has committed."""
        tables = self._global_stores(plan)
        live = self._live.pop(place.name, None)
        if live is not None:
            is_current = False
            try:
                is_current = live.stamp == plan.stamps.get(place.name, "") and live.take_over()
            finally:
                if not is_current:
                    live.close()
            if is_current:
                return live
        standby = self._standbys.get(place.name)
        self.close_standby(place)
        ahead = [] if standby is None or not standby.is_awaited else standby.restores
        application = self._application
        directory = application.directory / place.name
        if attempt > 0 and died_running(directory, plan.batch_id):
            discard(directory)
        own = application.layout.own_changelogs(place)
        journal = application.log.task_journal(application.id, application.incarnation, place.name, own)
        try:
            head = journal.open()
            done = self._committed_result(place, plan, head, journal)
            if done is not None:
                journal.close()
                return done
            return LiveTask(application, place, journal, head, tables, clock_ms=plan.now_ms, ahead=ahead)
        except BaseException:
            journal.close()
            raise

    def _committed_result(
        self, place: TaskPlace, plan: Plan, head: TaskCommitState, journal: TaskJournal
    ) -> TaskResult | None:
        """Returns what the task has committed of this batch already; None if it has to run."""
        record = head.record
        if record is None or record.batch_id < plan.batch_id:
            return None
        if record.batch_id > plan.batch_id:
            message = (
                f"application '{self._application.id}': task {place.name} has committed batch {record.batch_id}, and "
                f"was asked for batch {plan.batch_id}: another instance has overtaken this one"
            )
            raise FencedError(message)
        receipt = replace(Receipt.of(place.name, self._application.incarnation, record), record=record.pack())
        return TaskResult(journal.read_edges(record), TaskReport(place.name, receipt))

    def _process(
        self, live: LiveTask, place: TaskPlace, plan: Plan, blobs: Sequence[EdgeBlob], check: Callable[[], None]
    ) -> TaskResult:
        """Processes everything and commits it; returns blobs for other tasks and what the driver must know."""
        task, layout = live.task, self._application.layout
        ranges = plan.ranges.get(place.name, ())
        fetched: dict[TopicPartition, int] = {}
        edges = EdgeWriter(layout, task)
        for each in ranges:
            pages = _pages(self._application.log, each, layout.config.on_offset_out_of_range)
            counted = _counting(pages, fetched, (each.topic, each.partition), edges.take_page)
            task.add_pages(each.topic, each.partition, counted, resumes_ms=each.resumes_ms)
        consumed = feed_blobs(task, blobs, plan.batch_id, edges.take_page)
        task.punctuate_wall_clock()
        task.process_all()
        task.commit()
        positions = {}
        records = 0
        for each in ranges:
            left = task.next_offset(each.topic, each.partition)
            target = each.topic, each.partition
            positions[target] = each.end if left is None else left
            # Offsets would also count gaps: the ends of transactions, and what compaction has removed.
            taken = fetched.get(target, 0) - task.queued(*target)
            consumed[each.topic] = consumed.get(each.topic, 0) + taken
            records += taken
        task.drop_queued()
        edges.take_rest()
        outputs = task.take_outputs()
        for topic, _ in outputs:
            ensure_topic(self._application.log, topic)
        check()
        clock_ms = task.next_wall_clock_ms
        receipt = live.commit(plan.batch_id, positions, outputs, edges.blobs, None if clock_ms == NEVER else clock_ms)
        nodes, measures = task.state.take_figures()
        report = TaskReport(
            place.name,
            receipt,
            records,
            sum(len(written) for _, written in outputs),
            live.rows(),
            offsets=sum(positions[each.topic, each.partition] - each.start for each in ranges),
            changelogged=live.changelogged,
            counters=live.new_counts(),
            consumed={topic: count for topic, count in consumed.items() if count},
            produced={**edges.counts, **{topic: len(written) for topic, written in outputs}},
            nodes=nodes,
            measures=measures,
            late=task.state.late_samples.take(),
            restores=live.take_restores(),
            engines=live.engine_figures(),
            obsolete=live.obsolete(),
        )
        return TaskResult(edges.blobs, report)

    def _append(self, letters: Sequence[tuple[str, list[Output]]], check: Callable[[], None]) -> None:
        """Writes dead letters of a failing task at once: the batch that they belong to will not be committed."""
        if not letters:
            return
        check()
        for topic, outputs in letters:
            ensure_topic(self._application.log, topic)
            self._application.log.append(topic, outputs)

    def _with_global_counts(self, counters: Mapping[str, float]) -> Mapping[str, float]:
        """Adds what global tables have counted; the task that has brought them up to date reports it."""
        grown = {} if self._tables is None else self._tables.new_counts()
        return {name: counters.get(name, 0) + grown.get(name, 0) for name in {**counters, **grown}}

    def _global_stores(self, plan: Plan) -> Mapping[str, Any]:
        application = self._application
        if not application.layout.topology.global_stores:
            return {}
        if self._tables is None:
            self._tables = GlobalTables(application.layout, application.log, application.directory / "global")
        try:
            self._tables.catch_up(plan.global_ends, plan.now_ms)
        except BaseException:
            # Half of what was read may be in memory.
            tables, self._tables = self._tables, None
            tables.close()
            raise
        return self._tables.stores

    def close(self) -> None:
        """Closes all tasks and tables; what is committed gets into the working copies."""
        # One by one: if this is interrupted, it goes on with the next.
        while self._live:
            self._live.popitem()[1].close(write=True)
        self.close_standbys()
        if self._tables is not None:
            tables, self._tables = self._tables, None
            tables.close()


def has_work(place: TaskPlace, plan: Plan, blobs: Sequence[EdgeBlob]) -> bool:
    """Returns whether a task has anything to do in a micro-batch.

    Only plan and blobs decide it, so that every attempt, on whichever machine, comes to the same answer.
    """
    return place.name in plan.ranges or place.name in plan.due or bool(blobs)


def _counting(
    pages: Iterator[list[Raw]],
    counts: dict[TopicPartition, int],
    target: TopicPartition,
    between_pages: Callable[[], None],
) -> Iterator[list[Raw]]:
    for page in pages:
        counts[target] = counts.get(target, 0) + len(page)
        yield page
        between_pages()


def _pages(log: TopicLog, each: Range, on_loss: str) -> Iterator[list[Raw]]:
    start = each.start
    while start < each.end:
        try:
            found = log.read(each.topic, each.partition, start, each.end, max_bytes=_PAGE_BYTES)
        except OffsetOutOfRangeError as error:
            if on_loss == "fail" or start >= error.begin:
                raise
            # Retention was faster than we were. Of this range, "latest" leaves out what is left, too.
            lost_to = min(error.begin, each.end) if on_loss == "earliest" else each.end
            logger.warning("%s-%d: records %d to %d are gone unread", each.topic, each.partition, start, lost_to - 1)
            start = lost_to
            continue
        if not found:
            # Compaction or retention has removed the rest.
            break
        start = found[-1][0] + 1
        yield found
