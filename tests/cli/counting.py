"""A topology that commands run: it counts the records of each key."""

from __future__ import annotations

from headrace import Materialized, StreamsBuilder


def build(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")
