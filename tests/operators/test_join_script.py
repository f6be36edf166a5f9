"""One script of records for all joins; what Apache Kafka Streams gives at each step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headrace import JoinWindows, KTable, StreamsBuilder
from tests.operators.driving import Row, Step, config, pair, run

SCRIPT = (
    Step("L", "k", None, 1),
    Step("R", "k", None, 2),
    Step("L", "k", "A", 3),
    Step("R", "k", "a", 4),
    Step("L", "k", "B", 5),
    Step("R", "k", "b", 6),
    Step("L", "k", None, 7),
    Step("R", "k", None, 8),
    Step("L", "k", "C", 9),
    Step("R", "k", "c", 10),
    Step("R", "k", None, 11),
    Step("L", "k", None, 12),
    Step("R", "k", None, 13),
    Step("R", "k", "d", 14),
    Step("L", "k", "D", 15),
    Step("R", "k", None, 16),
    Step("L", "k", "E", 17),
    Step("R", "k", "e", 18),
    Step("L", "k", None, 19),
    Step("L", "k", "F", 20),
    Step("L", "k", "G", 2),
    Step("R", "k", "g", 3),
    Step("L", "k", "H", 1),
    Step("R", "k", None, 5),
    Step("L", None, "I", 21),
    Step("R", None, "i", 22),
    Step("L", "j", "J", 23),
    Step("R", "j", "j", 200),
    Step("L", "k", "K", 201),
)

# Join -> number of the step -> what came out; a step that is not listed gives nothing.
EXPECTED: dict[str, dict[int, list[Row]]] = {
    "stream-stream inner": {
        3: [("k", "A,a", 4)],
        4: [("k", "B,a", 5)],
        5: [("k", "B,b", 6)],
        9: [("k", "C,c", 10)],
        14: [("k", "D,d", 15)],
        17: [("k", "E,e", 18)],
        19: [("k", "F,e", 20)],
    },
    "stream-stream left": {
        3: [("k", "A,a", 4)],
        4: [("k", "B,a", 5)],
        5: [("k", "B,b", 6)],
        9: [("k", "C,c", 10)],
        14: [("k", "D,d", 15)],
        17: [("k", "E,e", 18)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,null", 2)],
        22: [("k", "H,null", 1)],
        24: [(None, "I,null", 21)],
        27: [("j", "J,null", 23)],
    },
    "stream-stream outer": {
        3: [("k", "A,a", 4)],
        4: [("k", "B,a", 5)],
        5: [("k", "B,b", 6)],
        9: [("k", "C,c", 10)],
        14: [("k", "D,d", 15)],
        17: [("k", "E,e", 18)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,null", 2)],
        21: [("k", "null,g", 3)],
        22: [("k", "H,null", 1)],
        24: [(None, "I,null", 21)],
        25: [(None, "null,i", 22)],
        27: [("j", "J,null", 23)],
    },
    "stream-table inner": {
        4: [("k", "B,a", 5)],
        14: [("k", "D,d", 15)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,e", 2)],
        22: [("k", "H,g", 1)],
    },
    "stream-table left": {
        2: [("k", "A,null", 3)],
        4: [("k", "B,a", 5)],
        8: [("k", "C,null", 9)],
        14: [("k", "D,d", 15)],
        16: [("k", "E,null", 17)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,e", 2)],
        22: [("k", "H,g", 1)],
        24: [(None, "I,null", 21)],
        26: [("j", "J,null", 23)],
        28: [("k", "K,null", 201)],
    },
    "table-table inner": {
        3: [("k", "A,a", 4)],
        4: [("k", "B,a", 5)],
        5: [("k", "B,b", 6)],
        6: [("k", None, 7)],
        9: [("k", "C,c", 10)],
        10: [("k", None, 11)],
        14: [("k", "D,d", 15)],
        15: [("k", None, 16)],
        17: [("k", "E,e", 18)],
        18: [("k", None, 19)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,e", 18)],
        21: [("k", "G,g", 3)],
        22: [("k", "H,g", 3)],
        23: [("k", None, 5)],
        27: [("j", "J,j", 200)],
    },
    "table-table left": {
        2: [("k", "A,null", 3)],
        3: [("k", "A,a", 4)],
        4: [("k", "B,a", 5)],
        5: [("k", "B,b", 6)],
        6: [("k", None, 7)],
        8: [("k", "C,null", 9)],
        9: [("k", "C,c", 10)],
        10: [("k", "C,null", 11)],
        11: [("k", None, 12)],
        14: [("k", "D,d", 15)],
        15: [("k", "D,null", 16)],
        16: [("k", "E,null", 17)],
        17: [("k", "E,e", 18)],
        18: [("k", None, 19)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,e", 18)],
        21: [("k", "G,g", 3)],
        22: [("k", "H,g", 3)],
        23: [("k", "H,null", 5)],
        26: [("j", "J,null", 23)],
        27: [("j", "J,j", 200)],
        28: [("k", "K,null", 201)],
    },
    "table-table outer": {
        2: [("k", "A,null", 3)],
        3: [("k", "A,a", 4)],
        4: [("k", "B,a", 5)],
        5: [("k", "B,b", 6)],
        6: [("k", "null,b", 7)],
        7: [("k", None, 8)],
        8: [("k", "C,null", 9)],
        9: [("k", "C,c", 10)],
        10: [("k", "C,null", 11)],
        11: [("k", None, 12)],
        13: [("k", "null,d", 14)],
        14: [("k", "D,d", 15)],
        15: [("k", "D,null", 16)],
        16: [("k", "E,null", 17)],
        17: [("k", "E,e", 18)],
        18: [("k", "null,e", 19)],
        19: [("k", "F,e", 20)],
        20: [("k", "G,e", 18)],
        21: [("k", "G,g", 3)],
        22: [("k", "H,g", 3)],
        23: [("k", "H,null", 5)],
        26: [("j", "J,null", 23)],
        27: [("j", "J,j", 200)],
        28: [("k", "K,null", 201)],
    },
}

DROPPED = {
    "stream-stream inner": 12,
    "stream-stream left": 11,
    "stream-stream outer": 10,
    "stream-table inner": 6,
    "stream-table left": 5,
    "table-table inner": 2,
    "table-table left": 2,
    "table-table outer": 2,
}


def _stream_stream(method: str) -> Callable[[StreamsBuilder], None]:
    windows = JoinWindows.of_time_difference_with_no_grace(timedelta(milliseconds=2))

    def build(builder: StreamsBuilder) -> None:
        left, right = builder.stream("L"), builder.stream("R")
        getattr(left, method)(right, pair, windows=windows).to("out")

    return build


def _stream_table(method: str) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        left, right = builder.stream("L"), builder.table("R")
        getattr(left, method)(right, pair).to("out")

    return build


def _table_table(method: str) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        joined: KTable[str, str] = getattr(builder.table("L"), method)(builder.table("R"), pair)
        joined.to_stream().to("out")

    return build


METHODS = {"inner": "join", "left": "left_join", "outer": "outer_join"}
KINDS = {"stream-stream": _stream_stream, "stream-table": _stream_table, "table-table": _table_table}


@pytest.mark.parametrize("join", EXPECTED)
def test_join_gives_what_kafka_streams_gives_at_each_step(join: str) -> None:
    inputs, _, kind = join.partition(" ")
    result = run(KINDS[inputs](METHODS[kind]), SCRIPT)
    assert {number: rows for number, rows in enumerate(result.steps) if rows} == EXPECTED[join]
    assert result.dropped == DROPPED[join]


@pytest.mark.parametrize("kind", METHODS)
def test_table_join_gives_the_same_with_a_cache(kind: str) -> None:
    result = run(_table_table(METHODS[kind]), SCRIPT, config(cache=10_000_000))
    given = {number: rows for number, rows in enumerate(result.steps) if rows}
    assert given == EXPECTED[f"table-table {kind}"]
