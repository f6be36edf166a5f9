"""Rows of data frames as records: by the columns that topics have, or by others and the serdes of a topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headrace.config import StreamsConfig
from headrace.errors import ConfigError, did_you_mean
from headrace.runtime.serde_defaults import key_serde, value_serde, writer
from headrace.spark.header_columns import headers_of
from headrace.topics.log import Headers, Output, TopicPartition
from headrace.topology.nodes import SourceNode
from headrace.topology.topology import Topology

Columns: TypeAlias = "str | Sequence[str] | Callable[[dict[str, Any]], Any] | None"
"""A column, several of them as a dict, or a function that gets all columns as a dict."""

_OWN = ("timestamp", "headers", "partition", "offset")


@dataclass(frozen=True, kw_only=True)
class InputRows:
    """A data frame whose rows are the records of an input topic.

    A frame that has the columns ``key``, ``value`` and ``timestamp``, as topics have, needs nothing else. Columns of
    type binary are taken as they are; anything else is written by the serdes with which the topology reads the topic.
    """

    rows: DataFrame
    key: Columns = None
    """Default: the column ``key``, or no key."""
    value: Columns = None
    """Default: the column ``value``, or all columns but those of time, headers, partition and offset, as a dict."""
    timestamp: str | None = None
    """Milliseconds, or a timestamp, or a date; without a time zone it is in that of the session. Default: the column
    ``timestamp``."""
    headers: str | None = None
    """An array of structs of a text and bytes, as Spark's Kafka source has it. Default: the column ``headers``."""
    partition: str | None = None
    """The partition of a record that is not where its key belongs. Default: the column ``partition``."""
    offset: str | None = None
    """Decides the order of records of the same time; those without one come first. Default: the column ``offset``, or
    the order of the rows."""

    def resolved(self, topic: str) -> InputRows:
        """Returns this with the columns that the frame has, or says which it has not."""
        known = self.rows.columns
        found: dict[str, Any] = {name: getattr(self, name) or (name if name in known else None) for name in _OWN}
        if found["timestamp"] is None:
            message = (
                f"backfill: the rows of '{topic}' need a time; there is no column 'timestamp' among {', '.join(known)}"
                f"; say which it is: InputRows(rows=…, timestamp='…')"
            )
            raise ConfigError(message)
        key = self.key if self.key is not None else ("key" if "key" in known else None)
        value = self.value
        if value is None:
            rest = [name for name in known if name not in found.values()]
            value = "value" if "value" in known else rest
        for part in (*found.values(), *_named(key), *_named(value)):
            if part is not None and part not in known:
                message = f"backfill: the rows of '{topic}' have no column '{part}'{did_you_mean(part, known)}"
                raise ConfigError(message)
        return InputRows(rows=self.rows, key=key, value=value, **found)

    def before(self, topic: str, cut: int | Mapping[TopicPartition, int]) -> InputRows:
        """Returns the rows before a time, or, if they name their partitions and offsets, before offsets."""
        rows = self.resolved(topic)
        if not isinstance(cut, Mapping):
            kept = _milliseconds(rows.rows, topic, str(rows.timestamp)) < cut
        elif rows.partition is None or rows.offset is None:
            # Only the caller knows which records are in the frame.
            return rows
        else:
            partition, offset = F.col(_quoted(rows.partition)), F.col(_quoted(rows.offset))
            kept = F.lit(False)  # noqa: FBT003 - a value
            for (name, number), at in cut.items():
                if name == topic:
                    kept |= (partition == number) & (offset < at)
        return replace(rows, rows=rows.rows.filter(kept))


def _named(columns: Columns) -> Sequence[str]:
    if columns is None or callable(columns):
        return ()
    return (columns,) if isinstance(columns, str) else columns


def record_columns(topic: str, given: InputRows) -> tuple[DataFrame, InputRows]:
    """Returns the columns that records are made of, and the names of those that keys and values need.

    First come time in milliseconds and order, then partition and headers if the frame has them. Names are not those of
    the frame, which may be any.
    """
    rows = given.resolved(topic)
    frame = rows.rows
    order = F.monotonically_increasing_id()
    if rows.offset is not None:
        # Rows without one come first, as where Spark sorts.
        order = F.coalesce(F.col(_quoted(rows.offset)).cast("long"), F.lit(-1))
    selected = [_milliseconds(frame, topic, str(rows.timestamp)).alias("time"), order.alias("order")]
    if rows.partition is not None:
        selected.append(F.col(_quoted(rows.partition)).cast("int").alias("partition"))
    if rows.headers is not None:
        headers = F.col(_quoted(_checked_headers(frame, topic, rows.headers)))
        # With every row Spark asks for the size of the batch so far, which takes a step per row if a list is null.
        selected.append(F.coalesce(headers, F.array()).alias("headers"))
    needed = (F.col(_quoted(name)).alias(f"column{place}") for place, name in enumerate(_needed(rows)))
    return frame.select(*selected, *needed), rows


def _needed(rows: InputRows) -> list[str]:
    """Returns the columns that keys and values are made of."""
    if callable(rows.key) or callable(rows.value):
        return list(rows.rows.columns)
    return list(dict.fromkeys((*_named(rows.key), *_named(rows.value))))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _milliseconds(frame: DataFrame, topic: str, name: str) -> Column:
    """Returns the time of rows; one without a time gets -1, about which the timestamp extractor complains."""
    kind = frame.schema[name].dataType
    column = F.col(_quoted(name))
    if isinstance(kind, IntegralType):
        return F.coalesce(column.cast("long"), F.lit(-1))
    if isinstance(kind, TimestampType | TimestampNTZType | DateType):
        return F.coalesce(F.unix_millis(column.cast("timestamp")), F.lit(-1))
    message = (
        f"backfill: the time of '{topic}' must be a timestamp, a date, or milliseconds as a whole number; column "
        f"'{name}' is of type {kind.simpleString()}; cast it"
    )
    raise ConfigError(message)


def _checked_headers(frame: DataFrame, topic: str, name: str) -> str:
    kind = frame.schema[name].dataType
    if not isinstance(kind, ArrayType) or not _is_header(kind.elementType):
        message = (
            f"backfill: the headers of '{topic}' must be an array of structs of a text and bytes; column '{name}' is "
            f"of type {kind.simpleString()}"
        )
        raise ConfigError(message)
    return name


def _is_header(kind: DataType) -> bool:
    types = {field.name: field.dataType for field in kind.fields} if isinstance(kind, StructType) else {}
    return isinstance(types.get("key"), StringType) and isinstance(types.get("value"), BinaryType)


class Records(NamedTuple):
    """Records by columns."""

    order: pa.Array
    partitions: pa.Array
    times: pa.Array
    keys: pa.Array
    values: pa.Array
    headers: list[Headers] | None
    """None: no record has any."""

    def outputs(self) -> list[tuple[int, Output]]:
        """Returns the records one by one, each with its place in the order."""
        columns = (self.partitions, self.times, self.keys, self.values)
        records = zip(*(column.to_pylist() for column in columns), self.headers or repeat(()), strict=False)
        return list(zip(self.order.to_pylist(), records, strict=False))


class RecordReader:
    """Makes records of Arrow batches that ``record_columns`` has selected; it travels to the workers."""

    def __init__(self, topic: str, rows: InputRows, topology: Topology, config: StreamsConfig) -> None:
        table = topology.global_store_for(topic)
        node = topology.source_for(topic) if table is None else topology.nodes[table.source]
        assert isinstance(node, SourceNode), "the topic is one that is read"
        self._topic = topic
        self._serdes = key_serde(node.key_serde, config), value_serde(node.value_serde, config)
        self._key, self._value = rows.key, rows.value
        self._names = _needed(rows)

    def read(self, batch: pa.RecordBatch) -> Records:
        """Returns the records of a batch."""
        own = {
            name: batch.column(name) for name in ("time", "order", "partition", "headers") if name in batch.schema.names
        }
        columns = dict(zip(self._names, batch.columns[len(own) :], strict=True))
        partitions = own.get("partition", pa.nulls(len(batch), pa.int32()))
        headers = None
        if "headers" in own:
            headers = [headers_of(each, self._topic) for each in own["headers"].to_pylist()]
        keys = pa.nulls(len(batch), pa.binary()) if self._key is None else self._part(columns, self._key, is_key=True)
        values = self._part(columns, self._value, is_key=False)
        return Records(own["order"], partitions, own["time"], keys, values, headers)

    def _part(self, columns: dict[str, pa.Array], part: Columns, *, is_key: bool) -> pa.Array:
        if isinstance(part, str):
            if pa.types.is_binary(columns[part].type) or pa.types.is_large_binary(columns[part].type):
                return columns[part].cast(pa.binary())
            objects: Sequence[Any] = columns[part].to_pylist()
        else:
            names = list(columns) if part is None or callable(part) else list(part)
            lists = [columns[name].to_pylist() for name in names]
            objects = [dict(zip(names, each, strict=True)) for each in zip(*lists, strict=True)]
            if callable(part):
                objects = [part(each) for each in objects]
        write = writer(self._serdes[0 if is_key else 1], self._topic, is_key=is_key)
        return pa.array([None if each is None else write(each) for each in objects], pa.binary())
