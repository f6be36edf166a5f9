"""Joins of tables whose rows are not stored: they are computed from their parents when somebody looks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace import KTable, Materialized, Stores, StreamsBuilder, with_key
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, pair, run


def test_join_of_a_join_computes_the_first_join_s_rows() -> None:
    def build(builder: StreamsBuilder) -> None:
        inner = builder.table("A").outer_join(builder.table("B"), pair)
        inner.left_join(builder.table("C"), pair).to_stream().to("out")

    steps = [
        Step("C", "k", "c", 5),
        Step("A", "k", "a", 1),
        Step("B", "k", "b", 9),
        Step("C", "k", "d", 2),
        Step("A", "k", None, 3),
        Step("B", "k", None, 4),
        Step("C", "k", None, 4),
    ]
    assert run(build, steps).steps == [
        [],
        [("k", "a,null,c", 5)],
        [("k", "a,b,c", 9)],
        [("k", "a,b,d", 9)],
        [("k", "null,b,d", 9)],
        [("k", None, 4)],
        [],
    ]


def test_join_looks_through_filter_and_map_values_of_the_other_table() -> None:
    def build(builder: StreamsBuilder) -> None:
        kept = builder.table("R").filter(lambda key, value: value != "no")
        right: KTable[str, str] = kept.map_values(with_key(lambda key, value: key + value))
        builder.table("L").join(right, pair).to_stream().to("out")

    steps = [Step("R", "k", "yes", 0), Step("L", "k", "l", 1), Step("R", "k", "no", 2), Step("L", "k", "m", 3)]
    assert run(build, steps).steps == [[], [("k", "l,kyes", 1)], [("k", None, 2)], []]


def test_stored_join_can_be_read_and_has_the_later_timestamp() -> None:
    builder = StreamsBuilder()
    builder.table("L").join(builder.table("R"), pair, materialized=Materialized("joined", value_serde=STRING))
    settings = config()
    with TopologyTestDriver(builder.build(settings), settings) as driver:
        driver.create_input_topic("L", STRING, STRING).pipe_input("k", "l", timestamp_ms=7)
        driver.create_input_topic("R", STRING, STRING).pipe_input("k", "r", timestamp_ms=3)
        row = driver.get_timestamped_key_value_store("joined").get("k")
    assert row == ("l,r", 7)


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_out_of_order_change_of_a_versioned_table_does_not_join(method: str) -> None:
    def build(builder: StreamsBuilder) -> None:
        history = timedelta(milliseconds=100)
        left, right = (
            builder.table(
                topic, materialized=Materialized(Stores.persistent_versioned_key_value_store(topic.lower(), history))
            )
            for topic in ("L", "R")
        )
        getattr(left, method)(right, pair).to_stream().to("out")

    steps = [Step("R", "k", "r", 0), Step("L", "k", "new", 20), Step("L", "k", "old", 10), Step("R", "k", "s", 21)]
    result = run(build, steps)
    assert result.steps[1:] == [[("k", "new,r", 20)], [], [("k", "new,s", 21)]]
    assert result.dropped == 1
