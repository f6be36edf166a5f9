"""Joins of a stream with a table: current rows, rows as of the record's time, and records that wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headrace import Joined, Materialized, ProcessingError, Stores, StreamsBuilder, with_key
from tests.operators.driving import Step, pair, run


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _as_of(method: str, grace: timedelta | None = None) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        store = Stores.persistent_versioned_key_value_store("right", ms(20))
        table = builder.table("R", materialized=Materialized(store))
        getattr(builder.stream("L"), method)(table, pair, joined=Joined(grace_period=grace)).to("out")

    return build


def test_versioned_table_is_seen_as_it_was_at_the_record_s_time() -> None:
    steps = [
        Step("R", "k", "v5", 5),
        Step("R", "k", "v10", 10),
        Step("L", "k", "a", 4),
        Step("L", "k", "b", 9),
        Step("L", "k", "c", 10),
        Step("R", "k", "v7", 7),
        Step("L", "k", "d", 8),
        Step("R", "k", None, 12),
        Step("L", "k", "e", 13),
        Step("L", None, "f", 13),
    ]
    assert run(_as_of("left_join"), steps).rows == [
        ("k", "a,null", 4),
        ("k", "b,v5", 9),
        ("k", "c,v10", 10),
        ("k", "d,v7", 8),
        ("k", "e,null", 13),
        (None, "f,null", 13),
    ]


def test_records_wait_for_the_grace_period_and_leave_by_time() -> None:
    steps = [
        Step("R", "k", "v0", 0),
        Step("L", "k", "a", 1),
        Step("L", "k", "b", 3),
        Step("R", "k", "v2", 2),
        Step("L", "k", "c", 6),
        Step("L", "k", "d", 2),
        Step("R", "k", "v5", 5),
        Step("L", "k", "e", 9),
        Step("L", "k", "late", 3),
        Step("L", "j", "g", 15),
        Step("L", "k", None, 20),
        Step("L", "k", "m", 40),
    ]
    left = run(_as_of("left_join", ms(5)), steps)
    assert left.steps == [
        [],
        [],
        [],
        [],
        [("k", "a,v0", 1)],
        [],
        [],
        [("k", "d,v2", 2), ("k", "b,v2", 3)],
        [("k", "late,v2", 3)],
        [("k", "c,v5", 6), ("k", "e,v5", 9)],
        [],
        [("j", "g,null", 15)],
    ]
    assert left.dropped == 1
    assert run(_as_of("join", ms(5)), steps).steps == [*left.steps[:-1], []]


def test_left_join_with_grace_refuses_a_record_without_key() -> None:
    with pytest.raises(ProcessingError) as caught:
        run(_as_of("left_join", ms(5)), [Step("L", None, "x", 1)])
    assert isinstance(caught.value.__cause__, TypeError)
    assert "needs a key" in str(caught.value.__cause__)
    assert run(_as_of("join", ms(5)), [Step("L", None, "x", 1)]).dropped == 1


@pytest.mark.parametrize(
    ("method", "rows", "dropped"),
    [("join", [("x", "a1,1", 1), (None, "a2,1", 2)], 4), ("left_join", None, 3)],
)
def test_global_join_goes_by_the_mapped_key(method: str, rows: list[object] | None, dropped: int) -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.global_table("R")

        def first(key: str | None, value: str | None) -> str | None:
            return None if not value or value == "-" else value[0]

        getattr(builder.stream("L"), method)(table, pair, key_selector=first).to("out")

    steps = [
        Step("R", "a", "1", 10),
        Step("L", "x", "a1", 1),
        Step("L", None, "a2", 2),
        Step("L", "x", None, 3),
        Step("L", None, None, 4),
        Step("R", None, "9", 5),
        Step("L", "x", "-", 6),
        Step("L", "x", "b1", 7),
    ]
    left = [("x", "a1,1", 1), (None, "a2,1", 2), ("x", "-,null", 6), ("x", "b1,null", 7)]
    result = run(build, steps)
    assert (result.rows, result.dropped) == (left if rows is None else rows, dropped)


@pytest.mark.parametrize("method", ["join", "left_join"])
def test_joiner_with_key_sees_the_stream_s_key(method: str) -> None:
    def build(builder: StreamsBuilder) -> None:
        joiner = with_key(lambda key, left, right: f"{key}:{pair(left, right)}")
        getattr(builder.stream("L"), method)(builder.table("R"), joiner).to("out")

    steps = [Step("R", "k", "r", 0), Step("L", "k", "l", 1), Step("L", "j", "l", 2)]
    unmatched = [("j", "j:l,null", 2)] if method == "left_join" else []
    assert run(build, steps).rows == [("k", "k:l,r", 1), *unmatched]


def test_joiner_that_fails_is_named_with_its_node() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("L").join(builder.table("R"), lambda left, right: 1 // 0, joined=Joined(name="enrich")).to("out")

    with pytest.raises(ProcessingError, match="enrich") as caught:
        run(build, [Step("R", "k", "r", 0), Step("L", "k", "l", 1)])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_failure_below_a_join_is_not_blamed_on_the_join() -> None:
    def build(builder: StreamsBuilder) -> None:
        joined = builder.stream("L").join(builder.table("R"), pair, joined=Joined(name="enrich"))
        joined.map_values(lambda value: 1 // 0, name="divide").to("out")

    with pytest.raises(ProcessingError, match="divide"):
        run(build, [Step("R", "k", "r", 0), Step("L", "k", "l", 1)])
