"""Spark: the executor of micro-batches, data frames, and the only package that imports pyspark.

| module | what it is about |
|---|---|
| `spark_engine` | the engine of an application, with a Spark context of its own, or one that many share |
| `executor`, `jobs`, `level` | a job per tick: its stages, what passes between them, the tasks of a slot |
| `payload`, `shipping`, `failures` | how applications get to the workers, and errors back |
| `affinity` | slots run in the process that has their tasks open |
| `assignment`, `placement`, `standby_job`, `cluster` | slots on executors, and copies on others |
| `context`, `masters`, `jvm`, `java`, `scratch`, `cache` | Spark itself: settings, Java, directories |
| `jvm_log`, `jvm_output` | the JVM's log files, and its output |
| `daemon`, `worker_start`, `worker_garbage` | Python workers, and what they are forked from |
| `class_archive`, `later_archive`, `prepare` | the archive that lets the JVM start fast |
| `parallel_map` | parts of a change on executors |
| `header_columns` | headers of records in data frames |

``bounded`` has backfills over data frames, ``dataframes`` the data source for topics and tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.errors import missing_package

if TYPE_CHECKING:
    from headrace.backfill import Backfill, backfill
    from headrace.spark.bounded.input_rows import InputRows
    from headrace.spark.dataframes.catalogue import tables
    from headrace.spark.dataframes.source import register

__all__ = ["Backfill", "InputRows", "backfill", "register", "tables"]

_HOMES = {
    "Backfill": "headrace.backfill",
    "InputRows": "headrace.spark.bounded.input_rows",
    "backfill": "headrace.backfill",
    "register": "headrace.spark.dataframes.source",
    "tables": "headrace.spark.dataframes.catalogue",
}


# Any: whatever the name stands for.
def __getattr__(name: str) -> Any:
    """Loads what users ask for when they do: micro-batches need nothing of it."""
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            raise missing_package(error, "work with data frames", "dataframes") from error
    message = f"module '{__name__}' has no attribute '{name}'"
    raise AttributeError(message)
