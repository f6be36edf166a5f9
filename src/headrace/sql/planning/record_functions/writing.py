"""Processor before a sink: event time from a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.processor import FixedKeyProcessor
from headrace.record import FixedKeyRecord
from headrace.sql.planning.record_functions.reading import ColumnTime
from headrace.windows import Windowed


@dataclass(frozen=True)
class TimeFromColumn:
    """Makes processors that give records the time that a column says."""

    time: ColumnTime

    def __call__(self) -> SetTime:
        return SetTime(self.time)


class SetTime(FixedKeyProcessor[Any, Any, Any]):
    """Gives each record the time of a column; one without a usable time is left out."""

    def __init__(self, time: ColumnTime) -> None:
        self._time = time

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        """Forwards the record with its time; a null row keeps the time it has."""
        key = record.key.key if type(record.key) is Windowed else record.key
        row = key if self._time.of_key else record.value
        if row is None:
            self.context.forward(record)
            return
        time_ms = self._time.time_of(row)
        if time_ms >= 0:
            self.context.forward(record.with_timestamp(time_ms))
