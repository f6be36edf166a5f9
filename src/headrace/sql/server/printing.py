"""PRINT: the records of a topic as text, with a guess at their formats."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import unpack

from headrace.errors import UnknownTopicError, did_you_mean
from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.catalog import WindowDefinition
from headrace.sql.formats.format import Target
from headrace.sql.formats.registered_json import json_of, registered_format
from headrace.sql.server.errors import BAD_STATEMENT, RequestError, terminated
from headrace.sql.syntax.statements import PrintTopic
from headrace.topics.log import Offsets, ReadableLog

logger = logging.getLogger(__name__)

_WAIT = timedelta(milliseconds=200)
_TIME_BYTES = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Printed:
    """The lines of a PRINT; they go on until ``stopping`` is set, or the limit is reached."""

    lines: Iterator[str]
    stopping: threading.Event


def print_topic(
    statement: PrintTopic,
    log: ReadableLog,
    registry: SchemaRegistry | None,
    stopping: threading.Event,
    window: WindowDefinition | None = None,
) -> Printed:
    """Begins to print a topic; with a registry, records that were written with its schemas are shown as JSON.

    ``window`` says how the keys of the topic are windowed, if they are.
    """
    try:
        partitions = log.describe_topic(statement.topic).partitions
    except UnknownTopicError as error:
        hint = did_you_mean(statement.topic, log.topics())
        message = f"Could not find topic '{statement.topic}', or the KSQL user does not have permissions{hint}"
        raise RequestError(BAD_STATEMENT, message, statement=terminated(statement.text)) from error
    targets = [(statement.topic, partition) for partition in range(partitions)]
    positions = log.begin_offsets(targets) if statement.from_beginning else log.end_offsets(targets)
    keys, values = (_Guess(registry, Target(statement.topic, is_key)) for is_key in (True, False))
    if window is not None:
        keys = _WindowedGuess(registry, Target(statement.topic, is_key=True), window)
    return Printed(_lines(statement, log, dict(positions), stopping, keys, values), stopping)


def _lines(
    statement: PrintTopic, log: ReadableLog, positions: Offsets, stopping: threading.Event, keys: _Guess, values: _Guess
) -> Iterator[str]:
    printed = seen = 0
    while not stopping.is_set() and statement.limit != 0:
        found = False
        for (topic, partition), start in list(positions.items()):
            for offset, time_ms, key, value, _headers in log.read(topic, partition, start, max_records=1000):
                found = True
                positions[topic, partition] = offset + 1
                if not seen:
                    yield f"Key format: {keys.format(key)}"
                    yield f"Value format: {values.format(value)}"
                seen += 1
                if (seen - 1) % statement.interval:
                    continue
                shown = f"key: {keys.shown(key)}, value: {values.shown(value)}, partition: {partition}"
                yield f"rowtime: {_time(time_ms)}, {shown}"
                printed += 1
                if statement.limit is not None and printed >= statement.limit:
                    return
        if not found:
            log.wait_for_data(positions, _WAIT)


class _Guess:
    """Guess at the format of a topic's keys or values."""

    def __init__(self, registry: SchemaRegistry | None, target: Target) -> None:
        self._registry = registry
        self._target = target

    def format(self, data: bytes | None) -> str:
        if data is None:
            return "¯\\_(ツ)_/¯ - no data processed"
        if _is_json(data):
            return "JSON or KAFKA_STRING"
        if _is_text(data):
            return "KAFKA_STRING"
        if self._read_registered(data) is not None:
            assert self._registry is not None, "it has read the record"
            return registered_format(data, self._registry) or ""
        return {4: "KAFKA_INT", 8: "KAFKA_BIGINT or KAFKA_DOUBLE"}.get(len(data), "KAFKA_STRING")

    def shown(self, data: bytes | None) -> str:
        if data is None:
            return "<null>"
        if _is_text(data) or _is_json(data):
            return data.decode()
        registered = self._read_registered(data)
        if registered is not None:
            return registered
        match len(data):
            case 4:
                return str(unpack(">i", data)[0])
            case 8:
                return str(unpack(">q", data)[0])
            case _:
                return data.hex(" ")

    def _read_registered(self, data: bytes) -> str | None:
        """Returns a record that was written with a registered schema, as JSON; None if it was not, it seems."""
        if self._registry is None:
            return None
        try:
            if registered_format(data, self._registry) is None:
                return None
            shown = json_of(data, self._registry, self._target)
        except Exception as error:
            # A number may look like one of a schema, and the registry may be away: the bytes can be shown anyway.
            logger.debug("a record of '%s' is shown without its schema: %s", self._target.topic, error)
            return None
        return "<null>" if shown is None else shown.decode()


class _WindowedGuess(_Guess):
    """The same for keys in windows: the key itself, then the window's start, of sessions its end before that."""

    def __init__(self, registry: SchemaRegistry | None, target: Target, window: WindowDefinition) -> None:
        super().__init__(registry, target)
        self._window = window
        self._size_ms = None if window.size is None else window.size // timedelta(milliseconds=1)

    def format(self, data: bytes | None) -> str:
        plain = None if data is None else self._parts(data)
        return super().format(data) if plain is None else f"{self._window.kind}({super().format(plain[0])})"

    def shown(self, data: bytes | None) -> str:
        parts = None if data is None else self._parts(data)
        if parts is None:
            return super().shown(data)
        key, start_ms, end_ms = parts
        return f"[{super().shown(key)}@{start_ms}/{end_ms}]"

    def _parts(self, data: bytes) -> tuple[bytes, int, int] | None:
        """Returns the key and the bounds of its window; None for bytes that are too few for that."""
        size = _TIME_BYTES if self._size_ms is not None else 2 * _TIME_BYTES
        if len(data) < size:
            return None
        key, bounds = data[:-size], data[-size:]
        start_ms = int.from_bytes(bounds[-_TIME_BYTES:], "big", signed=True)
        if self._size_ms is not None:
            return key, start_ms, start_ms + self._size_ms
        return key, start_ms, int.from_bytes(bounds[:_TIME_BYTES], "big", signed=True)


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


def _time(time_ms: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03} Z"
