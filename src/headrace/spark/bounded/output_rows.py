"""Records of output topics as data frames: keys and values by serde, in columns of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, BooleanType, DataType, DoubleType, LongType, StringType, StructType

from headrace.batches.bounded_rows import RowKind, unpack_headers
from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.runtime.serde_defaults import key_serde, reader, value_serde
from headrace.serdes import Serde
from headrace.serdes.json import JsonSerde
from headrace.spark.bounded.row_pages import unpacked_rows
from headrace.spark.shipping import pack
from headrace.topology.topology import Topology
from headrace.windows import Windowed

_KINDS: dict[type, type[DataType]] = {
    str: StringType,
    int: LongType,
    float: DoubleType,
    bool: BooleanType,
}
_HEADERS = "array<struct<key:string,value:binary>>"
_COLUMNS = ["key", "value", "timestamp", "headers", "partition", "task", "sequence"]
_ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def sink_serdes(topology: Topology, config: StreamsConfig, topic: str) -> tuple[Serde[Any], Serde[Any]]:
    """Returns the serdes with which a topology writes a topic; those of the configuration if no sink names it."""
    named = (sink for sink in topology.sink_nodes if sink.topic == topic)
    sink = next(named, None)
    if sink is None:
        return config.default_key_serde, config.default_value_serde
    return key_serde(sink.key_serde, config), value_serde(sink.value_serde, config)


def output_frame(
    pages: DataFrame, topic: str, serdes: tuple[Serde[Any], Serde[Any]], schema: str | None = None
) -> DataFrame:
    """Returns the records of a topic, which lie in pages, as a data frame.

    ``schema`` says of which types keys and values are.
    """
    types = [_column_type(serde) for serde in serdes]
    if schema is not None:
        given = {field.name: field.dataType for field in _struct(schema).fields}
        if unknown := given.keys() - {"key", "value"}:
            message = (
                f"backfill: a schema of '{topic}' has the columns key and value; found {', '.join(sorted(unknown))}"
            )
            raise ConfigError(message)
        types = [given.get(name, kind) for name, kind in zip(("key", "value"), types, strict=True)]
    chosen = pages.filter((F.col("kind") == int(RowKind.OUTPUT)) & (F.col("topic") == topic))
    result = (
        f"key {types[0].simpleString()}, value {types[1].simpleString()}, timestamp long, headers {_HEADERS}, "
        "partition int, task int, sequence long"
    )
    stage = _OutputStage(topic, pack(tuple(_decoder(*each) for each in zip(serdes, types, strict=True))), types)
    return (
        chosen.select("task", "data").mapInArrow(stage, result).withColumn("timestamp", F.timestamp_millis("timestamp"))
    )


def _struct(schema: str) -> StructType:
    found = StructType.fromDDL(schema)
    assert isinstance(found, StructType), "columns are a struct"
    return found


def _column_type(serde: Serde[Any]) -> DataType:
    if isinstance(serde, JsonSerde):
        return StringType()
    return _KINDS.get(getattr(serde, "exact_type", bytes), BinaryType)()


def _decoder(serde: Serde[Any], kind: DataType) -> Serde[Any] | None:
    """Returns the serde for a column that does not hold raw bytes."""
    is_text = isinstance(serde, JsonSerde) and isinstance(kind, StringType)
    return None if is_text or isinstance(kind, BinaryType) else serde


class _OutputStage:
    """Reads keys and values, on a worker."""

    def __init__(self, topic: str, serdes: bytes, types: list[DataType]) -> None:
        self._topic = topic
        self._serdes = serdes
        self._types = types

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        serdes = cloudpickle.loads(self._serdes)
        for batch in batches:
            for task, data in zip(*batch.columns, strict=True):
                yield self._records(task, unpacked_rows(data.as_buffer()), serdes)

    def _records(self, task: pa.Scalar, rows: pa.RecordBatch, serdes: Sequence[Serde[Any] | None]) -> pa.RecordBatch:
        read = [
            self._read(rows.column(name), serde, kind, is_key=name == "key")
            for name, serde, kind in zip(("key", "value"), serdes, self._types, strict=True)
        ]
        headers = pa.array([_header_rows(each) for each in rows.column("headers").to_pylist()], _ARROW_HEADERS)
        rest = [rows.column("partition"), pa.repeat(task, len(rows)), rows.column("sequence")]
        return pa.RecordBatch.from_arrays([*read, rows.column("timestamp"), headers, *rest], names=_COLUMNS)

    def _read(self, column: pa.Array, serde: Serde[Any] | None, kind: DataType, *, is_key: bool) -> pa.Array:
        wanted = to_arrow_type(kind)
        if serde is None:
            return column.cast(wanted)
        decode = reader(serde, self._topic, is_key=is_key)
        return pa.array([None if each is None else as_plain(decode(each)) for each in column.to_pylist()], wanted)


def _header_rows(data: bytes | None) -> list[dict[str, Any]] | None:
    return None if data is None else [{"key": name, "value": value} for name, value in unpack_headers(data)]


# Any: keys and values are the user's.
def as_plain(value: Any) -> Any:
    """Returns an object as Arrow takes it: a windowed key is a struct of key, start_ms and end_ms.

    >>> from headrace.windows import TimeWindow
    >>> as_plain(Windowed("alice", TimeWindow(0, 10)))
    {'key': 'alice', 'start_ms': 0, 'end_ms': 10}
    """
    if isinstance(value, Windowed):
        return {"key": as_plain(value.key), "start_ms": value.window.start_ms, "end_ms": value.window.end_ms}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    return value
