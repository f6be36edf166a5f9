"""Handles of every kind, on one builder, for calls that are meant to be wrong."""

from datetime import timedelta
from typing import Any

from headrace import SessionWindows, StreamsBuilder, TimeWindows

MINUTE = timedelta(minutes=1)
MINUTES = TimeWindows.of_size_with_no_grace(MINUTE)
VISITS = SessionWindows.of_inactivity_gap_with_no_grace(MINUTE)


def pair(left: Any, right: Any) -> Any:
    return left, right


def add(_key: Any, _value: Any, total: int) -> int:
    return total + 1


class Given:
    """One of everything, and a stream and a table of another builder; Any, because most calls are meant to be wrong."""

    def __init__(self) -> None:
        self.builder: Any = StreamsBuilder()
        self.stream: Any = self.builder.stream("s")
        self.table: Any = self.builder.table("t")
        self.global_table: Any = self.builder.global_table("g")
        self.grouped: Any = self.stream.group_by_key()
        self.grouped_table: Any = self.table.group_by(pair)
        self.windowed: Any = self.grouped.windowed_by(MINUTES)
        self.sessions: Any = self.grouped.windowed_by(VISITS)
        self.cogrouped: Any = self.grouped.cogroup(add)
        other: Any = StreamsBuilder()
        self.foreign_stream: Any = other.stream("s")
        self.foreign_table: Any = other.table("t")
