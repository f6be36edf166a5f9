"""Sinks: serialization of keys and values to the bytes of an output topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import describe_value
from headrace.operators.base import Edge
from headrace.processor import RecordContext
from headrace.record import Headers as UserHeaders
from headrace.runtime.serde_defaults import explained, key_serde, value_serde, writer
from headrace.runtime.task_state import TaskState
from headrace.serdes import Serde
from headrace.topics.log import Headers
from headrace.topics.partitioner import StreamPartitioner, default_partitioner, known_partitions
from headrace.topology.nodes import SinkNode


def sink_edge(node: SinkNode, state: TaskState) -> Edge:
    """Returns the function that writes a record to the sink's topic, or to the one its extractor names."""
    if node.topic_extractor is None:
        assert node.topic is not None, "a sink has a topic or an extractor"
        return _to_topic(node, state.topic_name(node.topic), state)
    return _to_extracted_topic(node, state)


def _to_extracted_topic(node: SinkNode, state: TaskState) -> Edge:
    extractor = node.topic_extractor
    assert extractor is not None, "the caller has checked"
    edges: dict[str, Edge] = {}

    def route(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        topic, partition = state.origin or (None, -1)
        try:
            target = extractor(
                key, value, RecordContext(topic, partition, state.offset, timestamp_ms, UserHeaders(headers))
            )
            edge = edges.get(target)
            if edge is None:
                _check_topic(target)
        except Exception as error:
            faults, functions = state.faults, (extractor,)
            return faults.processing_failed(node.name, error, key, value, timestamp_ms, headers, functions)
        if edge is None:
            edge = edges[target] = _to_topic(node, target, state)
        return edge(key, value, timestamp_ms, headers)

    return route


def _to_topic(node: SinkNode, topic: str, state: TaskState) -> Edge:
    keys = key_serde(node.key_serde, state.config)
    values = value_serde(node.value_serde, state.config)
    encode_key, encode_value = writer(keys, topic, is_key=True), writer(values, topic, is_key=False)
    partitions = _partitions(node, topic, keys, state)
    name, faults = node.name, state.faults
    # Where there is one partition nobody has to hash the key later.
    partition = 0 if state.partitions_of(topic) == 1 else None
    buffer, touched = state.collector.buffer(topic), state.collector.touched

    def write(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            key_bytes = None if key is None else encode_key(key)
        except Exception as error:
            error = explained(error, keys.serializer(topic, is_key=True), key)
            return faults.serialization_failed(node, topic, "key", error, key, value, timestamp_ms, headers)
        try:
            value_bytes = None if value is None else encode_value(value)
        except Exception as error:
            error = explained(error, values.serializer(topic, is_key=False), value)
            return faults.serialization_failed(node, topic, "value", error, key, value, timestamp_ms, headers)
        if not buffer:
            touched.append(topic)
        buffer.append((partition, timestamp_ms, key_bytes, value_bytes, headers))
        return None

    if partitions is None:
        return write
    chosen_by = partitions

    def write_to_partitions(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            chosen = chosen_by(key, value)
        except Exception as error:
            functions = (node.partitioner,)
            return faults.processing_failed(name, error, key, value, timestamp_ms, headers, functions)
        if chosen is None:
            return write(key, value, timestamp_ms, headers)
        if not chosen:
            return state.drop()
        before = len(buffer)
        write(key, value, timestamp_ms, headers)
        if len(buffer) > before:
            _, *rest = buffer.pop()
            buffer.extend((partition, *rest) for partition in chosen)  # type: ignore[misc]  # the rest of an Output
        return None

    if node.partitioner is not None or not hasattr(keys, "parts_serializer"):
        return write_to_partitions
    parts, partition_of = keys.parts_serializer(topic), known_partitions(state.partitions_of(topic))

    def write_windowed(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        """The same as above in one piece, with the bytes of the plain key made once."""
        try:
            plain, key_bytes = parts(key)
            value_bytes = None if value is None else encode_value(value)
        except Exception:
            # The long way explains what is wrong.
            return write_to_partitions(key, value, timestamp_ms, headers)
        if not buffer:
            touched.append(topic)
        buffer.append((partition_of[plain], timestamp_ms, key_bytes, value_bytes, headers))
        return None

    return write_windowed


def _partitions(
    node: SinkNode, topic: str, keys: Serde[Any], state: TaskState
) -> Callable[[Any, Any], tuple[int, ...] | None] | None:
    """Returns the choice of partitions, or None when the hash of the key's bytes decides."""
    partitioner: StreamPartitioner | None = node.partitioner
    count = state.partitions_of(topic)
    if partitioner is None and count > 1:
        # A windowed key goes where its plain key goes, whatever the window.
        partitioner = default_partitioner(keys, topic)
    if partitioner is None:
        return None
    choose = partitioner

    def chosen(key: Any, value: Any) -> tuple[int, ...] | None:
        answer = choose(topic, key, value, count)
        if answer is None:
            return None
        several = (answer,) if isinstance(answer, int) else tuple(answer)
        for partition in several:
            if not isinstance(partition, int) or not 0 <= partition < count:
                raise _no_partition(topic, count, answer)
        return several

    return chosen


def _check_topic(target: Any) -> None:
    if isinstance(target, str) and target:
        return
    message = f"a topic name extractor must return the name of a topic; it returned {describe_value(target)}"
    raise TypeError(message)


def _no_partition(topic: str, count: int, answer: Any) -> ValueError:
    message = (
        f"a partitioner must return a partition, several, or None; topic '{topic}' has partitions 0 to {count - 1}; "
        f"it returned {describe_value(answer)}"
    )
    return ValueError(message)
