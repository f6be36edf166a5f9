"""Spark: the executor of micro-batches, and the front door for those who work with data frames.

``headrace.spark.backfill`` runs a topology over data frames. The rest runs micro-batches: ``docs/architecture.md`` says
which module does what. This is the only home of pyspark, and nothing of it is loaded before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.errors import MissingDependencyError

if TYPE_CHECKING:
    from headrace.backfill import Backfill, backfill
    from headrace.spark.input_rows import InputRows

_HOMES = {"Backfill": "headrace.backfill", "InputRows": "headrace.spark.input_rows", "backfill": "headrace.backfill"}

__all__ = ["Backfill", "InputRows", "backfill"]


# Any: whatever the name stands for.
def __getattr__(name: str) -> Any:
    """Loads what users ask for when they do: micro-batches need nothing of it."""
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("headrace"):
                raise
            message = f"data frames need the package '{error.name}'; run `pip install 'headrace[frames]'`"
            raise MissingDependencyError(message) from error
    message = f"module '{__name__}' has no attribute '{name}'"
    raise AttributeError(message)
