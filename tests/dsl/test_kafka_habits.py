"""Habits of Kafka Streams: calls as in Java are accepted, or answered with what to write here."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import headrace
from headrace import (
    AutoOffsetReset,
    Consumed,
    Grouped,
    JoinWindows,
    Materialized,
    Named,
    Record,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindow,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
    Windowed,
)
from tests.dsl.given import MINUTE, MINUTES, VISITS, Given, add, pair

WITHIN = JoinWindows.of_time_difference_with_no_grace(MINUTE)


class Same(ValueTransformerWithKey[Any, Any, Any]):
    def transform(self, key: Any, value: Any) -> Any:
        return value


Call = Callable[[Given], Any]
ROWS: Materialized[Any, Any] = Materialized("rows")
BY_POSITION: dict[str, Call] = {
    "to_table": lambda g: g.stream.to_table(ROWS),
    "count": lambda g: g.grouped.count(ROWS),
    "reduce": lambda g: g.grouped.reduce(max, ROWS),
    "aggregate": lambda g: g.grouped.aggregate(int, add, ROWS),
    "windowed count": lambda g: g.windowed.count(ROWS),
    "windowed reduce": lambda g: g.windowed.reduce(max, ROWS),
    "windowed aggregate": lambda g: g.windowed.aggregate(int, add, ROWS),
    "sessions count": lambda g: g.sessions.count(ROWS),
    "sessions aggregate": lambda g: g.sessions.aggregate(int, add, add, ROWS),
    "cogroup": lambda g: g.cogrouped.aggregate(int, ROWS),
    "windowed cogroup": lambda g: g.cogrouped.windowed_by(MINUTES).aggregate(int, ROWS),
    "sessions cogroup": lambda g: g.cogrouped.windowed_by(VISITS).aggregate(int, add, ROWS),
    "table count": lambda g: g.grouped_table.count(ROWS),
    "table reduce": lambda g: g.grouped_table.reduce(pair, pair, ROWS),
    "table aggregate": lambda g: g.grouped_table.aggregate(int, add, add, ROWS),
    "filter": lambda g: g.table.filter(pair, ROWS),
    "filter_not": lambda g: g.table.filter_not(pair, ROWS),
    "map_values": lambda g: g.table.map_values(str, ROWS),
    "transform_values": lambda g: g.table.transform_values(Same, ROWS),
    "join": lambda g: g.table.join(g.builder.table("u"), pair, ROWS),
    "left_join": lambda g: g.table.left_join(g.builder.table("u"), pair, ROWS),
    "outer_join": lambda g: g.table.outer_join(g.builder.table("u"), pair, ROWS),
    "foreign key": lambda g: g.table.join(g.builder.table("u"), pair, ROWS, foreign_key=str),
}


@pytest.mark.parametrize("call", BY_POSITION)
def test_materialized_may_be_given_by_position(call: str) -> None:
    given = Given()
    assert BY_POSITION[call](given).queryable_store_name == "rows"
    assert "rows" in given.builder.build().store_builders


WRONG: list[tuple[Call, str]] = [
    (
        lambda g: g.stream.filter(pair, "big"),
        r"filter\(\) on 'KSTREAM-SOURCE-0000000000': it takes no further argument by position; found str 'big'; "
        r"it is called as filter\(predicate, \*, name=None\); pass name='big'$",
    ),
    (lambda g: g.stream.map_values(str, Named("big")), "pass name='big'$"),
    (lambda g: g.stream.filter(), r"missing a required argument: 'predicate'; it is called as filter\(predicate, "),
    (lambda g: g.stream.filter(pair, nmae="x"), r"unexpected keyword argument 'nmae'.*; did you mean 'name'\?$"),
    (lambda g: g.stream.join(g.stream, pair, WITHIN, StreamJoined()), "found JoinWindows .*; pass it as windows=…$"),
    (lambda g: g.stream.filter(pair, ROWS), r"found Materialized .*filter\(predicate, \*, name=None\)$"),
    (lambda g: g.windowed.reduce(), r"^reduce\(\) on 'KSTREAM-SOURCE-0000000000': missing"),
    (lambda g: g.cogrouped.aggregate(int, ROWS, "x"), "^CogroupedKStream.aggregate.*pass name='x'"),
    (lambda g: g.grouped.count("x"), r"found str 'x'; write Materialized\('x'\) to name its store, or name='x'"),
    (lambda g: g.table.filter(pair, "x"), r"materialized must be a Materialized; .* or name='x' to name its node"),
    (lambda g: g.grouped.count(Materialized), r"materialized must be .*; write Materialized\(…\)$"),
    (
        lambda g: g.table.join(g.table, str, pair),
        r"a foreign key goes by keyword: join\(other, joiner, foreign_key=…\)",
    ),
    (lambda g: g.stream.group_by_key("x"), r"write Grouped\('x'\)"),
    (lambda g: g.stream.repartition(3), r"write Repartitioned\(partitions=3\)"),
    (
        lambda _: Repartitioned(3),  # type: ignore[arg-type]
        r"^Repartitioned: a name must be a str, found int 3; write Repartitioned\(partitions=3\)",
    ),
    (lambda g: g.builder.stream("a", "b"), r"pass a list of topics: \['a', 'b'\]"),
    (lambda g: g.builder.stream("a", "b", "c"), r"^StreamsBuilder.stream\(\): .*stream\(topics, consumed=None\)"),
    (lambda g: g.stream.group_by_key(name="x"), r"pass it in an option: grouped=Grouped\(name=…\)$"),
    (lambda g: g.stream.to("b", name="x"), r"pass it in an option: produced=Produced\(name=…\)$"),
    (lambda g: g.builder.stream("a", keySerde=1), r"pass it in an option: consumed=Consumed\(key_serde=…\)$"),
    (lambda g: g.grouped.count(storeName="x"), "the name of a store is the first argument of Materialized$"),
    (lambda _: Materialized(store_name="x"), "the name of a store is the first argument of Materialized$"),  # type: ignore[call-arg]
    (lambda _: Consumed(keySerde=None), r"^Consumed: .*Consumed\(key_serde=None, .*did you mean 'key_serde'\?$"),  # type: ignore[call-arg]
    (lambda _: Materialized("x", Serdes.string()), r"^Materialized: it takes no further argument by position"),  # type: ignore[call-arg]
    (lambda _: Materialized("my store"), "^Materialized: store: name 'my store' is illegal"),
    (lambda _: Grouped("my group"), "^Grouped: name 'my group' is illegal"),
    (lambda g: g.grouped.aggregate(0, add), r"a function \(\) without parameters; found int 0; write `lambda: 0`"),
    (lambda g: g.windowed.aggregate([], add), r"found list \[\]; write `lambda: \[\]`"),
    (
        lambda g: g.cogrouped.aggregate(lambda _x: 0),
        r"without parameters; found .*which takes \(_x\); write `lambda: 0`",
    ),
    (lambda _: TimeWindows(MINUTE), r"^TimeWindows takes size_ms, .* use TimeWindows.of_size_with_no_grace\(…\) or "),  # type: ignore[call-arg,arg-type]
    (lambda _: SlidingWindows(difference=MINUTE), "use SlidingWindows.of_time_difference_with_no_grace"),  # type: ignore[call-arg]
    (lambda _: JoinWindows(5), "found 1 of them; use JoinWindows.of_time_difference_with_no_grace"),  # type: ignore[call-arg]
    (lambda _: SessionWindows(MINUTE, MINUTE), "use SessionWindows.of_inactivity_gap_with_no_grace"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message[:50] for _, message in WRONG])
def test_a_call_as_in_java_is_answered_with_the_call_as_it_is_here(call: Call, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        call(Given())
    assert "_WindowedGroup" not in str(caught.value)


MISSING: list[tuple[Call, str]] = [
    (
        lambda g: g.stream.count,
        r"'KStream' object has no attribute 'count'; group the stream first: group_by_key\(\).count",
    ),
    (lambda g: g.stream.mapValues, "; did you mean 'map_values'\\?$"),
    (lambda g: g.stream.foreach, "; did you mean 'for_each'\\?$"),
    (lambda g: g.stream.flatmap, "; did you mean 'flat_map'\\?$"),
    (lambda g: g.stream.transformValues, r"use process_values\(\)"),
    (lambda g: g.stream.branch, r"split\(\).branch"),
    (lambda g: g.stream.zebra, "has no attribute 'zebra'$"),
    (lambda g: g.table.to, r"make a stream of the table first: to_stream\(\).to\(…\)"),
    (lambda g: g.table.groupByKey, r"group_by\(lambda"),
    (lambda g: g.table.count, r"group the table first"),
    (lambda g: g.table.queryableStoreName, "did you mean 'queryable_store_name'"),
    (lambda g: g.global_table.to_stream, "a global table is for lookups only"),
    (lambda g: g.grouped.to_stream, "aggregate first"),
    (lambda g: g.grouped_table.windowedBy, "only streams have windows"),
    (lambda g: g.windowed.suppress, "aggregate first"),
    (lambda g: g.cogrouped.count, "an aggregator per stream"),
    (lambda g: g.stream.split().to, "finish the split first"),
    (lambda g: g.builder.globalTable, "did you mean 'global_table'"),
    (lambda _: Materialized("x").with_key_serde, "pass it when you make the option: key_serde=…"),  # type: ignore[attr-defined]
    (lambda _: Topology().addSource, "did you mean 'add_source'"),  # type: ignore[attr-defined]
    (lambda _: TimeWindows.of, r"use TimeWindows.of_size_with_no_grace\(…\) or TimeWindows.of_size_and_grace\(…\)$"),  # type: ignore[attr-defined]
    (lambda _: TimeWindows.ofSizeWithNoGrace, "did you mean 'of_size_with_no_grace'"),  # type: ignore[attr-defined]
    (lambda _: Materialized.as_, r"call the class itself with the name of the store: Materialized\('…'\)$"),  # type: ignore[attr-defined]
    (lambda _: Consumed.with_, r"call the class itself: Consumed\(key_serde=…, value_serde=…\)$"),  # type: ignore[attr-defined]
    (lambda _: Consumed.as_, r"call the class itself: Consumed\(name='…'\)$"),  # type: ignore[attr-defined]
    (lambda _: Materialized.withKeySerde, "pass it when you make the option: key_serde=…$"),  # type: ignore[attr-defined]
    (lambda _: Repartitioned.numberOfPartitions, r"call the class itself: Repartitioned\(partitions=…\)$"),  # type: ignore[attr-defined]
    (lambda _: Suppressed.BufferConfig, "it is a class of its own: from headrace import BufferConfig$"),  # type: ignore[attr-defined]
    (lambda _: Suppressed.untilWindowCloses, "did you mean 'until_window_closes'"),  # type: ignore[attr-defined]
    (lambda _: Named.as_, "a str will do where a name is wanted$"),  # type: ignore[attr-defined]
    (lambda _: TimeWindow(0, 5).start, "did you mean 'start_ms'"),  # type: ignore[attr-defined]
    (lambda _: Windowed("a", TimeWindow(0, 5)).start, "it belongs to the window: window.start_ms$"),  # type: ignore[attr-defined]
    (lambda _: Record("a", 1, 5).timestamp, "did you mean 'timestamp_ms'"),  # type: ignore[attr-defined]
    (lambda _: Serdes.String, "did you mean 'string'"),  # type: ignore[attr-defined]
    (lambda _: Stores.persistentKeyValueStore, "did you mean 'persistent_key_value_store'"),  # type: ignore[attr-defined]
    (lambda _: AutoOffsetReset.EARLIEST, "did you mean 'earliest'"),  # type: ignore[attr-defined]
    (lambda _: headrace.KafkaStreams, "did you mean 'Streams'"),
    (lambda _: JoinWindows.of, "use JoinWindows.of_time_difference_with_no_grace"),  # type: ignore[attr-defined]
]


@pytest.mark.parametrize(("look_up", "message"), MISSING, ids=[message[:50] for _, message in MISSING])
def test_a_name_as_in_java_or_on_the_wrong_handle_is_answered_with_what_to_call(look_up: Call, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        look_up(Given())


def test_hints_do_not_get_in_the_way_of_looking_for_attributes() -> None:
    given = Given()
    assert not hasattr(given.stream, "count")
    assert getattr(given.table, "__deepcopy__", None) is None
    assert not hasattr(TimeWindows, "of")
    assert pickle.loads(pickle.dumps(Windowed("a", TimeWindow(0, 5)))) == Windowed("a", TimeWindow(0, 5))
    assert copy.deepcopy(Record("a", 1, 5)) == Record("a", 1, 5)
    assert list(inspect.signature(Grouped).parameters) == ["name", "key_serde", "value_serde"]


def test_driver_knows_the_names_of_kafkas_driver() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(AttributeError, match="did you mean 'create_input_topic'"),
    ):
        driver.createInputTopic("in")  # type: ignore[attr-defined]


def test_two_stores_of_one_name_are_reported_with_both_operations() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count(Materialized("x"), name="first")
    grouped.count(Materialized("x"), name="second")
    with pytest.raises(
        TopologyError, match=r"store 'x': .* found different stores of that name at 'first' and 'second'"
    ):
        builder.build()


def test_branches_that_do_not_exist_are_answered_with_those_that_do() -> None:
    branches = StreamsBuilder().stream("in").split().branch(pair).default_branch()
    with pytest.raises(
        KeyError, match="there is no branch 'a'; the branches are: 'KSTREAM-BRANCH-00000000011', 'KSTREAM"
    ):
        branches["a"]
    assert branches.get("a") is None
    assert "a" not in branches


def test_transform_values_takes_stores_behind_materialized() -> None:
    builder = StreamsBuilder()
    rows: Materialized[Any, str] = Materialized("rows", value_serde=Serdes.string())
    builder.table("t", materialized=Materialized("other"))
    table = builder.table("u").transform_values(Same, rows, "other")
    assert table.queryable_store_name == "rows"
    assert "other" in {store for node in builder.build().processor_nodes for store in node.stores}
