"""The engine: a topology as a Spark query, and the only home of pyspark.

On the driver: ``engine`` runs a ``query``, for which a ``planner`` decides what each micro-batch (``batch``) reads. On
the workers: a ``level``, behind a ``level_processor`` if there is state, runs its tasks through a ``task_runner``,
which keeps each one as a ``live_task`` above its ``working_copy``; a ``task_batch`` is what one of them does in one
micro-batch. ``chunks`` are the state. ``layout`` says which task is where, and ``receipts`` is what travels.
``session``, ``jvm``, ``java`` and ``class_archive`` start Spark.
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
