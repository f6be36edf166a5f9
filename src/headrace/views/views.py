"""``Views``: the stores of an application as this process keeps them, and every question that can be put to them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from headrace.config import StreamsConfig
from headrace.errors import (
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    RetriableError,
    StateStoreMigratedError,
    StreamsRebalancingError,
    UnknownStateStoreError,
    did_you_mean,
)
from headrace.serdes.base import resolved
from headrace.state.stores.read_only import ReadOnlyStore
from headrace.topics.log import TopicLog
from headrace.topics.partitioner import StreamPartitioner, partition_for
from headrace.topology.topology import Topology
from headrace.views.changelog_follower import ChangelogFollower, wall_clock_ms
from headrace.views.composite_stores import CompositeStore
from headrace.views.execution import run
from headrace.views.global_stores import WHOLE
from headrace.views.metadata import LagInfo
from headrace.views.position import Position
from headrace.views.queryable_store_types import StoreQueryParameters
from headrace.views.replica import Reader
from headrace.views.requests import StateQueryRequest
from headrace.views.results import FailureReason, QueryResult, StateQueryResult
from headrace.views.viewed_stores import Part, ViewedStore, task_counts, task_name, viewed_stores

logger = logging.getLogger(__name__)

R = TypeVar("R")
F = TypeVar("F", bound=ReadOnlyStore)

_WATCHED_S = 0.005
"""How long the thread waits for records at most while a query waits for a position."""
_UNWATCHED_S = 0.1
_LONGEST_WAIT_S = 0.1
_RETRY_S = 1.0
"""Pause after a failure that may be over soon."""


class Views:
    """Replicas of the stores of one application, kept from their changelogs; made, then stepped or started.

    ``start`` follows the log in a thread; who has a loop of its own calls ``step``. Any thread may ask. ``tasks`` are
    what is kept, by default all; with ``keep_unassigned`` the files stay as they are until ``assign`` says it.
    ``is_active`` tells whether this process is the one to be asked for a task; by default it is.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        log: TopicLog,
        directory: Path,
        *,
        tasks: Collection[str] | None = None,
        is_active: Callable[[str], bool] | None = None,
        clock: Callable[[], int] = wall_clock_ms,
        keep_unassigned: bool = False,
    ) -> None:
        self.stores: Mapping[str, ViewedStore] = viewed_stores(topology, config.application_id)
        """The stores that can be asked, by name."""
        self.config = config
        self._all_stores = {*topology.state_stores, *topology.global_stores}
        self._tail = ChangelogFollower(topology, config, log, self.stores, directory, clock=clock)
        self._is_active = is_active or _always
        self.tasks = task_counts(self.stores, self._tail.partitions)
        """All tasks that have stores, and what they have of them."""
        self._moved = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._waiters = 0
        if not keep_unassigned:
            self.assign(self.tasks if tasks is None else tasks)

    def assign(self, tasks: Iterable[str]) -> None:
        """Sets the tasks whose stores are kept; only before ``start``, or between calls of ``step``."""
        self._tail.keep(part for task in tasks for part in self.tasks[task])

    def partitions_of(self, store: str) -> int:
        """Returns how many partitions a store has, here or elsewhere."""
        return self._tail.partitions[self.viewed(store).topic]

    def viewed(self, name: str) -> ViewedStore:
        """Returns a store, or says which there are."""
        found = self.stores.get(name)
        if found is not None:
            return found
        if name in self._all_stores:
            message = (
                f"store '{name}' cannot be queried: it has no changelog topic, or is of a class of your own; give it a "
                "name of its own by Materialized(…), and leave its logging enabled"
            )
            raise UnknownStateStoreError(message)
        known = ", ".join(sorted(self.stores)) or "none"
        message = f"there is no store '{name}'; stores that can be queried: {known}{did_you_mean(name, self.stores)}"
        raise UnknownStateStoreError(message)

    def step(self) -> bool:
        """Reads records committed since the last step; True if there are more."""
        more = self._tail.step()
        with self._moved:
            self._moved.notify_all()
        return more

    def catch_up(self) -> None:
        """Reads until there is no more."""
        while self.step():
            pass

    def start(self) -> None:
        """Follows the log in a thread, until ``close``."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="headrace-views", daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    if not self.step():
                        self.wait_for_changes(_UNWATCHED_S)
                except RetriableError as error:
                    logger.warning("views of '%s' will try again: %s", self.config.application_id, error)
                    self._stopping.wait(_RETRY_S)
        except BaseException as error:
            if not self._stopping.is_set():
                logger.exception("views of application '%s' are not kept any more", self.config.application_id)
                self._failure = error
        finally:
            with self._moved:
                self._moved.notify_all()

    def wait_for_changes(self, seconds: float) -> bool:
        """Waits until there are records to read; for callers of ``step``."""
        # A position can move although no store changes, so whoever waits for one wants a look now and then.
        return self._tail.wait(min(seconds, _WATCHED_S) if self._waiters else seconds)

    def wait_until(self, holds: Callable[[], bool], timeout: timedelta) -> bool:
        """Waits until something holds that steps can change; False when the time is over."""
        deadline = time.monotonic() + timeout.total_seconds()
        with self._moved:
            self._waiters += 1
            try:
                while not holds():
                    self._check_failure()
                    left = deadline - time.monotonic()
                    if left <= 0 or self.is_closed:
                        return False
                    self._moved.wait(min(left, _LONGEST_WAIT_S))
                return True
            finally:
                self._waiters -= 1

    def wait_for(self, position: Position, timeout: timedelta) -> bool:
        """Waits until everything that follows from a position is here; False when the time is over."""
        return self.position.covers(position) or self.wait_until(lambda: self.position.covers(position), timeout)

    def _check_failure(self) -> None:
        if self._failure is not None:
            message = f"the views of application '{self.config.application_id}' have failed: {self._failure}"
            raise InvalidStateStoreError(message) from self._failure

    @property
    def position(self) -> Position:
        """Input offsets of the application that the rows here reflect."""
        return self._tail.replica.state.position

    @property
    def global_position(self) -> Position:
        """How far the topics of global stores have been read."""
        return Position.consumed(
            {
                (self.stores[name].topic, partition): state.offset
                for (name, partition), state in self._tail.replica.state.parts.items()
                if self.stores[name].is_global
            }
        )

    @property
    def has_failed(self) -> bool:
        """Whether they are not kept any more, because something went wrong."""
        return self._failure is not None

    @property
    def is_closed(self) -> bool:
        return self._tail.replica.is_closed

    def is_ready(self, task: str) -> bool:
        """Returns whether the stores of a task are at the end of a commit."""
        return self._tail.is_ready(self.tasks[task])

    def held_tasks(self) -> dict[str, int]:
        """Returns the tasks that are kept here, and how many changes each is behind."""
        lags = self.lags()
        return {
            task: sum(lags[store][partition].offset_lag for store, partition in parts)
            for task, parts in self.tasks.items()
            if all(partition in lags.get(store, {}) for store, partition in parts)
        }

    def lags(self) -> dict[str, dict[int, LagInfo]]:
        """Returns how far each partition of each store is behind its changelog."""
        return self._tail.lags()

    def close(self) -> None:
        """Stops following, and gives the files back."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._tail.close()
        with self._moved:
            self._moved.notify_all()

    def partition_of(self, name: str, key: Any, partitioner: StreamPartitioner | None = None) -> int:
        """Returns the partition in which a store has a key: by its hash, or by the partitioner of the topic."""
        store = self.viewed(name)
        count = self.partitions_of(name)
        if partitioner is not None:
            found = partitioner(store.topic, key, None, count)
            if isinstance(found, int):
                return found
            if found is not None:
                message = f"store '{name}': the partitioner must name one partition, got {found!r}"
                raise InvalidStateStorePartitionError(message)
        serde = resolved(store.builder.key_serde, self.config.default_key_serde)
        return partition_for(serde.serializer(store.topic, is_key=True)(key), count)

    def store(self, parameters: StoreQueryParameters[F]) -> F:
        """Returns the interface of a store across its partitions; it stays valid until the views are closed."""
        store, wanted = self.viewed(parameters.store_name), parameters.queryable_store_type
        if not wanted.accepts(store.builder):
            message = (
                f"store '{store.name}' is a {store.kind.replace('_', ' ')} store, which {wanted.name}() does not fit; "
                f"it fits {', '.join(sorted(each.replace('_', ' ') for each in wanted.kinds))} stores"
            )
            raise InvalidStateStoreError(message)
        across = CompositeStore(
            self, store, wanted, partition=parameters.partition, stale=parameters.stale_stores_enabled
        )
        # A partition that is not here is told at once.
        self.reading_parts(store.name, parameters.partition, stale=parameters.stale_stores_enabled)[0].release()
        return wanted.create(across)

    def reading_parts(self, name: str, partition: int | None, *, stale: bool) -> tuple[Reader, list[Part]]:
        """Returns a reader, and the parts of a store that it may read; raises if there are none."""
        self._check_failure()
        store = self.stores[name]
        reader = self._tail.replica.acquire()
        try:
            parts = self._readable(reader, store, partition, stale=stale)
        except BaseException:
            reader.release()
            raise
        return reader, parts

    def _readable(self, reader: Reader, store: ViewedStore, partition: int | None, *, stale: bool) -> list[Part]:
        count, states = self.partitions_of(store.name), reader.state.parts
        if store.is_global:
            if not stale and not all(states[store.name, each].ready for each in range(count)):
                message = f"global store '{store.name}' is being read; ask again, or enable stale stores"
                raise StreamsRebalancingError(message)
            return [(store.name, WHOLE)]
        if partition is not None and not 0 <= partition < count:
            message = f"store '{store.name}' has partitions 0 to {count - 1}; partition {partition} was asked for"
            raise InvalidStateStorePartitionError(message)
        wanted = range(count) if partition is None else [partition]
        here = [(store.name, each) for each in wanted if (store.name, each) in states]
        found = [part for part in here if stale or (states[part].ready and self._is_active(task_name(store, part[1])))]
        if found:
            return found
        if here:
            message = (
                f"store '{store.name}': what is here is a standby, or still catching up; ask the active instance, or "
                "enable stale stores"
            )
            raise StreamsRebalancingError(message)
        which = "no partition" if partition is None else f"not partition {partition}"
        message = f"store '{store.name}': {which} is here; query_metadata_for_key() says who has it"
        raise StateStoreMigratedError(message)

    def query(self, request: StateQueryRequest[R]) -> StateQueryResult[R]:
        """Answers a request, partition by partition, all of them as of the same moment."""
        self._check_failure()
        store = self.viewed(request.store_name)
        bound = request.position_bound
        if request.wait and not bound.is_unbounded and not request.is_require_active and not store.is_global:
            self.wait_for(bound.position, request.wait)
        result: StateQueryResult[R] = StateQueryResult()
        with self._tail.replica.reading() as reader:
            if store.is_global:
                result.set_global_result(self._ask_global(request, reader, store))
            elif request.is_all_partitions:
                for part in reader.state.parts:
                    if part[0] == store.name:
                        result.add_result(part[1], self._ask(request, reader, store, part[1]))
            else:
                for each in sorted(request.partitions):
                    result.add_result(each, self._ask(request, reader, store, each))
        return result

    def _ask_global(self, request: StateQueryRequest[R], reader: Reader, store: ViewedStore) -> QueryResult[R]:
        at = {
            (store.topic, part[1]): state.offset for part, state in reader.state.parts.items() if part[0] == store.name
        }
        position = Position.consumed(at)
        if not position.covers(request.position_bound.position):
            return QueryResult.not_up_to_bound(position, request.position_bound, WHOLE)
        return self._run_timed(request, reader, (store.name, WHOLE), position)

    def _ask(self, request: StateQueryRequest[R], reader: Reader, store: ViewedStore, partition: int) -> QueryResult[R]:
        part = (store.name, partition)
        state = reader.state.parts.get(part)
        if state is None:
            count = self.partitions_of(store.name)
            if not 0 <= partition < count:
                message = f"store '{store.name}' has {count} partitions, so there is no partition {partition}"
                return QueryResult.for_failure(FailureReason.DOES_NOT_EXIST, message)
            message = f"partition {partition} of store '{store.name}' is on another instance"
            return QueryResult.for_failure(FailureReason.NOT_PRESENT, message)
        # A copy that is in the middle of a backlog has no position yet.
        position = reader.state.position if state.ready else Position()
        if request.is_require_active:
            if not state.ready or not self._is_active(task_name(store, partition)):
                message = f"partition {partition} of store '{store.name}' is here, but not as the active one"
                return QueryResult.for_failure(FailureReason.NOT_ACTIVE, message)
        elif not position.covers(request.position_bound.position):
            return QueryResult.not_up_to_bound(position, request.position_bound, partition)
        return self._run_timed(request, reader, part, position)

    def _run_timed(
        self, request: StateQueryRequest[R], reader: Reader, part: Part, position: Position
    ) -> QueryResult[R]:
        begun = time.perf_counter_ns()
        answer: QueryResult[R] = run(request.query, reader, part)
        answer.set_position(position)
        if request.execution_info_enabled:
            taken = (time.perf_counter_ns() - begun) // 1000
            answer.add_execution_info(
                f"{type(request.query).__name__} on partition {part[1]} of '{part[0]}': {taken} µs"
            )
        return answer


def _always(_task: str) -> bool:
    return True
