"""Records of a source's topic as rows of all its columns, in the order in which the source names them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.errors import StreamsError
from headrace.record import Headers
from headrace.sql.catalog import SourceDefinition
from headrace.sql.formats import format_named
from headrace.sql.planning.build import key_serde_of
from headrace.sql.planning.plan import KeyFormat, KeyWindow
from headrace.sql.planning.reads import time_column
from headrace.sql.planning.record_functions.reading import ColumnTime, header_structs
from headrace.sql.planning.sources import FromSource
from headrace.sql.planning.typing import Typing
from headrace.sql.types.schema import Column, Namespace
from headrace.topics.log import Headers as RawHeaders
from headrace.windows import Windowed

PROCESSING_LOG = logging.getLogger("headrace.sql.processing")

Row = list[Any]
_NO_HEADERS: RawHeaders = ()


class Unreadable(Exception):
    """A record whose bytes are not what the source declares; it is reported and left out."""


class RecordRows:
    """Makes a row of each record of a source: pseudo columns, the window's bounds, then the declared columns.

    ``row`` returns None for a record without value; ``key_row`` gives the row that a deleted one leaves: its key.
    """

    def __init__(self, source: FromSource, typing: Typing) -> None:
        definition = source.definition
        self.definition = definition
        self.key_serde = key_serde_of(definition.schema.key, key_format_of(definition))
        self._is_windowed = source.is_windowed
        self._key_width = len(definition.schema.key)
        self._read_key = _deserializer(self.key_serde, definition.topic, is_key=True) if self._key_width else None
        values = format_named(definition.value_format).serde(definition.schema.value, definition.value_options)
        self._read_value = _deserializer(values, definition.topic, is_key=False)
        self._parts = [_part(column, definition) for column in definition.schema]
        # Keys, then values, is what nearly all sources declare.
        in_order = [*definition.schema.key, *definition.schema.value]
        self._is_plain = list(definition.schema) == in_order
        time = definition.timestamp
        self._time: ColumnTime | None = None
        if time is not None:
            found = time_column(time, definition.schema, typing)
            self._time = ColumnTime(found.name, found.function, found.of_key, found.strict)
        self._width = len(source.columns)

    def row(
        self,
        partition: int,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: RawHeaders = _NO_HEADERS,
    ) -> Row | None:
        """Returns the row of a record; raises ``Unreadable``."""
        if value is None:
            return None
        try:
            values = self._read_value(value)
            if values is None:
                return None
            keys, bounds = self._key(key)
            if self._time is not None:
                timestamp_ms = self._time.time_of(keys if self._time.of_key else values)
                if timestamp_ms < 0:
                    raise Unreadable
        except StreamsError as error:
            PROCESSING_LOG.warning("a record of %s is left out: %s", self.definition.name, error)
            raise Unreadable from error
        row = [timestamp_ms, partition, offset, *bounds]
        if self._is_plain:
            return [*row, *keys, *values]
        return row + [_value(kind, place, keys, values, headers) for kind, place in self._parts]

    def key_row(self, partition: int, offset: int, timestamp_ms: int, key: bytes | None) -> Row:
        """Returns a row that has only its key, the others NULL; raises ``Unreadable``."""
        try:
            keys, bounds = self._key(key)
        except StreamsError as error:
            PROCESSING_LOG.warning("a record of %s is left out: %s", self.definition.name, error)
            raise Unreadable from error
        row = [timestamp_ms, partition, offset, *bounds]
        return row + [keys[place] if kind == "KEY" else None for kind, place in self._parts]

    def _key(self, key: bytes | None) -> tuple[Any, tuple[Any, ...]]:
        found = None if key is None or self._read_key is None else self._read_key(key)
        if not self._is_windowed:
            return (None,) * self._key_width if found is None else found, ()
        if not isinstance(found, Windowed):
            return (None,) * self._key_width, (None, None)
        plain = (None,) * self._key_width if found.key is None else found.key
        return plain, (found.window.start_ms, found.window.end_ms)


def key_format_of(definition: SourceDefinition) -> KeyFormat:
    """Returns how the keys of a source are written."""
    window = None
    if definition.window is not None:
        size = definition.window.size
        window = KeyWindow(definition.window.kind, None if size is None else size // timedelta(milliseconds=1))
    return KeyFormat(definition.key_format, definition.key_options, window)


def _deserializer(serde: Any, topic: str, *, is_key: bool) -> Callable[[bytes], Any]:
    found: Callable[[bytes], Any] = serde.deserializer(topic, is_key=is_key)
    return found


def _part(column: Column, definition: SourceDefinition) -> tuple[str, Any]:
    if column.namespace is Namespace.HEADERS:
        return ("HEADERS", None) if column.header_key is None else ("HEADER", column.header_key)
    kind = "KEY" if column.namespace is Namespace.KEY else "VALUE"
    columns = definition.schema.key if kind == "KEY" else definition.schema.value
    return kind, columns.index(column)


def _value(kind: str, place: Any, keys: Any, values: Any, headers: RawHeaders) -> Any:
    if kind == "VALUE":
        return values[place]
    if kind == "KEY":
        return keys[place]
    found = Headers(headers)
    return header_structs(found) if kind == "HEADERS" else found.last(place)
