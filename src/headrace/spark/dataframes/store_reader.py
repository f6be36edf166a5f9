"""Store of an application as a data frame: its current rows, from its changelog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import DataType, IntegerType, StructField, StructType, TimestampType

from headrace.app.description import Description
from headrace.errors import ConfigError, UnknownStateStoreError, did_you_mean
from headrace.spark.dataframes.batches import BatchMaker
from headrace.spark.dataframes.columns import WINDOW_COLUMNS, ColumnFormat, ColumnReader, column_format, is_format
from headrace.spark.dataframes.filters import Bounds, Pushable, Range, milliseconds_of
from headrace.spark.dataframes.options import Options
from headrace.spark.dataframes.scanning import ScanCounts, ScanRange, plan_ranges, scan
from headrace.spark.dataframes.store_rows import StoreShape, TableRow, restored
from headrace.spark.dataframes.topic_reader import KEY, VALUE
from headrace.topics.journal import DurableLog
from headrace.topics.log import Raw
from headrace.topology.outline import StoreOutline

if TYPE_CHECKING:
    import pyarrow

_ROWS_AT_ONCE = 10_000
_TIMED = "timestamped_key_value"
_BY_KEY = ("key_value", _TIMED, "versioned")
"""Kinds whose rows do not depend on rows of other keys: windows expire when there are later ones, of any key."""


@dataclass(frozen=True)
class FoundStore:
    """A store that was found in the log: its topic, and the formats of its rows."""

    application: str
    topic: str
    shape: StoreShape
    formats: dict[str, str]
    """Of key and value, by their names."""
    is_bounded: bool
    """Whether the topic is not the store's own: then rows count up to where the application has read it."""


def find_store(options: Options) -> FoundStore:
    """Returns the store that options name, as the application's description in the log has it."""
    application, name = options.application or "", options.store or ""
    with closing(options.open_log()) as log:
        description = Description.read(log, application)
        if description is None:
            hint = did_you_mean(application, log.applications())
            message = f"the log knows no application '{application}'{hint}; it has to be started there once"
            raise UnknownStateStoreError(message)
    outline = description.outline
    store = outline.store_named.get(name)
    if store is None or store.topic is None or store.with_duplicates:
        known = [each.name for each in outline.stores if each.topic is not None and not each.with_duplicates]
        message = (
            f"application '{application}' has no store '{name}' whose rows are in the log{did_you_mean(name, known)}; "
            f"it has {', '.join(known) or 'none'}"
        )
        raise UnknownStateStoreError(message)
    topic = outline.changelog_of(name, application) or outline.full_topic_name(store.topic, application)
    return FoundStore(
        application,
        topic,
        StoreShape(name, store.kind, store.window_ms, store.retention_ms, store.by_time),
        {KEY: _find_serde_name(options.key, store, KEY), VALUE: _find_serde_name(options.value, store, VALUE)},
        is_bounded=not store.is_logged and not store.is_global,
    )


def _find_serde_name(given: str | None, store: StoreOutline, column: str) -> str:
    if given is not None:
        return given
    serde = store.key_serde if column == KEY else store.value_serde
    # The type that JSON is read as does not matter here: the schema of the data frame says it.
    name = serde.partition("(")[0]
    if not is_format(name):
        message = (
            f"the {column}s of store '{store.name}' are written by the serde {serde}, which has no type of Spark; name "
            f"a format with the option '{column}', such as 'bytes'"
        )
        raise ConfigError(message)
    return name


def store_schema(store: FoundStore) -> StructType:
    """Returns the columns of a store."""
    formats = {name: column_format(format).type for name, format in store.formats.items()}
    return StructType([StructField(name, type) for name, type in _columns(store, formats).items()])


def _columns(store: FoundStore, formats: dict[str, DataType]) -> dict[str, DataType]:
    windows = {each.name: each.dataType for each in WINDOW_COLUMNS} if store.shape.is_windowed else {}
    others = {"partition": IntegerType(), "timestamp": TimestampType()}
    return {KEY: formats[KEY], **windows, VALUE: formats[VALUE], **others}


class StoreReader(DataSourceReader):
    """Reads the changelog of a store; filters on partition, and where it is exact on key and timestamp, narrow it."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options.resolved()
        self._schema = schema
        self._store = find_store(options)
        self._formats()
        self._bounds = Bounds()
        self.counts: ScanCounts | None = None
        """Of the range that was read last."""

    def _formats(self) -> dict[str, ColumnFormat]:
        """Returns the formats of key and value; raises if the schema cannot be read."""
        asked = {each.name: each.dataType for each in self._schema.fields}
        formats = {name: column_format(format, asked.get(name)) for name, format in self._store.formats.items()}
        known = _columns(self._store, {name: each.type for name, each in formats.items()})
        for name, type in asked.items():
            if name not in known or type.simpleString() != known[name].simpleString():
                columns = ", ".join(f"{each} {type.simpleString()}" for each, type in known.items())
                message = (
                    f"data source headrace: store '{self._store.shape.name}' has no column {name} "
                    f"{type.simpleString()}{did_you_mean(name, known)}; its columns are {columns}"
                )
                raise ConfigError(message)
        return formats

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what narrows the reading; Spark applies the rest."""
        kind = self._store.shape.kind
        key = column_format(self._store.formats[KEY]).key_bytes(self._store.topic) if kind in _BY_KEY else None
        pushable = Pushable(
            partition="partition",
            time="timestamp" if kind == _TIMED else None,
            to_ms=milliseconds_of,
            key=KEY,
            key_bytes=key,
        )
        self._bounds, left = pushable.push(self._bounds, filters)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the partitions of the changelog, up to what is committed now."""
        with closing(self._options.open_log()) as log:
            options = self._bounded_options(log) if self._store.is_bounded else self._options
            return list(plan_ranges(log, self._store.topic, options, self._bounds, split=False))

    def _bounded_options(self, log: DurableLog) -> Options:
        topic, positions = self._store.topic, log.positions(self._store.application)
        read = {each: positions.get((topic, each), 0) for each in range(log.partitions_of(topic))}
        return replace(self._options, ending_offsets=read)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows of a partition."""
        if not isinstance(partition, ScanRange):
            # All partitions were filtered out: Spark asks for one all the same.
            return
        self.counts = counts = ScanCounts(partition.topic, partition.partition)
        batches = BatchMaker(self._schema)
        readers = {name: each.reader(partition.topic, is_key=name == KEY) for name, each in self._formats().items()}
        with closing(self._options.open_log()) as log:
            changelog = of_keys(scan(log, partition, Range(), counts), self._bounds.keys)
            with restored(self._store.shape, changelog, partition.stop - partition.start) as rows:
                for some in in_time(rows, self._bounds.times_ms):
                    counts.rows += len(some)
                    yield batches.make(self._made(some, readers, partition.partition))
        counts.report()

    def _made(self, rows: list[TableRow], readers: dict[str, ColumnReader], partition: int) -> dict[str, Sequence[Any]]:
        keys, values, times, starts, ends = zip(*rows, strict=True)
        where = f"store '{self._store.shape.name}', partition {partition}"
        return {
            KEY: readers[KEY].read(keys, lambda number: f"the key {keys[number]!r} of {where}"),
            VALUE: readers[VALUE].read(values, lambda number: f"the row of key {keys[number]!r} of {where}"),
            "partition": [partition] * len(rows),
            "timestamp": times,
            WINDOW_COLUMNS[0].name: starts,
            WINDOW_COLUMNS[1].name: ends,
        }


def of_keys(changelog: Iterator[list[Raw]], keys: frozenset[bytes] | None) -> Iterator[list[Raw]]:
    """Yields the records of some keys, or all of them."""
    if keys is None:
        return changelog
    return ([record for record in part if record[2] in keys] for part in changelog)


def in_time(rows: Iterator[TableRow], times_ms: Range) -> Iterator[list[TableRow]]:
    """Yields rows within times, many at once."""
    if not times_ms.is_everything:
        rows = (row for row in rows if row.timestamp_ms is not None and row.timestamp_ms in times_ms)
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        yield some
