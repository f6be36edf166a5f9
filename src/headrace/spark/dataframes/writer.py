"""Data frame to a topic: all rows or none on the embedded log, a transaction for each task on Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import DataType, StructType
from pyspark.taskcontext import TaskContext

from headrace.errors import ConfigError, did_you_mean
from headrace.spark.dataframes.columns import ColumnFormat, column_format
from headrace.spark.dataframes.options import Options
from headrace.spark.dataframes.topic_reader import DEFAULT_FORMATS, KEY, RECORD_COLUMNS, VALUE
from headrace.spark.header_columns import headers_of
from headrace.topics.embedded import EmbeddedLog
from headrace.topics.journal import DurableLog, Receipt
from headrace.topics.log import Output

if TYPE_CHECKING:
    import pyarrow

    from headrace.topics.kafka import KafkaLog

_COLUMNS = {name: type for name, type in RECORD_COLUMNS.items() if name != "offset"}


@dataclass
class TaskWritten(WriterCommitMessage):
    """Result of a write task."""

    receipt: Receipt | None
    """What is to be committed; None if the task has committed it itself."""


class TopicWriter(DataSourceArrowWriter):
    """Writes columns ``key``, ``value``, ``partition``, ``timestamp`` and ``headers``, as far as there are any."""

    def __init__(self, options: Options, schema: StructType, *, overwrite: bool) -> None:
        if options.topic is None:
            message = "data source headrace: only topics can be written; name one with the option 'topic'"
            raise ConfigError(message)
        if overwrite:
            message = (
                f"data source headrace: topic '{options.topic}' cannot be overwritten, a topic only grows; use "
                "mode('append'), or delete the topic and create it anew first"
            )
            raise ConfigError(message)
        self._options = options.resolved()
        self._topic = options.topic
        self._schema = schema
        self._name = f"dataframe-{token_hex(8)}"
        _formats(options, schema)
        with closing(self._options.open_log()) as log:
            # It says so before anything runs.
            log.describe_topic(self._topic)
            if isinstance(log, EmbeddedLog):
                log.staged_append(self._name).begin()

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Stages the rows of a task on the embedded log, or writes them to Kafka in a transaction."""
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        rows = _Outputs(self._options, self._schema, self._topic).of(iterator)
        with closing(self._options.open_log()) as log:
            if isinstance(log, EmbeddedLog):
                return TaskWritten(log.staged_append(self._name).stage(str(task), self._topic, rows))
            # A second attempt has the same id, so that the brokers end the transaction of the first one.
            _kafka(log).append_in_transaction(self._topic, rows, self._transactional_id(task))
            return TaskWritten(None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Makes everything visible that tasks have staged, in one transaction."""
        receipts = [each.receipt for each in messages if isinstance(each, TaskWritten) and each.receipt is not None]
        with closing(self._options.open_log()) as log:
            if isinstance(log, EmbeddedLog):
                log.staged_append(self._name).commit(receipts)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Forgets what tasks have staged; what tasks have committed to Kafka stays.

        Spark lets tasks of a failed job go on for some seconds: none of them may commit after this.
        """
        with closing(self._options.open_log()) as log:
            if isinstance(log, EmbeddedLog):
                log.staged_append(self._name).discard()
            else:
                late = [self._transactional_id(task) for task, message in enumerate(messages) if message is None]
                _kafka(log).fence(self._topic, late)

    def _transactional_id(self, task: int) -> str:
        return f"{self._name}-{task}"


# Imported in here: the client of Kafka is optional.
def _kafka(log: DurableLog) -> KafkaLog:
    from headrace.topics.kafka import KafkaLog

    assert isinstance(log, KafkaLog), "there are two logs"
    return log


def _formats(options: Options, schema: StructType) -> dict[str, ColumnFormat]:
    """Returns the formats of key and value; raises for columns that cannot be written."""
    formats = {}
    names = (KEY, VALUE, *_COLUMNS)
    if VALUE not in schema.fieldNames():
        message = (
            "data source headrace: rows need a column 'value', such as struct(…).alias('value'); without it every "
            "record would be a deletion: write NULL if that is meant"
        )
        raise ConfigError(message)
    for field in schema.fields:
        if field.name in DEFAULT_FORMATS:
            named: str = getattr(options, field.name) or DEFAULT_FORMATS[field.name]
            found = column_format(named, field.dataType)
            if not isinstance(field.dataType, found.accepts):
                raise _refusal(field.name, field.dataType, f"the format '{named}'")
            formats[field.name] = found
        elif field.name not in _COLUMNS:
            message = (
                f"data source headrace: a topic has no column '{field.name}' that could be written"
                f"{did_you_mean(field.name, names)}; columns are {', '.join(names)}: drop it, or put it into the "
                "value, such as struct(…).alias('value')"
            )
            raise ConfigError(message)
        elif field.dataType.simpleString() != _COLUMNS[field.name].simpleString():
            raise _refusal(field.name, field.dataType, _COLUMNS[field.name].simpleString())
    return formats


def _refusal(name: str, type: DataType, required: str) -> ConfigError:
    remedy = f"cast it, or name another format with the option '{name}'" if name in DEFAULT_FORMATS else "cast it"
    message = f"data source headrace: column '{name}' is {type.simpleString()}, and must fit {required}; {remedy}"
    return ConfigError(message)


class _Outputs:
    """Turns record batches into records."""

    def __init__(self, options: Options, schema: StructType, topic: str) -> None:
        self._write = {name: each.writer(topic, is_key=name == KEY) for name, each in _formats(options, schema).items()}
        self._names = schema.fieldNames()
        self._topic = topic

    def of(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[Sequence[Output]]:
        for batch in batches:
            if batch.num_rows:
                yield self._outputs(batch)

    def _outputs(self, batch: pyarrow.RecordBatch) -> list[Output]:
        columns = dict(zip(self._names, batch.columns, strict=True))
        count = batch.num_rows
        data = {
            name: [None if each is None else write(each) for each in columns[name].to_pylist()]
            for name, write in self._write.items()
        }
        nothing: list[Any] = [None] * count
        return list(
            zip(
                columns["partition"].to_pylist() if "partition" in columns else nothing,
                _times(columns.get("timestamp"), count),
                data.get(KEY, nothing),
                data.get(VALUE, nothing),
                [headers_of(each, self._topic) for each in columns["headers"].to_pylist()]
                if "headers" in columns
                else [()] * count,
                strict=True,
            )
        )


def _times(column: pyarrow.Array | None, count: int) -> list[int]:
    import pyarrow

    now_ms = time.time_ns() // 1_000_000
    if column is None:
        return [now_ms] * count
    moments = column.cast(pyarrow.timestamp("us", tz="UTC")).cast(pyarrow.int64()).to_pylist()
    return [now_ms if each is None else each // 1000 for each in moments]
