"""PRINT: the records of a topic as text, with a guess at their formats."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import unpack

from headrace.errors import UnknownTopicError, did_you_mean
from headrace.sql.server.errors import BAD_STATEMENT, RequestError, terminated
from headrace.sql.syntax.statements import PrintTopic
from headrace.topics.log import Offsets, TopicLog

_WAIT = timedelta(milliseconds=200)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Printed:
    """The lines of a PRINT; they go on until ``stopping`` is set, or the limit is reached."""

    lines: Iterator[str]
    stopping: threading.Event


def print_topic(statement: PrintTopic, log: TopicLog) -> Printed:
    """Begins to print a topic."""
    try:
        partitions = log.describe_topic(statement.topic).partitions
    except UnknownTopicError as error:
        hint = did_you_mean(statement.topic, log.topics())
        message = f"Could not find topic '{statement.topic}', or the KSQL user does not have permissions{hint}"
        raise RequestError(BAD_STATEMENT, message, statement=terminated(statement.text)) from error
    targets = [(statement.topic, partition) for partition in range(partitions)]
    positions = log.begin_offsets(targets) if statement.from_beginning else log.end_offsets(targets)
    stopping = threading.Event()
    return Printed(_lines(statement, log, dict(positions), stopping), stopping)


def _lines(statement: PrintTopic, log: TopicLog, positions: Offsets, stopping: threading.Event) -> Iterator[str]:
    printed = seen = 0
    formats: tuple[str, str] | None = None
    while not stopping.is_set():
        found = False
        for (topic, partition), start in list(positions.items()):
            for offset, time_ms, key, value, _headers in log.read(topic, partition, start, max_records=1000):
                found = True
                positions[topic, partition] = offset + 1
                if formats is None:
                    formats = _format(key, "KAFKA_STRING"), _format(value, "KAFKA_STRING")
                    yield f"Key format: {formats[0]}"
                    yield f"Value format: {formats[1]}"
                seen += 1
                if (seen - 1) % statement.interval:
                    continue
                yield (f"rowtime: {_time(time_ms)}, key: {_shown(key)}, value: {_shown(value)}, partition: {partition}")
                printed += 1
                if statement.limit is not None and printed >= statement.limit:
                    return
        if not found:
            log.wait_for_data(positions, _WAIT)


def _format(data: bytes | None, text: str) -> str:
    if data is None:
        return "¯\\_(ツ)_/¯ - no data processed"
    if _is_json(data):
        return "JSON or KAFKA_STRING"
    if _is_text(data):
        return text
    return {4: "KAFKA_INT", 8: "KAFKA_BIGINT or KAFKA_DOUBLE"}.get(len(data), "KAFKA_STRING")


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict | list)
    except ValueError:
        return False


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _shown(data: bytes | None) -> str:
    if data is None:
        return "<null>"
    if _is_text(data) or _is_json(data):
        return data.decode()
    match len(data):
        case 4:
            return str(unpack(">i", data)[0])
        case 8:
            return str(unpack(">q", data)[0])
        case _:
            return data.hex(" ")


def _time(time_ms: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03} Z"
