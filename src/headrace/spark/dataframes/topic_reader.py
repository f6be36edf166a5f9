"""Topic as a data frame: a row for each record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import (
    DataType,
    IntegerType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.errors import ConfigError, did_you_mean
from headrace.spark.dataframes.batches import BatchMaker
from headrace.spark.dataframes.columns import HEADERS_TYPE, ColumnFormat, column_format
from headrace.spark.dataframes.filters import Pushable, milliseconds_of
from headrace.spark.dataframes.options import Options
from headrace.spark.dataframes.scanning import ScanCounts, ScanRange, asked_bounds, plan_ranges, scan
from headrace.topics.log import Raw

if TYPE_CHECKING:
    import pyarrow

KEY, VALUE = "key", "value"
DEFAULT_FORMATS = {KEY: "string", VALUE: "json"}
"""The serdes of an application that names none."""
RECORD_COLUMNS: dict[str, DataType] = {
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "headers": HEADERS_TYPE,
}


def topic_schema(options: Options) -> StructType:
    """Returns the columns of a topic.

    >>> schema = topic_schema(Options(topic="orders", value="long"))
    >>> [f"{each.name} {each.dataType.simpleString()}" for each in schema][:5]
    ['key string', 'value bigint', 'partition int', 'offset bigint', 'timestamp timestamp']
    """
    formats = [StructField(name, _format(options, name).type) for name in (KEY, VALUE)]
    return StructType([*formats, *(StructField(name, type) for name, type in RECORD_COLUMNS.items())])


def _format(options: Options, name: str, type: DataType | None = None) -> ColumnFormat:
    named: str = getattr(options, name) or DEFAULT_FORMATS[name]
    return column_format(named, type, options.window_size)


def formats_of(options: Options, schema: StructType) -> dict[str, ColumnFormat]:
    """Returns the formats of key and value as far as the schema has them; raises if it cannot be read so."""
    known = {field.name: field.dataType for field in topic_schema(options).fields}
    formats = {}
    for field in schema.fields:
        if field.name not in known:
            message = (
                f"data source headrace: a topic has no column '{field.name}'{did_you_mean(field.name, known)}; its "
                f"columns are {', '.join(known)}"
            )
            raise ConfigError(message)
        required = known[field.name]
        if field.name in DEFAULT_FORMATS:
            found = formats[field.name] = _format(options, field.name, field.dataType)
            required = found.type
        if field.dataType.simpleString() != required.simpleString():
            message = (
                f"data source headrace: column '{field.name}' is read as {required.simpleString()}, and the schema "
                f"says {field.dataType.simpleString()}; change the schema, or the format"
            )
            raise ConfigError(message)
    return formats


class TopicReader(DataSourceReader):
    """Reads ranges of a topic; filters on key, partition, offset and timestamp narrow what is read."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options.resolved()
        self._schema = schema
        formats_of(options, schema)
        self._bounds = asked_bounds(options)
        self.counts: ScanCounts | None = None
        """Of the range that was read last."""

    @property
    def _topic(self) -> str:
        return self._options.topic or ""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what narrows the reading; Spark applies the rest."""
        pushable = Pushable(
            partition="partition",
            offset="offset",
            time="timestamp",
            to_ms=milliseconds_of,
            key=KEY,
            key_bytes=_format(self._options, KEY).key_bytes(self._topic),
        )
        self._bounds, left = pushable.push(self._bounds, filters)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """Returns ranges, up to what is committed now."""
        with closing(self._options.open_log()) as log:
            return list(plan_ranges(log, self._topic, self._options, self._bounds, split=True))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows of a range."""
        if not isinstance(partition, ScanRange):
            # All ranges were filtered out: Spark asks for one all the same.
            return
        self.counts = counts = ScanCounts(partition.topic, partition.partition)
        batches, columns = BatchMaker(self._schema), _Columns(formats_of(self._options, self._schema), partition)
        keys = self._bounds.keys
        with closing(self._options.open_log()) as log:
            for found in scan(log, partition, self._bounds.times_ms, counts):
                records = found if keys is None else [record for record in found if record[2] in keys]
                if records:
                    counts.rows += len(records)
                    yield batches.make(columns.of(records, batches.names))
        counts.report()


class _Columns:
    """Turns records of a partition into columns."""

    def __init__(self, formats: dict[str, ColumnFormat], part: ScanRange) -> None:
        self._readers = {name: each.reader(part.topic, is_key=name == KEY) for name, each in formats.items()}
        self._partition = part.partition
        self._where = f"partition {part.partition} of topic '{part.topic}'"

    def of(self, records: list[Raw], names: Sequence[str]) -> dict[str, Sequence[Any]]:
        offsets, times, keys, values, headers = zip(*records, strict=True)
        data = {KEY: keys, VALUE: values}

        def where(number: int) -> str:
            return f"the record at offset {offsets[number]} of {self._where}"

        columns: dict[str, Sequence[Any]] = {
            name: reader.read(data[name], where) for name, reader in self._readers.items()
        }
        if "headers" in names:
            # Most topics have none.
            columns["headers"] = (
                [[{"key": name, "value": value} for name, value in each] for each in headers]
                if any(headers)
                else [()] * len(records)
            )
        return columns | {"partition": [self._partition] * len(records), "offset": offsets, "timestamp": times}
