"""Rows that expire by the wall clock in a running application, while no records come."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from headrace import Materialized, StreamsBuilder
from tests.views.kit import SOON, Place


def test_clock_of_a_row_starts_a_batch(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        kept: Materialized[str, str] = Materialized("rows", ttl=timedelta(seconds=1), by="wall_clock")
        builder.table("in", materialized=kept).to_stream().to("out")

    place = Place(tmp_path, **{"in": 1, "out": 1})
    place.write("in", [(f"k{number:04}", "x", 1000) for number in range(700)])
    with place.streams(build):
        # Row by row, more than go at once: there is a batch after the first that nothing but the clock asks for.
        assert place.log.wait_for_data({("out", 0): 1399}, SOON)
    written = [(raw[1], raw[2], raw[3]) for raw in place.log.read("out", 0, 0)]
    place.close()
    assert written[:700] == [(1000, b"k%04d" % number, b'"x"') for number in range(700)]
    assert written[700:] == [(2000, b"k%04d" % number, None) for number in range(700)]
