"""The data source ``headrace``, and how a Spark session gets to know it."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from headrace.spark.dataframes.batches import require_pyarrow
from headrace.spark.dataframes.options import Options
from headrace.spark.dataframes.sql_reader import SqlReader, find_source, source_schema
from headrace.spark.dataframes.store_reader import StoreReader, find_store, store_schema
from headrace.spark.dataframes.topic_reader import TopicReader, topic_schema
from headrace.spark.dataframes.writer import TopicWriter

_PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Lets a session read and write topics and tables: ``spark.read.format("headrace")``.

    It also switches on ``spark.sql.python.filterPushdown.enabled``, without which Spark refuses sources that take
    filters.

    >>> class Session:  # stands for a SparkSession, which takes seconds to start
    ...     conf = {}
    ...     class dataSource:
    ...         register = print
    >>> Session.conf = type("Conf", (), {"set": print})
    >>> register(Session)
    spark.sql.python.filterPushdown.enabled true
    <class 'headrace.spark.dataframes.source.HeadraceSource'>
    """
    require_pyarrow()
    spark.conf.set(_PUSH_DOWN, "true")
    spark.dataSource.register(HeadraceSource)


class HeadraceSource(DataSource):
    """Topics, stores of applications, and tables of SQL, by the options that ``Options`` has."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> StructType:
        """Returns the columns that are read unless ``spark.read.schema`` says otherwise."""
        options = self._options
        if options.store is not None:
            return store_schema(find_store(options))
        if options.server is not None:
            return source_schema(find_source(options)[0])
        return topic_schema(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._options
        if options.store is not None:
            return StoreReader(options, schema)
        if options.server is not None:
            return SqlReader(options, schema)
        return TopicReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        return TopicWriter(self._options, schema, overwrite=overwrite)

    @property
    def _options(self) -> Options:
        return Options.of(dict(self.options))
