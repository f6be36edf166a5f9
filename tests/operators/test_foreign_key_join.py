"""Foreign-key joins: one script with what Apache Kafka Streams gives at each step, inner and left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace import KTable, Materialized, StreamsBuilder, with_key
from tests.operators.driving import Row, Step, config, pair, run

# A step and what the inner join gives; what the left join gives, where that differs.
SCRIPT: tuple[tuple[Step, list[Row], list[Row] | None], ...] = (
    (Step("R", "x", "X1", 0), [], None),
    (Step("L", "a", "x1", 1), [("a", "x1,X1", 1)], None),
    (Step("L", "b", "x2", 2), [("b", "x2,X1", 2)], None),
    (Step("R", "x", "X2", 3), [("a", "x1,X2", 3), ("b", "x2,X2", 3)], None),
    (Step("L", "c", "y1", 4), [], [("c", "y1,null", 4)]),
    (Step("R", "y", "Y1", 5), [("c", "y1,Y1", 5)], None),
    (Step("L", "a", "y2", 6), [("a", "y2,Y1", 6)], None),
    (Step("R", "x", None, 7), [("b", None, 7)], [("b", "x2,null", 7)]),
    (Step("R", "x", "X3", 8), [("b", "x2,X3", 8)], None),
    (Step("L", "b", None, 9), [("b", None, 9)], None),
    (Step("L", "b", None, 10), [], None),
    (Step("L", "c", "z1", 11), [("c", None, 11)], [("c", "z1,null", 11)]),
    (Step("L", "c", "z2", 12), [], [("c", "z2,null", 12)]),
    (Step("R", "z", "Z1", 13), [("c", "z2,Z1", 13)], None),
    (Step("R", "z", None, 14), [("c", None, 14)], [("c", "z2,null", 14)]),
    (Step("R", "z", None, 15), [("c", None, 15)], [("c", "z2,null", 15)]),
    (Step("L", "a", "y2", 16), [("a", "y2,Y1", 16)], None),
    (Step("R", "y", "Y1", 17), [("a", "y2,Y1", 17)], None),
    (Step("L", "d", "x9", 18), [("d", "x9,X3", 18)], None),
    (Step("L", "d", "x9", 18), [("d", "x9,X3", 18)], None),
    (Step("R", "y", "Y2", 1), [("a", "y2,Y2", 1)], None),
    (Step("L", "a", "x3", 2), [("a", "x3,X3", 8)], None),
    (Step("L", None, "x4", 20), [], None),
    (Step("R", None, "X9", 21), [], None),
    (Step("R", "q", "Q", 22), [], None),
    (Step("L", "e", "q", 23), [("e", "q,Q", 23)], None),
)


def first_letter(value: str) -> str:
    return value[:1]


def _build(method: str, *, stored: bool = False) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        left, right = builder.table("L"), builder.table("R")
        materialized: Materialized[str, str] | None = Materialized("joined") if stored else None
        joined: KTable[str, str] = getattr(left, method)(
            right, pair, foreign_key=first_letter, materialized=materialized
        )
        joined.to_stream().to("out")

    return build


@pytest.mark.parametrize("cache", [0, 10_000_000])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_foreign_key_join_gives_what_kafka_streams_gives(method: str, stored: bool, cache: int) -> None:  # noqa: FBT001
    result = run(_build(method, stored=stored), [step for step, _, _ in SCRIPT], config(cache=cache))
    expected = [inner if method == "join" or left is None else left for _, inner, left in SCRIPT]
    if cache:
        # The right table's cache does not send the second deletion of "z" on: the row was absent and stays absent.
        expected[15] = []
    assert result.steps == expected
    assert result.dropped == 2


def test_foreign_key_may_depend_on_the_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        left, right = builder.table("L"), builder.table("R")
        left.join(right, pair, foreign_key=with_key(lambda key, value: key + value)).to_stream().to("out")

    steps = [Step("R", "ab", "r", 0), Step("L", "a", "b", 1), Step("L", "b", "b", 2)]
    assert run(build, steps).rows == [("a", "b,r", 1)]


@pytest.mark.parametrize(
    ("method", "rows", "dropped"),
    [
        ("join", [("a", "x,X", 1), ("a", None, 2)], 2),
        ("left_join", [("a", "x,X", 1), ("a", "-,null", 2), ("a", "-,null", 3), ("b", "-,null", 4)], 0),
    ],
)
def test_row_without_foreign_key(method: str, rows: list[Row], dropped: int) -> None:
    def build(builder: StreamsBuilder) -> None:
        left, right = builder.table("L"), builder.table("R")
        joined: KTable[str, str] = getattr(left, method)(
            right, pair, foreign_key=lambda value: None if value == "-" else value
        )
        joined.to_stream().to("out")

    steps = [
        Step("R", "x", "X", 0),
        Step("L", "a", "x", 1),
        Step("L", "a", "-", 2),
        Step("L", "a", "-", 3),
        Step("L", "b", "-", 4),
    ]
    result = run(build, steps)
    assert (result.rows, result.dropped) == (rows, dropped)
