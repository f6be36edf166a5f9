"""The application whose views processes share: the last value of each key."""

from __future__ import annotations

from headrace import Materialized, StreamsBuilder


def build(builder: StreamsBuilder) -> None:
    builder.stream("in").to_table(materialized=Materialized("last"))
