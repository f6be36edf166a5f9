"""A task: the nodes of one sub-topology (or of several) on one partition, with their stores and clocks.

The host hands over records per input partition, says when to go on, and takes away outputs and changes of state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from headrace.config import StreamsConfig
from headrace.errors import ProcessorStateError, SerializationError, StreamsError
from headrace.operators.base import Edge
from headrace.runtime.debug_metrics import count_hits
from headrace.runtime.error_handling import ErrorHandling
from headrace.runtime.lowering import AnyNode, Lowering
from headrace.runtime.merging import merge_by_time
from headrace.runtime.punctuation import NEVER
from headrace.runtime.queues import RecordQueue
from headrace.runtime.sources import SourceCodec
from headrace.runtime.task_clock import by_own_clock
from headrace.runtime.task_state import Host, TaskState
from headrace.runtime.tie_heap import TieHeap
from headrace.state import CacheBudget, StoreBuilder, TimeToLive
from headrace.state.engines.overlay import OverlayEngine
from headrace.topics.log import Output, Raw
from headrace.topology.nodes import SourceNode


class TaskId(NamedTuple):
    """Sub-topology and partition; prints as Kafka Streams prints it.

    >>> str(TaskId(0, 3))
    '0_3'
    >>> TaskId.parse("0_3")
    TaskId(subtopology=0, partition=3)
    """

    subtopology: int
    partition: int

    @classmethod
    def parse(cls, name: str) -> TaskId:
        """Returns the id that prints so."""
        subtopology, partition = name.split("_")
        return cls(int(subtopology), int(partition))

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class Task:
    """Runs records through closures; see ``process_one`` and ``process_all`` for the two ways to be fed."""

    def __init__(
        self,
        task_id: TaskId,
        nodes: Sequence[AnyNode],
        children: Mapping[str, Sequence[str]],
        store_builders: Iterable[StoreBuilder],
        config: StreamsConfig,
        host: Host,
        remembered: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = task_id
        self.state = TaskState(str(task_id), task_id.partition, config, host, remembered or {})
        self.state.faults = ErrorHandling(self.state)
        self._partition_times: dict[tuple[str, int], int] = dict((remembered or {}).get("partition_times", {}))
        self._engines: dict[str, OverlayEngine] = {}
        self._open_stores(store_builders, host)
        self._sources = {node.name: node for node in nodes if isinstance(node, SourceNode)}
        self._edges: dict[str, Edge] = Lowering(nodes, children, self.state).sources()
        self._queues: dict[tuple[str, int], RecordQueue] = {}
        self._upstreams: dict[tuple[str, int], dict[TaskId, list[Iterable[Sequence[Raw]]]]] = {}
        self._ready = TieHeap[RecordQueue]()
        self.consumed: dict[tuple[str, int], int] = {}
        """Offset of the last record processed, by topic and partition."""
        self._commit_needed = False
        self.state.run_init_actions()

    def _open_stores(self, builders: Iterable[StoreBuilder], host: Host) -> None:
        config = self.state.config
        budget = CacheBudget(config.statestore_cache_max_bytes)
        for builder in builders:
            engine = host.engine(str(self.id), builder)
            self._engines[builder.name] = engine
            store = builder.build(
                engine,
                cache_budget=budget,
                task=self.state,
                default_key_serde=config.default_key_serde,
                default_value_serde=config.default_value_serde,
                topic=f"{config.application_id}-{builder.name}-changelog",
            )
            if store.cached and config.metrics_recording_level != "INFO":
                take = count_hits(store, engine)
                if take is not None:
                    self.state.hit_ratios[builder.name] = take
            self.state.add_store(builder.name, store)
            if builder.ttl is not None:
                self._index(builder, builder.ttl, store, host)

    def _index(self, builder: StoreBuilder, ttl: TimeToLive, store: Any, host: Host) -> None:
        engine = host.engine(str(self.id), builder.index())
        # Whoever ran without a time to live since then has left the index behind.
        index = store.index_by_time(engine, kept=self.state.expiries.was_kept(store.name))
        self._engines[index.name] = engine
        self.state.add_store(index.name, index)
        self.state.expiries.add(store, index, ttl)

    @property
    def stores(self) -> Mapping[str, Any]:
        """The stores by name, in the order in which their caches are flushed."""
        return self.state.stores

    def add_partition(self, source: str, topic: str, partition: int) -> None:
        """Makes a partition of a topic an input of the task, through the source node of that name."""
        origin = (topic, partition)
        if origin in self._queues:
            return
        codec = SourceCodec(self._sources[source], origin, self.state)
        queue = RecordQueue(origin, codec, self._edges[source])
        queue.partition_time_ms = self._partition_times.get(origin, -1)
        self._queues[origin] = queue
        for rank, known in enumerate(sorted(self._queues)):
            self._queues[known].rank = rank

    def add_records(self, topic: str, partition: int, records: Iterable[Raw], *, resumes_ms: int | None = None) -> None:
        """Queues records of one input partition; see ``add_pages``."""
        self.add_pages(topic, partition, (list(records),), resumes_ms=resumes_ms)

    def add_pages(
        self, topic: str, partition: int, pages: Iterable[Iterable[Raw]], *, resumes_ms: int | None = None
    ) -> None:
        """Queues records of one input partition that are fetched page by page, each when it is needed.

        ``resumes_ms``: the log has further records of this partition, and the next one is not older than that. When
        these are used up the task goes on only with older ones of its other inputs, which so never run ahead.
        """
        queue = self._queues[topic, partition]
        was_empty = queue.head is None
        queue.add(pages)
        queue.resumes_ms = resumes_ms
        if was_empty and queue.advance():
            self._offer(queue)

    def add_upstream_pages(self, topic: str, partition: int, upstream: TaskId, pages: Iterable[Sequence[Raw]]) -> None:
        """Keeps records that another task has sent over a repartition edge, for ``process_all`` to merge by time."""
        self._upstreams.setdefault((topic, partition), {}).setdefault(upstream, []).append(pages)

    def _merge_upstreams(self) -> None:
        for (topic, partition), parts in self._upstreams.items():
            self._queues[topic, partition].is_sent = True
            by_sender = [chain.from_iterable(parts[upstream]) for upstream in sorted(parts)]
            self.add_pages(topic, partition, merge_by_time(by_sender))
        self._upstreams.clear()

    def _offer(self, queue: RecordQueue) -> None:
        assert queue.head is not None, "only queues with a head compete"
        self._ready.offer(queue.head.timestamp_ms, queue)

    def has_source(self, source: str) -> bool:
        """Returns whether the source node of that name is one of the task's."""
        return source in self._sources

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Topic and partition of every input."""
        return tuple(self._queues)

    @property
    def has_records(self) -> bool:
        return len(self._ready) > 0

    def wall_clock_ms(self) -> int:
        """Returns what time it is for the host."""
        return self.state.wall_clock_ms()

    @by_own_clock
    def process_one(self) -> bool:
        """Processes the record with the smallest timestamp among the heads; returns whether there was one."""
        if not self._ready:
            return False
        queue = self._ready.poll()
        head = queue.take()
        # The next head is decoded before this record is processed, as Kafka Streams does it.
        if queue.advance():
            self._offer(queue)
        state, raw = self.state, head.raw
        state.origin, state.offset, state.raw_origin, state.raw = queue.origin, raw[0], queue.origin, raw
        if head.timestamp_ms > state.stream_time_ms:
            state.stream_time_ms = head.timestamp_ms
        self._commit_needed = True
        if state.expiries.follow_stream_time:
            state.expiries.before_record(state.stream_time_ms)
        queue.edge(head.key, head.value, head.timestamp_ms, raw[4])
        self.consumed[queue.origin] = raw[0]
        return True

    @by_own_clock
    def process_all(self) -> None:
        """Processes what is queued, smallest timestamp first, ties by topic and partition, until an input runs dry.

        Between two heads of other inputs a queue is drained in one go; with a single input that is a plain loop.
        """
        self._merge_upstreams()
        queues = [queue for queue in self._queues.values() if queue.head is not None]
        # Inputs that have run dry although the log has more of them: nobody may get ahead of where they resume.
        horizon_ms = min((queue.horizon_ms for queue in self._queues.values() if queue.head is None), default=NEVER)
        self._ready = TieHeap()
        while queues:
            if len(queues) == 2:
                _order_pair(queues)
            else:
                queues.sort(key=_head_and_rank)
            queue = queues[0]
            assert queue.head is not None, "only queues with a head compete"
            if queue.head.timestamp_ms >= horizon_ms:
                # What can be read again waits; what was sent for this batch is processed in it, whatever its time.
                queues = [queue for queue in queues if queue.is_sent]
                horizon_ms = NEVER
                continue
            self._commit_needed = True
            bound_ms = horizon_ms
            if len(queues) > 1:
                other = queues[1]
                assert other.head is not None, "only queues with a head compete"
                # At equal times the queue of the lower rank goes first.
                bound_ms = min(bound_ms, other.head.timestamp_ms + (queue.rank < other.rank))
            drained = queue.drain(self.state) if bound_ms == NEVER else queue.drain_before(self.state, bound_ms)
            self.consumed[queue.origin] = drained
            if queue.head is None:
                queues.pop(0)
                horizon_ms = min(horizon_ms, queue.horizon_ms)
        for queue in self._queues.values():
            if queue.head is not None:
                self._offer(queue)

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Returns the offset of the first record of an input that is queued and not processed, or None."""
        return self._queues[topic, partition].next_offset()

    def queued(self, topic: str, partition: int) -> int:
        """Returns how many records of an input were fetched and not processed."""
        queue = self._queues[topic, partition]
        return len(queue.raw) + (queue.head is not None)

    def drop_queued(self) -> None:
        """Forgets records that were queued and not processed: whoever fed them feeds them again."""
        self._ready = TieHeap()
        for queue in self._queues.values():
            assert queue.head is None or not queue.is_sent, "what other tasks have sent is processed in its batch"
            queue.clear()

    @by_own_clock
    def punctuate_stream_time(self) -> bool:
        """Calls the stream-time punctuations that are due."""
        called = self.state.punctuate_stream_time()
        self._commit_needed |= called
        return called

    @by_own_clock
    def punctuate_wall_clock(self) -> bool:
        """Deletes rows that are over by the wall clock, and calls the punctuations that are due, each at most once."""
        now_ms = self.state.wall_clock_ms()
        called = self.state.expiries.tick(now_ms)
        called |= self.state.wall_punctuations.punctuate(now_ms, self.state.call)
        self._commit_needed |= called
        return called

    @property
    def next_wall_clock_ms(self) -> int:
        """When the next wall-clock punctuation is due, or the next row is over by the wall clock."""
        return min(self.state.wall_punctuations.next_ms, self.state.expiries.next_wall_clock_ms)

    @by_own_clock
    def commit(self) -> None:
        """Ends a commit interval: batches and caches are flushed, which may forward, and writes reach the engines."""
        if not self._commit_needed:
            return
        self._commit_needed = False
        if self.state.waiting:
            self.state.run_waiting()
            # What waited may have scheduled punctuations.
            self.state.punctuate_stream_time()
            self.state.run_waiting()
        stores = self.state.stores.values()
        self._flush_caches(stores)
        for store in stores:
            try:
                store.flush_writes()
            except SerializationError as error:
                # Keys are written here: those of a wrong type are found only now.
                message = f"task {self.id}: saving store '{store.name}' failed: {error}"
                raise ProcessorStateError(message) from error
            store.position.update(self.consumed)

    @by_own_clock
    def close_windows(self) -> None:
        """Emits what waits for a later record, because none will come: windows, suppressed changes, lonely records.

        To be followed by ``close``: what was late before would not be late any more.
        """
        self.commit()
        for action in self.state.end_actions:
            action()
            self._commit_needed = True
            self.commit()

    def forget_volatile(self) -> None:
        """Makes stores forget what they keep in memory only, so that a task that starts anew now would go on alike."""
        for store in self.state.stores.values():
            store.forget_volatile()

    def _flush_caches(self, stores: Iterable[Any]) -> None:
        cached = [store for store in stores if store.cached]
        # A flush may dirty a store that comes earlier in the order, so it is repeated until nothing is left.
        while any(store.dirty for store in cached):
            for store in cached:
                try:
                    store.flush_cache()
                except Exception as error:
                    message = f"task {self.id}: flushing the cache of store '{store.name}' failed: {error}"
                    cause = error.__cause__ if isinstance(error, StreamsError) and error.__cause__ else error
                    raise ProcessorStateError(message) from cause
                self.state.run_waiting()

    def take_outputs(self, is_wanted: Callable[[str, int], bool] | None = None) -> list[tuple[str, list[Output]]]:
        """Takes away what the sinks wrote, topics in the order of their first record.

        ``is_wanted`` chooses among the topics, by their names and how many records there are.
        """
        return self.state.collector.drain(is_wanted)

    def take_failure_dead_letters(self) -> list[tuple[str, list[Output]]]:
        """Takes away the dead letters of the failure that stopped the task: the only output of it that counts."""
        return self.state.last_dead_letters.drain()

    def engines(self) -> Mapping[str, OverlayEngine]:
        """Returns the engines of the stores by name: their changes are the task's changes of state."""
        return self._engines

    def remember(self) -> dict[str, Any]:
        """Returns what besides the stores decides later results, to be given to the task's next incarnation."""
        times = {origin: queue.partition_time_ms for origin, queue in self._queues.items()}
        return {**self.state.snapshot(), "partition_times": {**self._partition_times, **times}}

    def close(self) -> None:
        """Closes processors, then stores: all of them, even if a processor's close raises."""
        self.state.origin, self.state.offset = None, -1
        try:
            self.state.run_close_actions()
        finally:
            for store in self.state.stores.values():
                store.close()


def _order_pair(queues: list[RecordQueue]) -> None:
    """The same as sorting, for the two inputs of a join, which take turns all the time."""
    first, second = queues
    assert first.head is not None, "only queues with a head compete"
    assert second.head is not None, "only queues with a head compete"
    first_ms, second_ms = first.head[0], second.head[0]
    if second_ms < first_ms or (second_ms == first_ms and second.rank < first.rank):
        queues.reverse()


def _head_and_rank(queue: RecordQueue) -> tuple[int, int]:
    assert queue.head is not None, "only queues with a head compete"
    return queue.head.timestamp_ms, queue.rank
