"""Deduplication: what repeats what, and for how long.

The first table has the rules of KIP-655, with an interval of 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Serdes, StreamsBuilder, TopologyError
from headrace.testing import TopologyTestDriver
from tests.operators.driving import STRING, Step, config, run

WITHIN_MS = 100
WITHIN = timedelta(milliseconds=WITHIN_MS)
Record = tuple[str | None, str | None, int]


def _by_key(builder: StreamsBuilder) -> None:
    builder.stream("in").distinct(within=WITHIN).to("out")


def _by(function: Callable[[Any, Any], Any]) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").distinct(by=function, within=WITHIN, id_serde=STRING).to("out")

    return build


def _steps(records: Sequence[Record]) -> list[Step]:
    return [Step("in", *record) for record in records]


# What goes in, and whether it comes out.
SCRIPTS: dict[str, list[tuple[str | None, str | None, int, bool]]] = {
    "a record soon after": [("a", "1", 0, True), ("a", "2", 50, False)],
    "at the very end of the interval": [("a", "1", 0, True), ("a", "2", 100, False)],
    "just after the interval": [("a", "1", 0, True), ("a", "2", 101, True)],
    "what is dropped does not prolong it": [("a", "1", 0, True), ("a", "2", 60, False), ("a", "3", 120, True)],
    "other keys": [("a", "1", 0, True), ("b", "1", 0, True), ("a", "2", 5, False), ("b", "2", 5, False)],
    "no key": [(None, "1", 0, True), (None, "1", 5, True)],
    "a value of None is a record": [("a", None, 0, True), ("a", None, 5, False)],
    "out of order within": [("a", "1", 50, True), ("a", "2", 30, False)],
    "out of order beyond": [("a", "1", 200, True), ("a", "2", 50, True)],
    "late, and one that passed is near": [("a", "1", 150, True), ("z", "1", 200, True), ("a", "2", 60, False)],
    "late records are not remembered": [("z", "1", 200, True), ("a", "1", 50, True), ("a", "2", 10, True)],
    "stream time ends the interval": [("a", "1", 0, True), ("z", "1", 101, True), ("a", "2", 90, True)],
}


@pytest.mark.parametrize("build", [_by_key, _by(lambda key, value: key)], ids=["by key", "by identity"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_rules_of_kip_655(
    script: list[tuple[str | None, str | None, int, bool]], build: Callable[[StreamsBuilder], None]
) -> None:
    found = run(build, _steps([record[:3] for record in script]))
    assert found.rows == [(key, value, time_ms) for key, value, time_ms, passes in script if passes]
    assert found.dropped == sum(not passes for *_, passes in script)


def test_key_and_identity_decide_together() -> None:
    records: list[Record] = [("a", "x", 0), ("a", "y", 1), ("b", "x", 2), ("a", "x", 3), ("a", None, 4), ("a", None, 5)]
    assert run(_by(lambda key, value: value), _steps(records)).rows == [
        ("a", "x", 0),
        ("a", "y", 1),
        ("b", "x", 2),
        ("a", None, 4),
        ("a", None, 5),
    ]


def test_key_and_identity_are_told_apart() -> None:
    records: list[Record] = [("ab", "c", 0), ("a", "bc", 1)]
    assert len(run(_by(lambda key, value: value), _steps(records)).rows) == 2


def test_headers_and_time_are_those_of_the_first_record() -> None:
    builder = StreamsBuilder()
    _by_key(builder)
    with TopologyTestDriver(builder.build(config()), config(), initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("a", "1", timestamp_ms=7, headers=(("h", b"1"),))
        topic.pipe_input("a", "2", timestamp_ms=8, headers=(("h", b"2"),))
        (record,) = driver.create_output_topic("out", STRING, STRING).read_records()
        assert (record.value, record.timestamp_ms, tuple(record.headers)) == ("1", 7, (("h", b"1"),))


def test_identity_is_json_unless_a_serde_is_named() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").distinct(by=lambda key, value: [len(value), True], within=WITHIN).to("out")

    assert run(build, _steps([("a", "xx", 0), ("a", "yy", 1), ("a", "z", 2)])).rows == [("a", "xx", 0), ("a", "z", 2)]


def test_what_has_passed_is_in_the_changelog() -> None:
    builder = StreamsBuilder()
    builder.stream("in").distinct(within=WITHIN, name="once").to("out")
    with TopologyTestDriver(builder.build(config()), config(), initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("a", "1", timestamp_ms=7)
        topic.pipe_input("a", "2", timestamp_ms=8)
        changelog = driver.create_output_topic("test-once-store-changelog", Serdes.bytes(), Serdes.bytes())
        assert changelog.read_key_values() == [(b"a" + (7).to_bytes(8, "big") + bytes(4), b"\1")]


def test_stream_with_a_new_key_is_repartitioned_first() -> None:
    builder = StreamsBuilder()
    moved = builder.stream("in").select_key(lambda key, value: value)
    moved.distinct(within=WITHIN).group_by_key().count().to_stream().map_values(str).to("out")
    topology = builder.build(config())
    assert (
        str(topology.describe())
        == """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> KSTREAM-KEY-SELECT-0000000001
    Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
      --> KSTREAM-FILTER-0000000004
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-FILTER-0000000004 (stores: [])
      --> KSTREAM-SINK-0000000003
      <-- KSTREAM-KEY-SELECT-0000000001
    Sink: KSTREAM-SINK-0000000003 (topic: KSTREAM-DISTINCT-0000000002-repartition)
      <-- KSTREAM-FILTER-0000000004

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000005 (topics: [KSTREAM-DISTINCT-0000000002-repartition])
      --> KSTREAM-DISTINCT-0000000002
    Processor: KSTREAM-DISTINCT-0000000002 (stores: [KSTREAM-DISTINCT-0000000002-store])
      --> KSTREAM-AGGREGATE-0000000007
      <-- KSTREAM-SOURCE-0000000005
    Processor: KSTREAM-AGGREGATE-0000000007 (stores: [KSTREAM-AGGREGATE-STATE-STORE-0000000006])
      --> KTABLE-TOSTREAM-0000000008
      <-- KSTREAM-DISTINCT-0000000002
    Processor: KTABLE-TOSTREAM-0000000008 (stores: [])
      --> KSTREAM-MAPVALUES-0000000009
      <-- KSTREAM-AGGREGATE-0000000007
    Processor: KSTREAM-MAPVALUES-0000000009 (stores: [])
      --> KSTREAM-SINK-0000000010
      <-- KTABLE-TOSTREAM-0000000008
    Sink: KSTREAM-SINK-0000000010 (topic: out)
      <-- KSTREAM-MAPVALUES-0000000009

"""
    )


def test_records_without_a_new_key_pass_the_repartition_topic() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").select_key(lambda key, value: None).distinct(within=WITHIN).to("out")

    assert run(build, _steps([("a", "1", 0), ("a", "1", 1)])).rows == [(None, "1", 0), (None, "1", 1)]


def _model(records: Sequence[Record]) -> list[Record]:
    """Looks at everything that has passed."""
    passed: list[Record] = []
    known: list[tuple[str, int]] = []
    now_ms = -1
    for key, value, time_ms in records:
        now_ms = max(now_ms, time_ms)
        live = [at_ms for each, at_ms in known if each == key and now_ms - at_ms <= WITHIN_MS]
        if key is not None and any(at_ms - time_ms <= WITHIN_MS for at_ms in live):
            continue
        passed.append((key, value, time_ms))
        if key is not None and now_ms - time_ms <= WITHIN_MS:
            known.append((key, time_ms))
    return passed


RECORDS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.just("x"), st.integers(0, 500)), max_size=40)


@settings(deadline=None)
@given(RECORDS, st.integers(1, 7))
def test_any_records_pass_as_in_a_plain_model_wherever_batches_end(records: list[Record], size: int) -> None:
    expected = _model(records)
    assert run(_by_key, _steps(records)).rows == expected
    builder = StreamsBuilder()
    _by_key(builder)
    with TopologyTestDriver(builder.build(config()), config(), batched=True, initial_wall_clock_ms=0) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for place, (key, value, time_ms) in enumerate(records, 1):
            topic.pipe_input(key, value, timestamp_ms=time_ms)
            if place % size == 0:
                driver.commit()
        driver.commit()
        rows = driver.create_output_topic("out", STRING, STRING).read_records()
        assert [(record.key, record.value, record.timestamp_ms) for record in rows] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"within": timedelta(0)}, r"distinct\(\) on '.*': within must be longer than 0; found 0:00:00"),
        ({"within": 5}, r"distinct\(\) on '.*': within must be a timedelta, got int 5"),
        ({"within": WITHIN, "by": "id"}, r"distinct\(\) on '.*': by must be a function \(key, value\); found str 'id'"),
        ({"within": WITHIN, "id_serde": str}, r"distinct\(\) on '.*': id_serde must be a serde"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        StreamsBuilder().stream("in").distinct(**arguments)
