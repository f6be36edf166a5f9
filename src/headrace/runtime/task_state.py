"""The moving parts of one task: its clocks, the record at hand, stores, cells, punctuations and counters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from headrace.config import StreamsConfig
from headrace.errors import StreamsError, UnknownStateStoreError, did_you_mean
from headrace.handlers import LateRecord
from headrace.operators.base import DECIDED, Cell
from headrace.processor import PunctuationType
from headrace.record import Headers as UserHeaders
from headrace.runtime.late_samples import LateSamples
from headrace.runtime.measures import Measure, Readings
from headrace.runtime.output_collector import Collector
from headrace.runtime.punctuation import PunctuationQueue, Schedule, first_deadline
from headrace.runtime.row_expiry import Expiries
from headrace.runtime.waiting_calls import WaitingCalls
from headrace.state import StoreBuilder
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.log import Headers, Raw

if TYPE_CHECKING:
    from headrace.runtime.error_handling import ErrorHandling


class Host(Protocol):
    """Host protocol: the calls that a task makes to the process that runs it."""

    def now_ms(self) -> int:
        """Returns the wall clock that user code sees."""
        ...

    def topic_name(self, topic: str) -> str:
        """Returns the name of a topic at run time: internal ones carry the application id."""
        ...

    def partitions_of(self, topic: str) -> int:
        """Returns how many partitions a topic has."""
        ...

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        """Returns where a store of this task keeps its bytes."""
        ...

    @property
    def global_stores(self) -> Mapping[str, Any]: ...


_NO_RECORD: Raw = (-1, -1, None, None, ())


class TaskState:
    """Shared by everything that belongs to one task; the record loop writes the first few attributes per record."""

    __slots__ = (
        "_close_actions",
        "_end_actions",
        "_global_stores",
        "_init_actions",
        "_now",
        "_punctuated",
        "_starting",
        "_stores",
        "cells",
        "collector",
        "config",
        "dropped",
        "expired",
        "expiries",
        "faults",
        "has_processors",
        "hit_ratios",
        "last_dead_letters",
        "late_records",
        "late_samples",
        "lateness",
        "node_counts",
        "offset",
        "origin",
        "partition",
        "partitions_of",
        "pipelined",
        "process_counts",
        "raw",
        "raw_origin",
        "remembered",
        "stream_punctuations",
        "stream_time_ms",
        "task_id",
        "topic_name",
        "waiting",
        "wall_punctuations",
    )

    faults: ErrorHandling

    def __init__(
        self,
        task_id: str,
        partition: int,
        config: StreamsConfig,
        host: Host,
        remembered: Mapping[str, Any],
    ) -> None:
        self.stream_time_ms: int = remembered.get("stream_time_ms", -1)
        self.origin: tuple[str, int] | None = None
        self.offset = -1
        self.raw: Raw = _NO_RECORD
        """The record read last, as it was read, for error handlers and dead letters."""
        self.raw_origin: tuple[str, int] | None = None
        """Where it was read."""
        self.task_id = task_id
        self.partition = partition
        self.pipelined = True
        self.config = config
        self.partitions_of = host.partitions_of
        self.topic_name = host.topic_name
        self.collector = Collector()
        self.last_dead_letters = Collector()
        """Dead letters of the failure that stops the task."""
        self.cells: dict[str, Cell] = {}
        self.remembered = remembered
        self.stream_punctuations = PunctuationQueue()
        self.wall_punctuations = PunctuationQueue()
        self.has_processors = False
        """Whether user code may schedule punctuations, at any time."""
        self.dropped = 0
        self.late_records = 0
        self.expired = 0
        """Rows whose time to live was over."""
        self.expiries = Expiries(self, remembered.get("expiries", {}))
        self.node_counts: dict[str, int] = {}
        """What rarely happens at nodes, since they were asked last, by what it was and the node's name."""
        # What is counted for every record, at the recording level DEBUG only: functions that take it away.
        self.process_counts: dict[str, Callable[[], int]] = {}
        """Records by node; sources have theirs in ``lateness``."""
        self.lateness: dict[str, Callable[[], Measure]] = {}
        """By source."""
        self.hit_ratios: dict[str, Callable[[], Measure]] = {}
        """Of caches, by store."""
        self.late_samples = LateSamples()
        self.waiting: tuple[WaitingCalls, ...] = ()
        """Calls that wait for batches of records, by stage."""
        self._punctuated = Readings()
        self._now = host.now_ms
        self._starting = True
        self._stores: dict[str, Any] = {}
        self._global_stores = host.global_stores
        self._init_actions: list[tuple[str, Callable[[], None]]] = []
        self._close_actions: list[tuple[str, Callable[[], None]]] = []
        self._end_actions: list[Callable[[], None]] = []

    @property
    def raw_at_hand(self) -> Raw:
        """The record at hand as it was read: of changes that were cached or buffered only the place is remembered."""
        return self.raw if self.raw_origin == self.origin and self.raw[0] == self.offset else _NO_RECORD

    def wall_clock_ms(self) -> int:
        return self._now()

    def add_store(self, name: str, store: Any) -> None:
        self._stores[name] = store

    @property
    def stores(self) -> Mapping[str, Any]:
        return self._stores

    def store(self, name: str) -> Any:
        """Returns a store of this task or a global one."""
        found = self._stores.get(name)
        if found is None:
            found = self._global_stores.get(name)
        if found is None:
            known = [*self._stores, *self._global_stores]
            message = f"task {self.task_id} has no store '{name}'{did_you_mean(name, known)}"
            raise UnknownStateStoreError(message)
        return found

    def is_global(self, name: str) -> bool:
        return name in self._global_stores

    def cell(self, key: str, default: Any) -> Cell:
        """Returns the cell of that key; a restarted task goes on with the value that was saved."""
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(self.remembered.get("cells", {}).get(key, default))
        return cell

    def drop(self) -> None:
        self.dropped += 1

    def late(
        self,
        node: str,
        key: Any,
        value: Any,
        timestamp_ms: int,
        headers: Headers,
        *,
        window: Any,
        close_time_ms: int,
    ) -> None:
        self.dropped += 1
        self.late_records += 1
        self.count_at("dropped", node)
        self.count_at("late", node)
        self.late_samples.add((node, key, value, timestamp_ms, window, close_time_ms, self.origin, self.offset))
        hook = self.config.on_late
        if hook is None:
            return
        topic, partition = self.origin or (None, -1)
        record = LateRecord(
            node=node,
            key=key,
            value=value,
            timestamp_ms=timestamp_ms,
            headers=UserHeaders(headers),
            window=window,
            close_time_ms=close_time_ms,
            topic=topic,
            partition=partition,
            offset=self.offset,
        )
        try:
            hook(record)
        except Exception as error:
            raise self.faults.hook_failed(node, "the hook on_late", error, hook) from error

    def count_at(self, what: str, node: str) -> None:
        """Counts something that rarely happens, at the node where it did."""
        name = f"{what}/{node}"
        self.node_counts[name] = self.node_counts.get(name, 0) + 1

    def take_figures(self) -> tuple[dict[str, int], dict[str, Measure]]:
        """Returns what nodes have counted and what was measured, each by what it was, and begins anew."""
        counts, self.node_counts = self.node_counts, {}
        lateness = {source: take() for source, take in self.lateness.items()}
        counts |= {f"process/{node}": grown for node, take in self.process_counts.items() if (grown := take())}
        counts |= {f"process/{source}": each.times for source, each in lateness.items() if each.times}
        measures = {
            "record-lateness": Measure.merged(lateness.values()),
            "punctuate-latency": self._punctuated.take(),
            **{f"hit-ratio/{store}": Measure.merged([take()]) for store, take in self.hit_ratios.items()},
        }
        return counts, {name: each for name, each in measures.items() if each is not None}

    def metrics(self) -> dict[str, float]:
        """Returns the task's counters under Kafka Streams' names."""
        return {
            "dropped-records-total": self.dropped,
            "late-records-total": self.late_records,
            "expired-rows-total": self.expired,
        }

    def schedule(
        self,
        key: str,
        node: str,
        interval_ms: int,
        clock: PunctuationType,
        callback: Callable[[int], None],
        start_ms: int | None,
    ) -> Schedule:
        """Adds a punctuation, at the deadline that was saved for it if the task was here before.

        Only what ``init`` schedules is saved: it alone is scheduled again, in the same order, when a task starts.
        """
        stream_time = clock is PunctuationType.STREAM_TIME
        now_ms = self.stream_time_ms if stream_time else self._now()
        deadline_ms = first_deadline(now_ms=now_ms, interval_ms=interval_ms, start_ms=start_ms, stream_time=stream_time)
        schedule = Schedule(key if self._starting else None, node, interval_ms, deadline_ms, callback)
        saved = self.remembered.get("punctuations", {}).get(schedule.key)
        if saved is not None:
            schedule.deadline_ms, schedule.cancelled = saved
        (self.stream_punctuations if stream_time else self.wall_punctuations).add(schedule)
        return schedule

    def punctuate_stream_time(self) -> bool:
        """Calls the stream-time punctuations that are due; unknown time fires nothing."""
        if self.stream_time_ms < 0:
            return False
        return self.stream_punctuations.punctuate(self.stream_time_ms, self.call)

    def run_waiting(self) -> None:
        """Completes all batches of records, and makes the calls that wait for them."""
        for waiting in self.waiting:
            waiting.run()

    def call(self, schedule: Schedule, now_ms: int) -> None:
        """Runs one punctuation, during which there is no record at hand, after all that records have caused."""
        self.run_waiting()
        at_hand = self.origin, self.offset
        self.origin, self.offset = None, -1
        begun = time.perf_counter()
        try:
            schedule.callback(now_ms)
        except DECIDED:
            raise
        except Exception as error:
            self.faults.punctuation_failed(schedule.node, error, now_ms)
        finally:
            self._punctuated.add((time.perf_counter() - begun) * 1000)
            self.origin, self.offset = at_hand

    def on_init(self, node: str, action: Callable[[], None]) -> None:
        self._init_actions.append((node, action))

    def on_close(self, node: str, action: Callable[[], None]) -> None:
        self._close_actions.append((node, action))

    def on_end(self, action: Callable[[], None]) -> None:
        self._end_actions.append(action)

    @property
    def end_actions(self) -> list[Callable[[], None]]:
        """What emits all that waits for a later record, from the sources down."""
        return self._end_actions

    def reverse_actions(self) -> None:
        self._init_actions.reverse()
        self._close_actions.reverse()
        self._end_actions.reverse()

    def run_init_actions(self) -> None:
        """Initialises the processors, from the sources down."""
        for node, action in self._init_actions:
            self.faults.guard("initialize", node, action)
        self._starting = False

    def run_close_actions(self) -> None:
        """Closes the processors, from the sources down; the first error is raised when all have been closed."""
        first: StreamsError | None = None
        for node, action in self._close_actions:
            try:
                self.faults.guard("close", node, action)
            except StreamsError as error:
                first = first or error
        if first is not None:
            raise first

    def snapshot(self) -> dict[str, Any]:
        """Returns what besides the stores decides later results: clocks, cells and punctuation deadlines."""
        return {
            "stream_time_ms": self.stream_time_ms,
            "cells": {key: cell.value for key, cell in self.cells.items()},
            "punctuations": {**self.stream_punctuations.snapshot(), **self.wall_punctuations.snapshot()},
            "expiries": self.expiries.snapshot(),
        }
