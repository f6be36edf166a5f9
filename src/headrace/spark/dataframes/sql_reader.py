"""Tables and streams of SQL as data frames, with the columns that their statements have declared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.errors import ConfigError, TopicError, did_you_mean
from headrace.spark.dataframes.batches import BatchMaker
from headrace.spark.dataframes.catalogue import fetch_sources
from headrace.spark.dataframes.filters import KeyBytes, Pushable, Range
from headrace.spark.dataframes.options import Options
from headrace.spark.dataframes.scanning import ScanCounts, ScanRange, asked_bounds, plan_ranges, scan
from headrace.spark.dataframes.store_reader import in_time, of_keys
from headrace.spark.dataframes.store_rows import StoreShape, TableRow, restored
from headrace.sql.catalog.source_json import ReadableSource
from headrace.sql.functions import BUILTIN_FUNCTIONS
from headrace.sql.planning.sources import FromSource
from headrace.sql.planning.typing import Typing
from headrace.sql.reading.record_rows import RecordRows, Unreadable
from headrace.sql.reading.tables.carried_headers import packed, unpacked
from headrace.sql.reading.tables.expiry import Expiry
from headrace.sql.types import SqlArray, SqlBaseType, SqlDecimal, SqlMap, SqlStruct, SqlType
from headrace.topics.log import Raw

if TYPE_CHECKING:
    import pyarrow

_TIME, _PARTITION, _OFFSET = "ROWTIME", "ROWPARTITION", "ROWOFFSET"
_TYPES: dict[SqlBaseType, DataType] = {
    SqlBaseType.BOOLEAN: BooleanType(),
    SqlBaseType.INTEGER: IntegerType(),
    SqlBaseType.BIGINT: LongType(),
    SqlBaseType.DOUBLE: DoubleType(),
    SqlBaseType.STRING: StringType(),
    SqlBaseType.BYTES: BinaryType(),
    SqlBaseType.DATE: DateType(),
    # Milliseconds of the day: Spark's own type of times is not there in all sessions.
    SqlBaseType.TIME: IntegerType(),
    SqlBaseType.TIMESTAMP: TimestampType(),
}
_UNKNOWN = -1

Row = Sequence[Any]
"""Values of all columns of a source, in its order."""


def find_source(options: Options) -> tuple[ReadableSource, Options]:
    """Asks the server for a source; returns options that name its log, unless they name one themselves."""
    kind, name = ("TABLE", options.table) if options.table is not None else ("STREAM", options.stream)
    server = options.server or ""
    authority = options.config.http_tls_authority
    found = fetch_sources(server, token=options.server_token, user=options.server_user, authority=authority)
    # As in statements: a name that is not quoted is meant in capitals.
    source = found.sources.get(name or "") or found.sources.get((name or "").upper())
    if source is None or source.definition.kind != kind:
        known = [each for each, source in found.sources.items() if source.definition.kind == kind]
        message = (
            f"the SQL server at {server} has no {kind.lower()} '{name}'{did_you_mean(name or '', known)}; it has "
            f"{', '.join(known) or 'none'}"
        )
        raise TopicError(message)
    if options.names_log:
        return source, options
    return source, options.at(found.log)


def source_schema(source: ReadableSource) -> StructType:
    """Returns the columns of a source: those of ``SELECT *``, then those that every row has.

    >>> from headrace.sql.catalog import SourceDefinition
    >>> from headrace.sql.types.schema import Column, Namespace, Schema
    >>> from headrace.sql.types import BIGINT, STRING
    >>> columns = Schema((Column("N", BIGINT), Column("ID", STRING, Namespace.KEY)))
    >>> counts = SourceDefinition("TABLE", "COUNTS", columns, "counts", "KAFKA", "JSON")
    >>> source_schema(ReadableSource(counts)).simpleString()
    'struct<ID:string,N:bigint,ROWTIME:bigint,ROWPARTITION:int>'
    """
    known = FromSource(source.definition.name, source.definition)
    names = (*known.starred, _TIME, _PARTITION, *(() if known.is_table else (_OFFSET,)))
    return StructType([StructField(name, spark_type(known.columns[name].type)) for name in names])


def spark_type(type: SqlType) -> DataType:
    """Returns the type of Spark for one of SQL."""
    match type:
        case SqlDecimal():
            return DecimalType(type.precision, type.scale)
        case SqlArray():
            return ArrayType(spark_type(type.item))
        case SqlMap():
            return MapType(spark_type(type.key), spark_type(type.value))
        case SqlStruct():
            return StructType([StructField(each.name, spark_type(each.type)) for each in type.fields])
    return _TYPES[type.base]


class SqlReader(DataSourceReader):
    """Reads the topic of a source; filters on the key, on ROWPARTITION, ROWOFFSET and ROWTIME narrow what is read."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._source, options = find_source(options)
        self._options = options.resolved()
        self._schema = schema
        known = {each.name: each.dataType.simpleString() for each in source_schema(self._source).fields}
        for field in schema.fields:
            if known.get(field.name) != field.dataType.simpleString():
                message = (
                    f"data source headrace: {self._source.definition.name} has no column {field.name} "
                    f"{field.dataType.simpleString()}{did_you_mean(field.name, known)}; its columns are "
                    f"{', '.join(f'{name} {type}' for name, type in known.items())}"
                )
                raise ConfigError(message)
        self._bounds = asked_bounds(options)
        self.counts: ScanCounts | None = None
        """Of the range that was read last."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what narrows the reading; Spark applies the rest."""
        definition = self._source.definition
        key, key_bytes = self._key()
        pushable = Pushable(
            partition=_PARTITION,
            offset=None if definition.is_table else _OFFSET,
            # A column of the row says its time, or the record does.
            time=None if definition.timestamp is not None or definition.window is not None else _TIME,
            key=key,
            key_bytes=key_bytes,
        )
        self._bounds, left = pushable.push(self._bounds, filters)
        return left

    def _key(self) -> tuple[str | None, KeyBytes | None]:
        """Returns the column of the key and what writes it, if equal keys have equal bytes."""
        definition = self._source.definition
        serde = self._records().key_serde
        if len(definition.schema.key) != 1 or definition.window is not None or not serde.identity:
            return None, None
        write = serde.serializer(definition.topic, is_key=True)
        return definition.schema.key[0].name, lambda value: write((value,))

    def partitions(self) -> Sequence[InputPartition]:
        """Returns ranges of a stream, partitions of a table, up to what is committed now."""
        definition = self._source.definition
        with closing(self._options.open_log()) as log:
            split = not definition.is_table
            return list(plan_ranges(log, definition.topic, self._options, self._bounds, split=split))

    def _records(self) -> RecordRows:
        definition = self._source.definition
        return RecordRows(FromSource(definition.name, definition), Typing(BUILTIN_FUNCTIONS, {}, {}))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows of a range."""
        if not isinstance(partition, ScanRange):
            # All ranges were filtered out: Spark asks for one all the same.
            return
        self.counts = counts = ScanCounts(partition.topic, partition.partition)
        batches, columns = BatchMaker(self._schema), _Columns(self._source, self._schema)
        rows = self._table_rows if self._source.definition.is_table else self._stream_rows
        for some in rows(partition, counts):
            if some:
                counts.rows += len(some)
                yield batches.make(columns.of(some))
        counts.report()

    def _stream_rows(self, part: ScanRange, counts: ScanCounts) -> Iterator[list[Row]]:
        records, keys = self._records(), self._bounds.keys
        with closing(self._options.open_log()) as log:
            for found in of_keys(scan(log, part, self._bounds.times_ms, counts), keys):
                yield [row for record in found if (row := _row(records, part.partition, record)) is not None]

    def _table_rows(self, part: ScanRange, counts: ScanCounts) -> Iterator[list[Row]]:
        records, expiry = self._records(), self._source.expiry
        has_headers, latest = bool(self._source.definition.schema.headers), -1

        def changelog() -> Iterator[list[Raw]]:
            def passing_time() -> Iterator[list[Raw]]:
                nonlocal latest
                for found in scan(log, part, Range(), counts):
                    if expiry is not None:
                        latest = max(latest, _latest_time(expiry, records, part.partition, found))
                    yield found

            # Other keys move the clock, too.
            for found in of_keys(passing_time(), self._bounds.keys):
                yield [_with_headers(record) for record in found] if has_headers else found

        def to_row(row: TableRow) -> Row | None:
            value, headers = unpacked(row.value) if has_headers else (row.value, ())
            return _row(records, part.partition, (_UNKNOWN, row.timestamp_ms or 0, row.key, value, headers))

        shape = StoreShape(self._source.definition.name)
        with (
            closing(self._options.open_log()) as log,
            restored(shape, changelog(), part.stop - part.start) as found,
        ):
            for some in in_time(found, self._bounds.times_ms):
                made = [(row.key, to_row(row)) for row in some]
                if expiry is None:
                    yield [row for _, row in made if row is not None]
                    continue
                now = time.time_ns() // 1_000_000 if expiry.clock == "wall_clock" else latest
                horizon = now - expiry.retention_ms
                yield [row for key, row in made if row is not None and expiry.time_of(key, row[0]) > horizon]


def _latest_time(expiry: Expiry, records: RecordRows, partition: int, found: Sequence[Raw]) -> int:
    """Returns the latest time of what was read, by which others expire: of windows, or of rows; -1: there is none."""
    if expiry.of == "rows" and expiry.column is None:
        # As in a task, whatever is read moves the clock, deletions too.
        return max((time_ms for _, time_ms, _, _, _ in found), default=-1)
    with_value = [record for record in found if record[2] is not None and record[3] is not None]
    if expiry.of == "rows":
        rows = (_row(records, partition, record) for record in with_value)
        return max((row[0] for row in rows if row is not None), default=-1)
    return max((expiry.time_of(key or b"", time_ms) for _, time_ms, key, _, _ in with_value), default=-1)


def _with_headers(record: Raw) -> Raw:
    offset, time_ms, key, value, headers = record
    return offset, time_ms, key, None if value is None else packed(value, headers), ()


def _row(records: RecordRows, partition: int, record: Raw) -> Row | None:
    offset, time_ms, key, value, headers = record
    try:
        return records.row(partition, offset, time_ms, key, value, headers)
    except Unreadable:
        # As queries do: it is in their log.
        return None


class _Columns:
    """Turns rows of a source into columns."""

    def __init__(self, source: ReadableSource, schema: StructType) -> None:
        known = FromSource(source.definition.name, source.definition).columns
        places = {name: number for number, name in enumerate(known)}
        self._columns = [
            (name, places[name], _arrow_converter(known[name].type, within=False)) for name in schema.fieldNames()
        ]

    def of(self, rows: list[Row]) -> dict[str, Sequence[Any]]:
        columns: dict[str, Sequence[Any]] = {}
        for name, place, convert in self._columns:
            values = [row[place] for row in rows]
            columns[name] = values if convert is None else [None if each is None else convert(each) for each in values]
        return columns


def _arrow_converter(type: SqlType, *, within: bool = True) -> Callable[[Any], Any] | None:
    """Returns what turns a value of SQL into one that Arrow takes; None: it is the same."""
    match type:
        case SqlArray():
            item = _arrow_converter(type.item)
            return None if item is None else lambda values: [None if each is None else item(each) for each in values]
        case SqlMap():
            value = _arrow_converter(type.value) or _identity
            return lambda found: [(key, None if each is None else value(each)) for key, each in found.items()]
        case SqlStruct():
            parts = {each.name: _arrow_converter(each.type) or _identity for each in type.fields}
            return lambda row: {
                name: None if row.get(name) is None else part(row[name]) for name, part in parts.items()
            }
    # Columns of timestamps are in milliseconds, what is inside of others in microseconds, as Arrow has it.
    return (lambda time_ms: time_ms * 1000) if within and type.base is SqlBaseType.TIMESTAMP else None


def _identity(value: Any) -> Any:
    return value
