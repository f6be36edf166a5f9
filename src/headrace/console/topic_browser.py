"""The topics of the log, and their records as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from headrace.errors import OffsetOutOfRangeError, UnknownTopicError, did_you_mean
from headrace.http.errors import RequestError, bad_request
from headrace.http.json_values import to_json
from headrace.serdes import Serde, Serdes
from headrace.topics.log import Raw, ReadableLog

SERDES: Mapping[str, Serde[Any]] = {
    "string": Serdes.string(),
    "json": Serdes.json(),
    "integer": Serdes.integer(),
    "long": Serdes.long(),
    "float": Serdes.float(),
    "double": Serdes.double(),
    "boolean": Serdes.boolean(),
    "uuid": Serdes.uuid(),
    "bytes": Serdes.bytes(),
}
"""Formats to choose from; ``auto`` takes the topology's serdes."""

_MOST_BYTES = 4 * 1024 * 1024
_LONGEST_TEXT = 20_000


# Any: of whatever type the records of a topic are.
TopicSerdes = tuple[Serde[Any] | None, Serde[Any] | None]
"""Formats of keys and values; None: unknown, so they are guessed."""


class KnownTopics(Protocol):
    """Roles and serdes of topics, as an application or a catalogue knows them."""

    def role(self, topic: str) -> str:
        """Returns the role of a topic."""
        ...

    def serdes(self, topic: str) -> TopicSerdes:
        """Returns how they read or write a topic."""
        ...


class Browser:
    """Looks into topics."""

    def __init__(self, known: KnownTopics, log: Callable[[], ReadableLog]) -> None:
        self._known = known
        self._log = log

    def topics(self) -> dict[str, Any]:
        """Returns all topics, with how many records they have and what they are for."""
        log = self._log()
        counts = log.partition_counts()
        targets = [(topic, each) for topic, count in counts.items() for each in range(count)]
        begins, ends = log.begin_offsets(targets), log.end_offsets(targets)
        return {
            "topics": [
                {
                    "name": topic,
                    "partitions": count,
                    "records": sum(ends[topic, each] - begins[topic, each] for each in range(count)),
                    "role": self._known.role(topic),
                }
                for topic, count in sorted(counts.items())
            ]
        }

    def records(
        self,
        topic: str,
        *,
        partition: int,
        offset: int | None,
        time_ms: int | None,
        limit: int,
        key_serde: str,
        value_serde: str,
    ) -> dict[str, Any]:
        """Returns records from an offset or a time on; without either the newest."""
        log = self._log()
        count = log.partition_counts().get(topic)
        if count is None:
            message = f"there is no topic '{topic[:100]}'{did_you_mean(topic, log.topics())}"
            raise UnknownTopicError(message)
        if partition >= count:
            message = f"topic '{topic}' has partitions 0 to {count - 1}; partition {partition} was asked for"
            raise bad_request(message, "bad-partition")
        target = (topic, partition)
        begin, end = log.begin_offsets([target])[target], log.end_offsets([target])[target]
        start = self._start(log, target, offset, time_ms, limit, begin, end)
        try:
            found = log.read(topic, partition, start, end, max_records=limit, max_bytes=_MOST_BYTES)
        except OffsetOutOfRangeError as error:
            message = f"offset {start} of '{topic}' {partition} is gone; it begins at {error.begin}: ask again"
            raise RequestError(410, "gone", message) from error
        read_key, read_value = self._readers(topic, key_serde, value_serde)
        return {
            "records": [_record_json(partition, raw, read_key, read_value) for raw in found],
            "begin": begin,
            "end": end,
            "next": found[-1][0] + 1 if found else end,
        }

    def _start(
        self,
        log: ReadableLog,
        target: tuple[str, int],
        offset: int | None,
        time_ms: int | None,
        limit: int,
        begin: int,
        end: int,
    ) -> int:
        if offset is not None:
            return min(max(offset, begin), end)
        if time_ms is not None:
            found = log.offsets_for_time({target: time_ms})[target]
            return end if found is None else max(found, begin)
        return max(begin, end - limit)

    def _readers(self, topic: str, key_serde: str, value_serde: str) -> tuple[_Reader, _Reader]:
        keys, values = self._known.serdes(topic)
        for name in (key_serde, value_serde):
            if name != "auto" and name not in SERDES:
                known = ", ".join(["auto", *SERDES])
                message = f"serde '{name[:60]}' is unknown{did_you_mean(name, SERDES)}; known: {known}"
                raise bad_request(message, "bad-parameter")
        return (
            _Reader(keys if key_serde == "auto" else SERDES[key_serde], topic, is_key=True),
            _Reader(values if value_serde == "auto" else SERDES[value_serde], topic, is_key=False),
        )


class _Reader:
    """Reads keys or values; an unreadable one gets an error beside the others."""

    def __init__(self, serde: Serde[Any] | None, topic: str, *, is_key: bool) -> None:
        several = [serde] if serde is not None else [SERDES["json"], SERDES["string"], SERDES["bytes"]]
        self._guesses = [each.deserializer(topic, is_key=is_key) for each in several]

    def __call__(self, data: bytes | None) -> tuple[Any, str | None]:
        if data is None:
            return None, None
        failure = ""
        for read in self._guesses:
            try:
                return _bounded(read(data), len(data)), None
            # A serde of the user's may raise anything; its record is shown as one that cannot be read.
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
        return None, failure[:500]


def _bounded(value: Any, size: int) -> Any:
    if size <= _LONGEST_TEXT:
        return value
    text = value if isinstance(value, str) else to_json(value)
    return f"{text[:_LONGEST_TEXT]}… ({size:,} bytes)"


def _record_json(partition: int, raw: Raw, read_key: _Reader, read_value: _Reader) -> dict[str, Any]:
    offset, timestamp_ms, key_data, value_data, headers = raw
    key, key_error = read_key(key_data)
    value, value_error = read_value(value_data)
    row: dict[str, Any] = {
        "partition": partition,
        "offset": offset,
        "timestamp_ms": timestamp_ms,
        "key": key,
        "value": value,
        "headers": [[name, None if data is None else data.decode(errors="replace")[:2000]] for name, data in headers],
    }
    if key_error is not None:
        row["key_error"] = key_error
    if value_error is not None:
        row["value_error"] = value_error
    return row
