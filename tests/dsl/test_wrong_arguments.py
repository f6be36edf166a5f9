"""A call with a wrong argument fails at once, naming the node, the argument and what was found."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    Branched,
    ConfigError,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    TableJoined,
    TimeWindows,
    TopologyError,
    UnlimitedWindows,
    with_key,
)
from tests.dsl.given import Given, add, pair

SECOND = timedelta(seconds=1)
WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)
MINUTES = TimeWindows.of_size_and_grace(timedelta(minutes=1), SECOND)


CALLS: list[tuple[Callable[[Given], Any], str]] = [
    (lambda g: g.builder.stream(5), "topics must be a name, several names or a compiled pattern; found int 5"),
    (lambda g: g.builder.stream([]), "at least one topic is needed"),
    (lambda g: g.builder.stream(["a", None]), "a topic must be a str that is not empty; found None"),
    (lambda g: g.builder.stream("a", Produced()), "consumed must be a Consumed; found Produced"),
    (lambda g: g.builder.table(["a"]), r"table\(\): a topic must be a str"),
    (lambda g: g.builder.table("a", None, "store"), "materialized must be a Materialized; found str 'store'"),
    (lambda g: g.builder.add_state_store("store"), "builder must be a StoreBuilder"),
    (lambda g: g.stream.filter(None), r"filter\(\) on 'KSTREAM-SOURCE-0000000000': predicate must be a function"),
    (lambda g: g.stream.filter(with_key(pair)), "predicate always gets the key"),
    (lambda g: g.stream.filter_not("p"), "predicate must be a function"),
    (lambda g: g.stream.map_values(3), "mapper must be a function"),
    (lambda g: g.stream.flat_map_values(3), "mapper must be a function"),
    (lambda g: g.stream.map(with_key(pair)), "mapper always gets the key"),
    (lambda g: g.stream.flat_map(None), "mapper must be a function"),
    (lambda g: g.stream.select_key("key"), "selector must be a function"),
    (lambda g: g.stream.peek(None), "action must be a function"),
    (lambda g: g.stream.for_each(None), "action must be a function"),
    (lambda g: g.stream.print("label"), "printed must be a Printed"),
    (lambda g: g.stream.merge(g.table), "other must be a KStream; found KTable"),
    (lambda g: g.stream.merge(g.foreign_stream), "must come from the same StreamsBuilder"),
    (lambda g: g.stream.repartition("topic"), "repartitioned must be a Repartitioned"),
    (lambda g: g.stream.to(""), "a topic must be a str that is not empty"),
    (lambda g: g.stream.to(None), "a topic must be a str"),
    (lambda g: g.stream.to("out", Serdes.string()), "produced must be a Produced"),
    (lambda g: g.stream.to_table("store"), "materialized must be a Materialized"),
    (lambda g: g.stream.process(None), "supplier must be a function"),
    (lambda g: g.stream.process(object, 5), "the name of a store must be a str; found int 5"),
    (lambda g: g.stream.group_by_key("name"), "grouped must be a Grouped"),
    (lambda g: g.stream.group_by(None), "selector must be a function"),
    (lambda g: g.stream.split().branch(None), "predicate must be a function"),
    (lambda g: g.stream.split().branch(pair, "name"), "branched must be a Branched"),
    (lambda g: g.stream.join(g.table, None), "joiner must be a function"),
    (lambda g: g.stream.join("table", pair), "other must be a KStream, KTable or GlobalKTable; found str 'table'"),
    (lambda g: g.stream.join(g.stream, pair), "needs windows"),
    (lambda g: g.stream.join(g.stream, pair, windows=MINUTES), "windows must be a JoinWindows"),
    (lambda g: g.stream.join(g.stream, pair, windows=WITHIN, joined=Joined()), "joined must be a StreamJoined"),
    (lambda g: g.stream.join(g.foreign_stream, pair, windows=WITHIN), "same StreamsBuilder"),
    (lambda g: g.stream.join(g.foreign_table, pair), "same StreamsBuilder"),
    (lambda g: g.stream.join(g.table, pair, windows=WITHIN), "takes no windows"),
    (lambda g: g.stream.join(g.table, pair, joined=StreamJoined()), "joined must be a Joined"),
    (lambda g: g.stream.join(g.table, pair, key_selector=pair), "takes no key_selector"),
    (lambda g: g.stream.join(g.table, pair, joined=Joined(name="a"), name="b"), "two names were given, 'b' and 'a'"),
    (lambda g: g.stream.join(g.global_table, pair), "key_selector must be a function"),
    (lambda g: g.stream.join(g.global_table, pair, key_selector=pair, joined=Joined()), "takes no joined"),
    (lambda g: g.stream.outer_join(g.table, pair), "other must be a KStream; found KTable"),
    (lambda g: g.table.filter(None), "predicate must be a function"),
    (lambda g: g.table.filter(pair, materialized="store"), "materialized must be a Materialized"),
    (lambda g: g.table.map_values(None), "mapper must be a function"),
    (lambda g: g.table.transform_values(None), "supplier must be a function"),
    (lambda g: g.table.suppress(SECOND), "suppressed must be a Suppressed"),
    (lambda g: g.table.to_stream("key"), "selector must be a function"),
    (lambda g: g.table.group_by(None), "selector must be a function"),
    (lambda g: g.table.group_by(pair, "name"), "grouped must be a Grouped"),
    (lambda g: g.table.join(g.stream, pair), "other must be a KTable; found KStream"),
    (lambda g: g.table.join(g.foreign_table, pair), "same StreamsBuilder"),
    (lambda g: g.table.join(g.table, pair, table_joined=TableJoined()), "found it without foreign_key"),
    (lambda g: g.table.join(g.table, pair, foreign_key="id"), "foreign_key must be a function"),
    (lambda g: g.grouped.reduce(None), "reducer must be a function"),
    (lambda g: g.grouped.aggregate(0, pair), "initializer must be a function"),
    (lambda g: g.grouped.aggregate(list, None), "aggregator must be a function"),
    (lambda g: g.grouped.count(materialized=Grouped()), "materialized must be a Materialized"),
    (lambda g: g.grouped.windowed_by(WITHIN), "windows must be TimeWindows, SlidingWindows, SessionWindows or"),
    (lambda g: g.grouped.windowed_by(MINUTES).reduce(None), "reducer must be a function"),
    (lambda g: g.grouped.windowed_by(MINUTES).aggregate(None, pair), "initializer must be a function"),
    (lambda g: g.grouped.windowed_by(MINUTES).emit_strategy("close"), "strategy must be an EmitStrategy"),
    (lambda g: g.grouped.cogroup(None), "aggregator must be a function"),
    (lambda g: g.grouped.cogroup(add).cogroup(g.stream, add), "grouped must be a KGroupedStream; found KStream"),
    (lambda g: g.grouped.cogroup(add).cogroup(g.foreign_stream.group_by_key(), add), "same StreamsBuilder"),
    (lambda g: g.grouped.cogroup(add).aggregate(None), "initializer must be a function"),
    (lambda g: g.grouped.cogroup(add).windowed_by(SECOND), "windows must be TimeWindows"),
    (lambda g: g.grouped_table.reduce(pair, None), "subtractor must be a function"),
    (lambda g: g.grouped_table.aggregate(list, None, pair), "adder must be a function"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_wrong_argument_is_refused(call: Callable[[Given], Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        call(Given())


def test_builder_takes_a_configuration_or_a_mapping() -> None:
    with pytest.raises(ConfigError, match="a configuration is a StreamsConfig, a mapping or None, got int 5"):
        StreamsBuilder(5)  # type: ignore[arg-type]  # that it fails is the point
    settings = {"topology.optimization": "all"}
    for builder, given in ((StreamsBuilder(), settings), (StreamsBuilder(settings), None)):
        builder.table("t", materialized=Materialized("rows"))
        assert builder.build(given).changelog_topics("app") == {"rows": "t"}


def test_final_results_need_windows_that_close() -> None:
    grouped: Any = StreamsBuilder().stream("s").group_by_key().windowed_by(UnlimitedWindows.of())
    with pytest.raises(TopologyError, match="ON_WINDOW_CLOSE needs windows that close"):
        grouped.emit_strategy(EmitStrategy.on_window_close())


@pytest.mark.parametrize(
    ("windows", "needed"),
    [
        (MINUTES, 61_000),
        (SlidingWindows.of_time_difference_and_grace(SECOND, SECOND), 3_000),
        (SessionWindows.of_inactivity_gap_and_grace(SECOND, SECOND), 2_000),
    ],
)
def test_retention_must_cover_the_windows(windows: Any, needed: int) -> None:
    grouped: Any = StreamsBuilder().stream("s").group_by_key().windowed_by(windows)
    short: Materialized[Any, Any] = Materialized("rows", retention=timedelta(milliseconds=needed - 1))
    with pytest.raises(TopologyError, match=rf"store 'rows': the retention must be at least .* {needed} ms"):
        grouped.count(materialized=short)
    grouped.count(materialized=Materialized("rows", retention=timedelta(milliseconds=needed)))


def test_supplier_must_be_of_the_kind_the_operation_needs() -> None:
    grouped: Any = StreamsBuilder().stream("s").group_by_key()
    with pytest.raises(TopologyError, match="needs the supplier of a window store; found one of a key-value store"):
        grouped.windowed_by(MINUTES).count(materialized=Materialized(Stores.in_memory_key_value_store("rows")))


@pytest.mark.parametrize(
    ("supplier", "message"),
    [
        (Stores.in_memory_window_store("w", SECOND, SECOND), "must keep duplicates"),
        (
            Stores.in_memory_window_store("w", SECOND, SECOND, retain_duplicates=True),
            "must be those of the join windows",
        ),
        (Stores.in_memory_key_value_store("w"), "needs the supplier of a window store"),
    ],
)
def test_join_store_must_fit_the_join_windows(supplier: Any, message: str) -> None:
    builder: Any = StreamsBuilder()
    joined: Any = StreamJoined(this_store_supplier=supplier)
    with pytest.raises(TopologyError, match=message):
        builder.stream("a").join(builder.stream("b"), pair, windows=WITHIN, joined=joined)


def test_finished_split_takes_no_further_branch() -> None:
    split = StreamsBuilder().stream("s").split(name="x")
    split.no_default_branch()
    with pytest.raises(TopologyError, match=r"the split was finished by no_default_branch\(\)"):
        split.branch(lambda _k, _v: True)


def test_branches_of_one_split_need_different_names() -> None:
    split = StreamsBuilder().stream("s").split(name="x-").branch(lambda _k, _v: True, Branched("a"))
    with pytest.raises(TopologyError, match="already a branch named 'x-a'"):
        split.branch(lambda _k, _v: True, Branched("a"))
