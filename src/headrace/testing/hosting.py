"""An in-process host for tasks: topics as lists, stores in memory or on disk, a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.arguments.values import text, whole_number
from headrace.config import StreamsConfig
from headrace.errors import TopologyError, did_you_mean
from headrace.record import RecordMetadata
from headrace.runtime.gc_pause import collector_paused
from headrace.runtime.global_task import make_global_task
from headrace.runtime.serde_defaults import key_serde, value_serde
from headrace.runtime.task import Task, TaskId
from headrace.serdes import Serde
from headrace.state import Changes, DiskEngine, MemoryEngine, OverlayEngine, StoreBuilder
from headrace.state.engines.environment import Environment, disk_engine, open_environment
from headrace.testing.record_checks import check_raw
from headrace.topics.log import Output, Raw
from headrace.topics.partitioner import partition_for
from headrace.topology.levels import Level, forward_edges, levels
from headrace.topology.nodes import SinkNode, SourceNode
from headrace.topology.topology import Topology

Written = Callable[[str, Sequence[Output]], None]


class LocalHost:
    """Hosts the tasks of one topology.

    With ``by_subtopology`` there is a task per sub-topology and partition, as on Spark; otherwise one task runs the
    whole topology on one partition, as Kafka's test driver does.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        wall_clock_ms: int,
        *,
        partitions: int | Mapping[str, int] | None,
        by_subtopology: bool,
        state_dir: Path | None,
        written: Written,
    ) -> None:
        self.wall_clock_ms = wall_clock_ms
        self._topology = topology
        self._config = config
        self._state_dir = state_dir
        self._written = written
        self._environments: dict[tuple[str, DiskEngine], Environment] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._logged: list[tuple[int, int, Any, Changes]] = []
        self._pending: dict[tuple[str, int], list[Raw]] = {}
        self._routes: dict[tuple[str, int], Task] = {}
        self._global_topics = {store.topic for store in topology.global_stores.values()}
        self._changelogs = {
            name: topic
            for name, topic in topology.changelog_topics(config.application_id).items()
            if name in topology.store_builders and topology.store_builders[name].logging
        }
        self._partition_counts = self._count_partitions(partitions)
        self.global_stores: Mapping[str, Any] = {}
        self._global_task = make_global_task(topology, config, self)
        if self._global_task is not None:
            self.global_stores = self._global_task.stores
        self._levels = levels(topology)
        # In a batch these go from task to task; everything else is read by the next batch.
        self._edges = {self.topic_name(topic) for topic in forward_edges(topology)}
        self._tasks = self._make_tasks(by_subtopology=by_subtopology)

    def now_ms(self) -> int:
        return self.wall_clock_ms

    def topic_name(self, topic: str) -> str:
        return self._topology.full_topic_name(topic, self._config.application_id)

    def partitions_of(self, topic: str) -> int:
        return self._partition_counts.get(topic, self._default_partitions)

    def engine(self, task_id: str, builder: StoreBuilder) -> OverlayEngine:
        kind = disk_engine(builder, self._config)
        if self._state_dir is None or kind is None:
            return OverlayEngine(MemoryEngine())
        environment = self._environments.get((task_id, kind))
        if environment is None:
            directory = self._state_dir / self._config.application_id / task_id / kind
            environment = self._environments[task_id, kind] = open_environment(kind, directory, self._config)
        return OverlayEngine(environment.engine(builder.name))

    def _count_partitions(self, partitions: int | Mapping[str, int] | None) -> dict[str, int]:
        self._default_partitions = 1
        if partitions is not None and not isinstance(partitions, Mapping):
            self._default_partitions = whole_number(partitions, "TopologyTestDriver: partitions", minimum=1)
        given = dict(partitions) if isinstance(partitions, Mapping) else {}
        external = {
            topic: given.get(topic, self._default_partitions)
            for source in self._topology.source_nodes
            for topic in source.topics
            if not self._topology.is_internal(topic)
        }
        self._check_partitioned(given)
        counted = self._topology.partition_counts({**given, **external})
        return {**given, **{self.topic_name(topic): count for topic, count in counted.items()}}

    def _check_partitioned(self, given: Mapping[str, int]) -> None:
        """Complains about a partition count for a topic that the topology neither reads nor writes."""
        if any(sink.topic_extractor is not None for sink in self._topology.sink_nodes):
            return
        sources = self._topology.source_nodes
        read = {topic for source in sources for topic in source.topics if not self._topology.is_internal(topic)}
        known = read | self.sink_topics() | self._global_topics
        for topic in given:
            if topic not in known and not any(source.reads(topic) for source in sources):
                message = (
                    f"partitions: the topology neither reads nor writes the topic '{topic}' "
                    f"(its topics: {', '.join(sorted(known))}){did_you_mean(topic, known)}"
                )
                raise TopologyError(message)

    def sink_topics(self) -> set[str]:
        """Returns the topics that sinks write, as far as they are known beforehand."""
        return {self.topic_name(sink.topic) for sink in self._topology.sink_nodes if sink.topic is not None}

    def input_serdes(self, topic: str) -> tuple[Serde[Any], Serde[Any]]:
        """Returns the serdes with which the topology reads a topic."""
        found = self._topology.global_store_for(topic)
        source = self._topology.source_for(topic) if found is None else self._topology.nodes[found.source]
        node = source if isinstance(source, SourceNode) else None
        return self._serdes(node)

    def output_serdes(self, topic: str) -> tuple[Serde[Any], Serde[Any]]:
        """Returns the serdes with which the topology writes a topic."""
        sinks = self._topology.sink_nodes
        named = (sink for sink in sinks if sink.topic is not None and self.topic_name(sink.topic) == topic)
        return self._serdes(next(named, None))

    def _serdes(self, node: SourceNode | SinkNode | None) -> tuple[Serde[Any], Serde[Any]]:
        if node is None:
            return self._config.default_key_serde, self._config.default_value_serde
        return key_serde(node.key_serde, self._config), value_serde(node.value_serde, self._config)

    def waiting(self) -> int:
        """Returns how many records wait for a commit."""
        return sum(map(len, self._pending.values()))

    def discard(self) -> None:
        """Forgets the records that wait for a commit."""
        self._pending.clear()

    def _make_tasks(self, *, by_subtopology: bool) -> list[Task]:
        parts = [part for part in self._topology.subtopologies() if not part.is_global]
        if not by_subtopology:
            local = {name for part in parts for name in part.nodes}
            nodes = [name for name in self._topology.nodes if name in local]
            if not nodes:
                return []
            whole = self._make_task(0, 0, nodes, self._topology.state_stores)
            # All that a record causes is done before the next one is taken.
            whole.state.pipelined = False
            return [whole]
        tasks = []
        for part in parts:
            topics = [self.topic_name(topic) for topic in part.source_topics]
            count = max((self.partitions_of(topic) for topic in topics), default=self._default_partitions)
            tasks += [self._make_task(part.id, partition, part.nodes, part.state_stores) for partition in range(count)]
        return tasks

    def _make_task(self, subtopology: int, partition: int, names: Iterable[str], stores: Iterable[str]) -> Task:
        topology = self._topology
        nodes = [topology.nodes[name] for name in names]
        builders = [topology.store_builders[store] for store in stores]
        task = Task(TaskId(subtopology, partition), nodes, topology.children, builders, self._config, self)
        for node in nodes:
            if isinstance(node, SourceNode):
                for topic in map(self.topic_name, node.topics):
                    if partition < self.partitions_of(topic):
                        task.add_partition(node.name, topic, partition)
                        self._routes[topic, partition] = task
        return task

    def check_input(self, topic: str) -> None:
        """Complains about a topic that the topology does not read."""
        text(topic, "the name of an input topic")
        if topic in self._global_topics or self._route(topic, 0) is not None:
            return
        known = sorted({name for name, _ in self._routes} | self._global_topics)
        message = (
            f"the topology does not read the topic '{topic}' (it reads: {', '.join(known) or 'none'})"
            f"{did_you_mean(topic, known)}"
        )
        raise TopologyError(message)

    def _route(self, topic: str, partition: int) -> Task | None:
        """Finds the task that reads a partition; one that matches a pattern becomes an input when it is seen."""
        task = self._routes.get((topic, partition))
        if task is not None or topic in self._global_topics:
            return task
        source = self._topology.source_for(topic)
        if source is None or source.pattern is None:
            return None
        for candidate in self._tasks:
            if candidate.has_source(source.name) and candidate.id.partition == partition:
                candidate.add_partition(source.name, topic, partition)
                self._routes[topic, partition] = candidate
                return candidate
        return None

    def write(self, topic: str, outputs: Sequence[Output]) -> RecordMetadata:
        """Appends records to a topic, hands them to whoever reads it, and returns where the last one went."""
        self.check_input(topic)
        count = self.partitions_of(topic)
        for output in outputs:
            check_raw(topic, output, count)
        return self._append(topic, self._with_partitions(topic, outputs))

    def _append(self, topic: str, outputs: Sequence[Output], sender: TaskId | None = None) -> RecordMetadata:
        """Gives every record its offset and queues it for the task that reads its partition."""
        last = RecordMetadata(topic, -1, -1)
        for partition in dict.fromkeys(output[0] or 0 for output in outputs):
            mine = (
                [output for output in outputs if output[0] == partition] if self.partitions_of(topic) > 1 else outputs
            )
            origin = (topic, partition)
            base = self._offsets.get(origin, 0)
            self._offsets[origin] = base + len(mine)
            raws = [
                (offset, timestamp_ms, key, value, headers)
                for offset, (_, timestamp_ms, key, value, headers) in enumerate(mine, base)
            ]
            last = RecordMetadata(topic, partition, base + len(mine) - 1)
            reader = self._route(topic, partition)
            if reader is not None and sender is not None:
                reader.add_upstream_pages(topic, partition, sender, (raws,))
            elif reader is not None:
                self._pending.setdefault(origin, []).extend(raws)
            if topic in self._global_topics:
                self._update_global(topic, raws)
        return last

    def _update_global(self, topic: str, raws: list[Raw]) -> None:
        task = self._global_task
        assert task is not None, "a global topic belongs to the global task"
        task.add_records(topic, 0, raws)
        while task.process_one():
            task.commit()
            self._commit_engines(task)
        task.take_outputs()

    @contextmanager
    def failing_loudly(self) -> Iterator[None]:
        """Writes the dead letters of a task that fails before its error goes on to the test."""
        try:
            yield
        except Exception:
            for task in self._tasks:
                for topic, letters in task.take_failure_dead_letters():
                    self._written(topic, self._with_partitions(topic, letters))
            raise

    def run_record_by_record(self) -> None:
        """Processes and commits one record after the other until no topic has one that is unread."""
        self._hand_over()
        progress = True
        while progress:
            progress = False
            for task in self._tasks:
                if task.process_one():
                    progress = True
                    task.punctuate_stream_time()
                    self._commit(task)
                    self._hand_over()
            if not progress:
                # A record that cannot be read is never processed, but may have left a dead letter.
                for task in self._tasks:
                    progress |= self._write_outputs(task)
                self._hand_over()

    def tick(self) -> None:
        """Calls the wall-clock punctuations that are due."""
        for task in self._tasks:
            task.punctuate_wall_clock()
            self._commit(task)

    def run_batch(self) -> None:
        """Processes everything that waits as micro-batches: level after level, until no topic has unread records."""
        first = True
        while first or self._pending:
            ranges, self._pending = self._pending, {}
            for origin, records in ranges.items():
                self._routes[origin].add_records(*origin, records)
            with collector_paused():
                for level in self._levels:
                    self._run_level(level, tick=first)
            first = False

    def _run_level(self, level: Level, *, tick: bool) -> None:
        for task in self._tasks:
            if task.id.subtopology not in level.subtopologies:
                continue
            with self._pinned(task):
                if tick:
                    task.punctuate_wall_clock()
                task.process_all()
                task.commit()
            self._commit_engines(task)
            task.forget_volatile()
            self._write_outputs(task, edges=self._edges)

    @contextmanager
    def _pinned(self, task: Task) -> Iterator[None]:
        """Lets a batch read its files from one state, as a worker does."""
        own = [environment for (name, _), environment in self._environments.items() if name == str(task.id)]
        for environment in own:
            environment.pin()
        try:
            yield
        finally:
            for environment in own:
                environment.unpin()

    def _hand_over(self) -> None:
        pending, self._pending = self._pending, {}
        for origin, records in pending.items():
            for raw in records:
                self._routes[origin].add_records(*origin, [raw])

    def _commit(self, task: Task) -> None:
        task.commit()
        self._commit_engines(task)
        self._write_outputs(task)

    def _write_outputs(self, task: Task, edges: Collection[str] = ()) -> bool:
        taken = task.take_outputs()
        for topic, written in taken:
            outputs = self._with_partitions(topic, written)
            self._written(topic, outputs)
            if topic in self._global_topics or self._route(topic, 0) is not None:
                self._append(topic, outputs, sender=task.id if topic in edges else None)
        return bool(taken)

    def _with_partitions(self, topic: str, outputs: Sequence[Output]) -> Sequence[Output]:
        """Settles where records go that were left to the hash of their key; those without a key go to the first."""
        count = self.partitions_of(topic)
        return [
            output
            if output[0] is not None
            else (0 if count == 1 or output[2] is None else partition_for(output[2], count), *output[1:])
            for output in outputs
        ]

    def _commit_engines(self, task: Task) -> None:
        for name, engine in task.engines().items():
            changes = engine.changes()
            if not changes:
                continue
            if name in self._changelogs:
                stream_time_ms = max(task.state.stream_time_ms, 0)
                self._logged.append((task.id.partition, stream_time_ms, task.stores[name], changes))
            engine.commit()

    def is_changelog(self, topic: str) -> bool:
        """Returns whether a topic is the changelog of a store."""
        return topic in self._changelogs.values()

    def write_changelogs(self) -> None:
        """Writes the changelog topics, as far as commits have changed stores.

        Few tests read them, so the records are made when somebody asks.
        """
        logged, self._logged = self._logged, []
        for partition, stream_time_ms, store, changes in logged:
            records: list[Output] = [
                (
                    partition,
                    stream_time_ms if timestamp_ms is None else timestamp_ms,
                    key,
                    value,
                    () if value is None else store.changelog_headers,
                )
                for key, value, timestamp_ms in store.changelog_records(changes)
            ]
            if records:
                self._written(self._changelogs[store.name], records)

    def metrics(self) -> dict[str, float]:
        """Returns the counters of all tasks together."""
        total: dict[str, float] = {"dropped-records-total": 0, "late-records-total": 0, "expired-rows-total": 0}
        for task in [*self._tasks, *([] if self._global_task is None else [self._global_task])]:
            for name, value in task.state.metrics().items():
                total[name] = total.get(name, 0) + value
        return total

    def all_stores(self) -> dict[str, Any]:
        """Returns all stores by name; with several partitions, those of the first."""
        stores: dict[str, Any] = dict(self.global_stores)
        for task in self._tasks:
            for name, store in task.stores.items():
                stores.setdefault(name, store)
        return stores

    def stores_named(self, name: str) -> dict[int, Any]:
        """Returns the store of each partition."""
        found = {task.id.partition: task.stores[name] for task in self._tasks if name in task.stores}
        if not found and name in self.global_stores:
            found = {0: self.global_stores[name]}
        return found

    def close(self) -> None:
        """Closes tasks, then the files below them."""
        for task in self._tasks:
            task.close()
        if self._global_task is not None:
            self._global_task.close()
        for environment in self._environments.values():
            environment.close()
