"""The stateful operator that Spark is given for a level: it declares the state, and leaves the work to ``level``.

For each level of a query Spark starts a Python process before the first micro-batch, only to see what is declared. So
that it has to import nothing of ours for that, which takes 0.8 s of CPU, the class travels by value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

if TYPE_CHECKING:
    from headrace.spark.application import Payload

# As objects: from a text, Spark's JVM would have to make them for each task anew.
_SEQUENCE = StructType([StructField("sequence", LongType())])
_DATA = StructType([StructField("data", BinaryType())])


class LevelProcessor(StatefulProcessor):
    """Runs the tasks of one level. Spark makes a new one for every partition and batch: what lasts is in ``level``."""

    def __init__(self, payload: Payload, level: int) -> None:
        # A plain tuple: the class of a named one would be looked for among our modules.
        self._payload = (payload.data, payload.digest)
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state of this partition."""
        self._cells = handle.getMapState("chunks", _SEQUENCE, _DATA)

    # Any: pyspark declares the rows of two interfaces as one, and its handles have no useful types.
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Runs one task, or lets its rows pass."""
        # Here, and not above: see the module's first lines.
        from headrace.spark.level import run_task

        yield from run_task(self._payload, self._level, key[0], rows, self._cells)

    def close(self) -> None:
        """Nothing is open that would have to be closed with the partition."""


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # pyspark's copy has no types
