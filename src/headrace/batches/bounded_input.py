"""Input topics of a backfill: the task that each record goes to, and the time by which it is sorted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from headrace.batches.bounded_rows import FROM_INPUT, BoundedJob, RowKind, ShuffleRow, pack_headers
from headrace.batches.layout import Layout
from headrace.config import StreamsConfig
from headrace.errors import StreamsError, TopologyError, did_you_mean
from headrace.record import Headers as UserHeaders
from headrace.runtime.serde_defaults import key_serde, reader, value_serde
from headrace.timestamps import ConsumedRecord
from headrace.topics.log import Headers, Output, Raw
from headrace.topics.partitioner import known_partitions
from headrace.topology.topology import Topology


class InputTopic:
    """The records of one topic on their way to tasks."""

    def __init__(self, job: BoundedJob, topic: str) -> None:
        self.name = topic
        self._partitions = job.layout.partitions[topic]
        self.numbers = [job.numbers[job.readers[topic], partition] for partition in range(self._partitions)]
        """The tasks by partition."""
        place = job.layout.tasks[self.numbers[0]]
        self.level = place.level
        self.rank = job.inputs(place).index(topic)
        """Its place among the inputs of a task."""
        self.sort_time = sort_time(job.layout, topic)
        """What gives the time by which a record is sorted; None: its timestamp."""

    def tasks(
        self, partitions: Sequence[int | None], keys: Sequence[bytes | None], values: Sequence[bytes | None]
    ) -> list[int]:
        """Returns the tasks of records; without a partition they go where their keys belong.

        A record without a key may go anywhere; by its value it goes to the same place each time it is read. ``values``
        may be left out if all have keys.
        """
        numbers, partition_of = self.numbers, known_partitions(self._partitions)
        if None not in keys and all(partition is None for partition in partitions):
            return [numbers[partition] for partition in map(partition_of.__getitem__, keys)]  # type: ignore[arg-type]
        found = []
        for partition, key, value in zip(partitions, keys, values, strict=True):
            if partition is None:
                partition = partition_of[(value or b"") if key is None else key]
            elif not 0 <= partition < self._partitions:
                message = (
                    f"backfill: topic '{self.name}' has partitions 0 to {self._partitions - 1}; a record is in "
                    f"partition {partition}; say how many the topic has: tasks={{'{self.name}': …}}"
                )
                raise StreamsError(message)
            found.append(numbers[partition])
        return found

    def row(
        self,
        sequence: int,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> ShuffleRow:
        """Returns a record as it is shuffled."""
        (task,) = self.tasks([partition], [key], [value])
        time = timestamp_ms if self.sort_time is None else self.sort_time(timestamp_ms, key, value, headers)
        packed = pack_headers(headers)
        place = (RowKind.NEXT, self.level, task, time, self.rank, FROM_INPUT, sequence, self.name, partition)
        return ShuffleRow(*place, timestamp_ms, key, value, packed)


def global_topics(topology: Topology) -> frozenset[str]:
    """Returns the topics of global tables."""
    return frozenset(store.topic for store in topology.global_stores.values())


def as_table(records: Iterable[Output]) -> list[Raw]:
    """Returns the records of a global table's topic in the order of their times."""
    ordered = sorted(records, key=lambda record: record[1])
    return [(offset, *record[1:]) for offset, record in enumerate(ordered)]


SortTime = Callable[[int, bytes | None, bytes | None, Headers], int]


def sort_time(layout: Layout, topic: str) -> SortTime | None:
    """Returns what gives the time by which a record of a topic is sorted, as its extractor sees it.

    None says that this is its timestamp.
    A record that cannot be read, or has no time, stays where its timestamp is; its task deals with it.
    """
    node = layout.topology.source_for(topic)
    assert node is not None, "the topic is one that is read"
    extractor = node.timestamp_extractor or layout.config.default_timestamp_extractor
    if getattr(extractor, "metadata_only", False):
        return None
    read_key = reader(key_serde(node.key_serde, layout.config), topic, is_key=True)
    read_value = reader(value_serde(node.value_serde, layout.config), topic, is_key=False)

    def extracted(timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        try:
            record = ConsumedRecord(
                None if key is None else read_key(key),
                None if value is None else read_value(value),
                timestamp_ms,
                UserHeaders(headers),
                topic,
                0,
                0,
            )
            found = extractor(record, -1)
        except Exception:
            return timestamp_ms
        return found if isinstance(found, int) and found >= 0 else timestamp_ms

    return extracted


def bounded_layout(
    topology: Topology, config: StreamsConfig, inputs: Collection[str], tasks: int | Mapping[str, int]
) -> Layout:
    """Returns the tasks of a backfill that reads ``inputs``, each with so many partitions."""
    given = dict(tasks) if isinstance(tasks, Mapping) else {}
    usual = max(given.values(), default=1) if isinstance(tasks, Mapping) else tasks
    tables = global_topics(topology)
    written = {
        topology.full_topic_name(sink.topic, config.application_id) for sink in topology.sink_nodes if sink.topic
    }
    read = {
        topic for source in topology.source_nodes for topic in source.topics if not topology.is_internal(topic)
    } | tables
    for topic in inputs:
        if topic not in read and topology.source_for(topic) is None:
            message = (
                f"backfill: the topology does not read the topic '{topic}' (it reads: {', '.join(sorted(read))})"
                f"{did_you_mean(topic, read)}"
            )
            raise TopologyError(message)
    missing = sorted(read - set(inputs) - written)
    if missing:
        message = (
            f"backfill: the topology reads {', '.join(map(repr, missing))}, which inputs do not have; give a data "
            f"frame for each topic, or None for one without history: inputs={{'{missing[0]}': None, …}}; in the shell "
            f"--input {missing[0]}=PATH or --without-history {missing[0]}"
        )
        raise TopologyError(message)
    looped = sorted(tables & written)
    if looped:
        message = (
            f"backfill: the topology writes '{looped[0]}', from which it reads a global table; a backfill has all of a "
            "global table before it begins; write to another topic"
        )
        raise TopologyError(message)
    external = {topic: given.get(topic, usual) for topic in [*inputs, *sorted(read - set(inputs))]}
    external |= {topic: count for topic, count in given.items() if topic not in external}
    counted = topology.partition_counts(external)
    internal = {topology.full_topic_name(topic, config.application_id): n for topic, n in counted.items()}
    return Layout(topology, config, {**external, **internal})
