"""Handles are immutable, builders can build again, and topologies are independent."""

import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    Branched,
    Consumed,
    EmitStrategy,
    Grouped,
    JoinWindows,
    KStream,
    Materialized,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from headrace.topology import operations as ops

SECOND = timedelta(seconds=1)
WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)
ALL = StreamsConfig(topology_optimization="all")


def first(_key: Any, value: Any) -> Any:
    return value


def operations(builder: StreamsBuilder, config: StreamsConfig | None = None) -> dict[str, Any]:
    return {node.name: node.operation for node in builder.build(config).processor_nodes}


def test_handles_cannot_be_changed() -> None:
    stream = StreamsBuilder().stream("in")
    with pytest.raises(AttributeError):
        stream._name = "other"  # type: ignore[misc]  # that it fails is the point


def test_handles_print_their_node() -> None:
    builder = StreamsBuilder()
    assert repr(builder.stream("in")) == "<KStream 'KSTREAM-SOURCE-0000000000'>"
    assert repr(builder.table("t").filter(lambda _k, _v: True)) == "<KTable 'KTABLE-FILTER-0000000004'>"


def test_building_twice_gives_equal_independent_topologies() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(first).count().to_stream().to("out")
    one, two = builder.build(), builder.build()
    assert one is not two
    assert str(one.describe()) == str(two.describe())
    one.add_sink("extra", "elsewhere", "KSTREAM-SOURCE-0000000000")
    assert "extra" not in two.nodes


def test_each_build_follows_its_own_configuration() -> None:
    builder = StreamsBuilder(ALL)
    builder.table("in", materialized=Materialized("rows"))
    assert not builder.build().store_builders["rows"].logging
    assert builder.build(StreamsConfig()).store_builders["rows"].logging


def test_build_does_not_see_later_calls() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    before = builder.build()
    stream.to("out")
    assert len(before.nodes) == 1
    assert len(builder.build().nodes) == 2


def test_type_of_stores_comes_from_option_or_configuration() -> None:
    builder = StreamsBuilder()
    builder.stream("a").group_by_key().count(materialized=Materialized("default"))
    builder.stream("b").group_by_key().count(materialized=Materialized("chosen", store_type="disk"))
    stores: Any = builder.build(StreamsConfig(default_dsl_store="in_memory")).store_builders
    assert (stores["default"].persistent, stores["chosen"].persistent) == (False, True)
    again: Any = builder.build().store_builders
    assert again["default"].persistent


def test_stores_of_a_join_are_kept_in_the_engine_of_the_join() -> None:
    def engines(joined: StreamJoined[Any, Any, Any]) -> set[tuple[bool, str | None]]:
        builder = StreamsBuilder()
        windows = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=1))
        builder.stream("a").outer_join(builder.stream("b"), lambda a, b: (a, b), windows=windows, joined=joined)
        stores: Any = builder.build().store_builders.values()
        assert len(stores) == 3
        return {(store.persistent, store.supplier.disk_engine) for store in stores}

    assert engines(StreamJoined()) == engines(StreamJoined(dsl_store="disk")) == {(True, None)}
    assert engines(StreamJoined(dsl_store="rocksdb")) == {(True, "rocksdb")}
    assert engines(StreamJoined(dsl_store="in_memory")) == {(False, None)}
    size = timedelta(seconds=2)
    this, other = (
        Stores.persistent_window_store(name, size, size, retain_duplicates=True, disk_engine="rocksdb")
        for name in ("this", "other")
    )
    assert engines(StreamJoined(this_store_supplier=this, other_store_supplier=other)) == {(True, "rocksdb")}


@pytest.mark.parametrize("caching", [True, False])
def test_caching_and_logging_follow_the_option(caching: bool) -> None:  # noqa: FBT001
    builder = StreamsBuilder()
    option: Materialized[Any, Any] = Materialized(
        "rows", caching=caching, logging=caching, log_config={"retention.ms": "1"}
    )
    builder.stream("in").group_by_key().count(materialized=option)
    store: Any = builder.build().store_builders["rows"]
    assert (store.caching, store.logging) == (caching, caching)


def test_store_for_final_results_finds_rows_by_time() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(SECOND)
    grouped = builder.stream("in").group_by_key().windowed_by(windows)
    grouped.emit_strategy(EmitStrategy.on_window_close()).count(materialized=Materialized("final"))
    grouped.count(materialized=Materialized("updates"))
    stores: Any = builder.build().store_builders
    assert stores["final"].supplier.time_index
    assert not stores["updates"].supplier.time_index


def test_emit_strategy_does_not_change_the_windowed_stream_it_is_called_on() -> None:
    grouped: Any = StreamsBuilder().stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(SECOND))
    grouped.emit_strategy(EmitStrategy.on_window_close())
    assert grouped._emit is EmitStrategy.ON_WINDOW_UPDATE


def test_cogroup_does_not_change_the_cogroup_it_is_called_on() -> None:
    builder = StreamsBuilder()
    add: Callable[..., int] = lambda _k, _v, total: total + 1  # noqa: E731
    one = builder.stream("a").group_by_key().cogroup(add)
    one.cogroup(builder.stream("b").group_by_key(), add)
    one.aggregate(lambda: 0, name="c")
    assert [name for name in builder.build().nodes if name.startswith("c-")] == ["c-cogroup-agg-0", "c-cogroup-merge"]


def test_split_sends_each_record_to_the_first_branch_that_takes_it() -> None:
    builder = StreamsBuilder()
    seen: list[KStream[Any, Any]] = []
    split = builder.stream("in").split(name="s-")
    split = split.branch(first, Branched("kept")).branch(first, Branched("used", consumer=seen.append))
    result = split.branch(first, Branched("left-out", function=lambda _stream: None)).default_branch()
    assert list(result) == ["s-kept", "s-0"]
    assert [stream._name for stream in seen] == ["s-used"]
    branch = operations(builder)["s-"]
    assert branch == ops.Branch((first, first, first), ("s-kept", "s-used", "s-left-out"), "s-0")


def test_chained_and_repeated_branch_calls_are_the_same() -> None:
    split = StreamsBuilder().stream("in").split(name="s-")
    split.branch(first)
    split.branch(first)
    assert list(split.no_default_branch()) == ["s-1", "s-2"]


def test_serdes_travel_as_far_as_types_cannot_change() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string(), Serdes.long()))
    assert stream.filter(lambda _k, _v: True)._value_serde == Serdes.long()
    assert stream.select_key(first)._key_serde is None
    assert stream.map_values(str)._value_serde is None
    assert stream.map_values(str)._key_serde == Serdes.string()
    assert stream.merge(stream)._key_serde is None
    assert stream.group_by_key(Grouped("g"))._key_serde == Serdes.string()
    assert stream.group_by_key().count()._value_serde == Serdes.long()


def test_windowed_result_has_a_windowed_key_serde() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", Consumed(Serdes.string(), Serdes.long())).group_by_key()
    timed = grouped.windowed_by(TimeWindows.of_size_with_no_grace(SECOND)).count()
    assert timed._key_serde == Serdes.time_windowed(Serdes.string(), 1_000)
    sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(SECOND)).count()
    assert sessions._key_serde == Serdes.session_windowed(Serdes.string())


def test_topology_can_be_pickled() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    counts = stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(SECOND)).reduce(max)
    counts.to_stream().to("out")
    table = builder.table("t")
    table.join(builder.table("u"), max, foreign_key=str).group_by(first).count()
    topology = builder.build()
    copy = pickle.loads(pickle.dumps(topology))
    assert str(copy.describe()) == str(topology.describe())
