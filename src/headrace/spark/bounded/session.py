"""Spark session of a command that reads and writes files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.config import StreamsConfig
from headrace.errors import StreamsError
from headrace.spark.context import close_context, open_context
from headrace.spark.failures import reason


class FileSession:
    """Reads and writes data frames in any format that Spark knows."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def read(self, path: str, form: str, options: Mapping[str, str]) -> DataFrame:
        """Returns the rows of a file or folder."""
        try:
            return self._spark.read.format(form).options(**options).load(path)
        except PySparkException as error:
            message = f"'{path}' cannot be read as {form}: {reason(error)}"
            raise StreamsError(message) from error

    def write(self, frame: DataFrame, path: str, form: str) -> None:
        """Writes rows to a folder that is not there yet."""
        try:
            frame.write.format(form).save(path)
        except PySparkException as error:
            message = f"'{path}' cannot be written as {form}: {reason(error)}"
            raise StreamsError(message) from error


@contextmanager
def open_session(config: StreamsConfig, directory: Path) -> Iterator[FileSession]:
    """Starts Spark with the settings of an application, whose files are in a directory."""
    context = open_context(config, directory=directory)
    try:
        yield FileSession(SparkSession(context))
    finally:
        close_context(context)
