"""Requests to tables: they keep rows and send old values only where an operation asks for it."""

from datetime import timedelta
from typing import Any

from headrace import BufferConfig, Materialized, Serdes, Stores, StreamsBuilder, Suppressed

SECOND = timedelta(seconds=1)


def pair(a: Any, b: Any) -> tuple[Any, Any]:
    return a, b


def operation(builder: StreamsBuilder, name: str) -> Any:
    return next(node.operation for node in builder.build().processor_nodes if node.name == name)


def stores(builder: StreamsBuilder) -> list[str]:
    return list(builder.build().store_builders)


def test_table_that_nobody_asks_keeps_no_rows() -> None:
    builder = StreamsBuilder()
    table = builder.table("in").filter(lambda _k, _v: True).map_values(str)
    table.to_stream().to("out")
    assert stores(builder) == []
    assert table.queryable_store_name is None


def test_serdes_alone_do_not_keep_rows() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized(value_serde=Serdes.string()))
    assert stores(builder) == []


def test_lookup_makes_the_source_keep_rows() -> None:
    builder = StreamsBuilder()
    table = builder.table("in").filter(lambda _k, _v: True).map_values(str)
    builder.stream("s").join(table, pair, name="j")
    assert stores(builder) == ["in-STATE-STORE-0000000000"]
    (join,) = [node for node in builder.build().processor_nodes if node.name == "j"]
    assert join.stores == ("in-STATE-STORE-0000000000",)


def test_lookup_stops_at_the_nearest_store() -> None:
    builder = StreamsBuilder()
    table = builder.table("in").map_values(str, materialized=Materialized("mapped"))
    builder.stream("s").join(table, pair)
    assert stores(builder) == ["mapped"]


def test_filter_uses_old_values_only_if_they_cost_nothing() -> None:
    builder = StreamsBuilder()
    plain = builder.table("a")
    plain.filter(lambda _k, _v: True, name="plain")
    kept = builder.table("b", materialized=Materialized("kept"))
    kept.filter(lambda _k, _v: True, name="kept-filter")
    assert operation(builder, "plain").use_old is False
    assert operation(builder, "kept-filter").use_old is True


def test_filter_that_asked_too_early_goes_without_old_values() -> None:
    builder = StreamsBuilder()
    table = builder.table("a")
    table.filter(lambda _k, _v: True, name="early")
    table.group_by(pair).count()
    table.filter(lambda _k, _v: True, name="late")
    assert operation(builder, "early").use_old is False
    assert operation(builder, "late").use_old is True


def test_group_by_makes_every_table_before_it_send_old_values() -> None:
    builder = StreamsBuilder()
    table = builder.table("in").map_values(str, name="mapped").filter(lambda _k, _v: True, name="filtered")
    table.group_by(pair).count()
    names = ("KTABLE-SOURCE-0000000002", "mapped", "filtered")
    assert all(operation(builder, name).send_old for name in names)
    assert stores(builder)[0] == "in-STATE-STORE-0000000000"


def test_store_in_between_answers_for_old_values() -> None:
    builder = StreamsBuilder()
    table = builder.table("in").map_values(str, materialized=Materialized("mapped"), name="mapped")
    table.group_by(pair).count()
    assert operation(builder, "mapped").send_old
    assert not operation(builder, "KTABLE-SOURCE-0000000002").send_old
    assert "in-STATE-STORE-0000000000" not in stores(builder)


def test_left_join_asks_the_left_table_and_outer_join_both() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("a"), builder.table("b")
    left.left_join(right, pair)
    assert operation(builder, left._name).send_old
    assert not operation(builder, right._name).send_old
    left.outer_join(right, pair)
    assert operation(builder, right._name).send_old


def test_inner_join_asks_for_old_values_only_if_it_is_asked() -> None:
    builder = StreamsBuilder()
    joined = builder.table("a").join(builder.table("b"), pair, name="j")
    assert not operation(builder, "j-join-this").send_old
    joined.group_by(pair).count()
    assert all(operation(builder, name).send_old for name in ("j", "j-join-this", "j-join-other"))


def test_suppress_asks_for_old_values_and_is_looked_up_with_its_buffer() -> None:
    builder = StreamsBuilder()
    wait = Suppressed.until_time_limit(SECOND, BufferConfig.unbounded(), name="wait")
    builder.stream("s").join(builder.table("in").suppress(wait), pair, name="j")
    (join,) = [node for node in builder.build().processor_nodes if node.name == "j"]
    assert join.stores == ("wait-store", "in-STATE-STORE-0000000001")


def test_cogroup_is_looked_up_in_its_aggregation() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("a").group_by_key().cogroup(lambda _k, _v, n: n + 1).aggregate(lambda: 0, name="c")
    builder.stream("s").join(counts, pair, name="j")
    assert operation(builder, "j").table == "c-cogroup-agg-0"


def test_join_of_versioned_tables_leaves_out_the_past() -> None:
    builder = StreamsBuilder()
    supplier = Stores.persistent_versioned_key_value_store("versions", SECOND)
    versioned = builder.table("a", materialized=Materialized(supplier))
    versioned.map_values(str).join(builder.table("b"), pair, name="j")
    versioned.filter(lambda _k, _v: True, name="f")
    assert operation(builder, "j-join-this").versioned
    assert not operation(builder, "j-join-other").versioned
    assert operation(builder, "f").versioned


def test_queryable_name_is_the_one_that_was_given() -> None:
    builder = StreamsBuilder()
    assert builder.table("a", materialized=Materialized("rows")).queryable_store_name == "rows"
    assert builder.table("b").queryable_store_name is None
    assert builder.stream("c").group_by_key().count().queryable_store_name is None
    assert builder.global_table("g").queryable_store_name == "g-STATE-STORE-0000000008"
