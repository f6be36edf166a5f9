"""Sources: deserialization of an input topic's bytes to keys, values and timestamps."""

from __future__ import annotations

from typing import Any

from headrace.arguments.signatures import describe_function, raised_in
from headrace.errors import ProcessingError, StreamsError, describe_value
from headrace.record import Headers
from headrace.runtime.queues import Head
from headrace.runtime.serde_defaults import explained, key_serde, reader, value_serde
from headrace.runtime.task_state import TaskState
from headrace.timestamps import ConsumedRecord, WallclockTimestampExtractor
from headrace.topics.log import Raw
from headrace.topology.nodes import SourceNode


class SourceCodec:
    """Decoder of one topic of a source node: two deserializers and the timestamp extractor."""

    def __init__(self, node: SourceNode, origin: tuple[str, int], state: TaskState) -> None:
        self.node = node.name
        self.origin = origin
        self.state = state
        topic = origin[0]
        self._keys = key_serde(node.key_serde, state.config)
        self._values = value_serde(node.value_serde, state.config)
        self.decode_key = reader(self._keys, topic, is_key=True)
        self.decode_value = reader(self._values, topic, is_key=False)
        self.extractor = node.timestamp_extractor or state.config.default_timestamp_extractor
        if type(self.extractor) is WallclockTimestampExtractor:
            # User code sees one clock, that of the host: what it reads from the wall must be the same here.
            self.extractor = lambda record, partition_time_ms: state.wall_clock_ms()
        self.metadata_only: bool = getattr(self.extractor, "metadata_only", False)
        """The extractor takes the record's own timestamp unless that is negative."""

    def decode(self, raw: Raw, partition_time_ms: int) -> Head | None:
        """Returns the decoded record, or None for one that is skipped."""
        _, _, key_bytes, value_bytes, _ = raw
        try:
            key = None if key_bytes is None else self.decode_key(key_bytes)
            value = None if value_bytes is None else self.decode_value(value_bytes)
        except Exception as error:
            self.failed(raw, error)
            return None
        timestamp_ms = self.timestamp_of(raw, key, value, partition_time_ms)
        if timestamp_ms < 0:
            self.state.drop()
            return None
        return Head(timestamp_ms, key, value, raw)

    def failed(self, raw: Raw, error: Exception) -> None:
        """Asks the deserialization exception handler; returns if the record is to be skipped."""
        topic, (_, _, key, value, _) = self.origin[0], raw
        if key is not None:
            error = explained(error, self._keys.deserializer(topic, is_key=True), key)
        if value is not None:
            error = explained(error, self._values.deserializer(topic, is_key=False), value)
        self.state.faults.deserialization_failed(self.node, self.origin, raw, error)

    def timestamp_of(self, raw: Raw, key: Any, value: Any, partition_time_ms: int) -> int:
        """Returns the record's time as the extractor sees it; a negative one drops the record."""
        offset, timestamp_ms, _, _, headers = raw
        if self.metadata_only and timestamp_ms >= 0:
            return timestamp_ms
        topic, partition = self.origin
        record = ConsumedRecord(key, value, timestamp_ms, Headers(headers), topic, partition, offset)
        try:
            extracted = self.extractor(record, partition_time_ms)
        except StreamsError:
            raise
        except Exception as error:
            what = f"failed: {error!r}"
            raise self._extractor_failed(what, record, raised_in(error)) from error
        if not isinstance(extracted, int):
            what = f"must return the time in milliseconds, an int; it returned {describe_value(extracted)}"
            raise self._extractor_failed(what, record, None)
        return extracted

    def _extractor_failed(self, what: str, record: ConsumedRecord, function: str | None) -> ProcessingError:
        message = (
            f"source '{self.node}': the timestamp extractor {function or describe_function(self.extractor)} "
            f"{what}, for the record at {record.position}"
        )
        return ProcessingError(
            message,
            node=self.node,
            function=function or describe_function(self.extractor),
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
        )
