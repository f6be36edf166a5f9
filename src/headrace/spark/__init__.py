"""Spark as the executor of micro-batches, and the only home of pyspark.

| module | what it is about |
|---|---|
| `engine` | the engine of an application, with a Spark context of its own, or one that many share |
| `executor`, `jobs`, `level` | a job per tick: its stages, what passes between them, the tasks of a slot |
| `payload`, `shipping`, `failures` | how applications get to the workers, and errors back |
| `affinity` | slots run in the process that has their tasks open |
| `assignment`, `placement`, `standby_job`, `cluster` | slots on executors, and copies on others |
| `context`, `masters`, `jvm`, `java`, `scratch`, `cache` | Spark itself: settings, Java, directories |
| `jvm_log`, `jvm_output` | what the JVM has to say, and who sees it |
| `daemon`, `worker_start` | Python workers, and what they are forked from |
| `class_archive`, `later_archive`, `prepare` | the archive that lets the JVM start fast |
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.spark.dataframes.catalogue import tables
    from headrace.spark.dataframes.source import register

__all__ = ["register", "tables"]

# Loaded when they are asked for: the engine needs neither pyarrow nor what lies above it.
_LAZY = {"register": "headrace.spark.dataframes.source", "tables": "headrace.spark.dataframes.catalogue"}


# Any: whatever the name stands for.
def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    message = f"module '{__name__}' has no attribute '{name}'"
    raise AttributeError(message)
