"""Rewrites of the graph before it is written, always or on request."""

import re
from datetime import timedelta
from typing import Any

import pytest

from headrace import Grouped, JoinWindows, Materialized, StreamsBuilder, StreamsConfig
from headrace.topology import Topology
from headrace.topology import operations as ops

SECOND = timedelta(seconds=1)
WITHIN = JoinWindows.of_time_difference_with_no_grace(SECOND)


def pair(a: Any, b: Any) -> tuple[Any, Any]:
    return a, b


def second(_key: Any, value: Any) -> Any:
    return value


def build(builder: StreamsBuilder, *optimizations: str) -> Topology:
    return builder.build(StreamsConfig(topology_optimization=optimizations or "none"))


def operation(topology: Topology, name: str) -> Any:
    return next(node.operation for node in topology.processor_nodes if node.name == name)


def topics(topology: Topology) -> list[str]:
    return sorted(topology.internal_topics("app"))


def test_streams_of_the_same_topics_share_a_source() -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"]).to("x")
    builder.stream(["b", "a"]).to("y")
    builder.stream(re.compile("c.*")).to("z")
    builder.stream(re.compile("c.*")).to("z")
    assert [source.name for source in build(builder).source_nodes] == [
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-SOURCE-0000000004",
    ]


def test_shared_source_stays_co_partitioned() -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("x")
    builder.stream("a").join(builder.stream("b"), pair, windows=WITHIN)
    assert [sorted(group) for group in build(builder).copartition_groups()] == [["a", "b"]]


def test_tables_topic_becomes_its_changelog_on_request() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized("rows"))
    assert build(builder).store_builders["rows"].logging
    topology = build(builder, "reuse.ktable.source.topics")
    assert not topology.store_builders["rows"].logging
    assert topology.changelog_topics("app") == {"rows": "in"}


def test_two_aggregations_after_one_change_of_key_share_a_topic_on_request() -> None:
    builder = StreamsBuilder()
    keyed = builder.stream("in").select_key(second)
    keyed.group_by_key().count(materialized=Materialized("counts"))
    keyed.group_by_key().reduce(second, materialized=Materialized("latest"))
    assert topics(build(builder)) == ["app-counts-repartition", "app-latest-repartition"]
    assert topics(build(builder, "merge.repartition.topics")) == ["app-counts-repartition"]


def test_change_of_value_in_between_keeps_repartition_topics_apart() -> None:
    builder = StreamsBuilder()
    keyed = builder.stream("in").select_key(second)
    keyed.map_values(str).group_by_key().count(materialized=Materialized("counts"))
    keyed.group_by_key().count(materialized=Materialized("others"))
    assert len(topics(build(builder, "merge.repartition.topics"))) == 2


def test_branches_behind_a_change_of_key_share_a_topic_on_request() -> None:
    builder = StreamsBuilder()
    branches = builder.stream("in").select_key(second).split(name="s-").branch(second).default_branch()
    for name, stream in branches.items():
        stream.group_by_key(Grouped(name)).count()
    topology = build(builder, "merge.repartition.topics")
    assert topics(topology) == ["app-s-1-repartition"]
    assert topology.nodes["s-"].parents == ("s-1-repartition-source",)


def test_repartition_topics_behind_a_merge_share_one_after_it() -> None:
    builder = StreamsBuilder()
    merged = builder.stream("a").select_key(second).merge(builder.stream("b").select_key(second), name="m")
    merged.group_by_key().count(materialized=Materialized("counts"))
    merged.group_by_key().count(materialized=Materialized("others"))
    topology = build(builder, "merge.repartition.topics")
    assert topics(topology) == ["app-counts-repartition"]
    assert topology.nodes["counts-repartition-filter"].parents == ("m",)


def test_merged_repartition_topic_stays_co_partitioned() -> None:
    builder = StreamsBuilder()
    keyed = builder.stream("a").select_key(second)
    keyed.join(builder.table("t"), pair, name="j")
    keyed.group_by_key().count(materialized=Materialized("counts"))
    topology = build(builder, "merge.repartition.topics")
    assert topology.partition_counts({"a": 2, "t": 3})["j-repartition"] == 3


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_join_of_a_stream_with_itself_needs_one_store_on_request(method: str) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    getattr(stream, method)(stream, pair, windows=WITHIN, name="j")
    assert len(build(builder).store_builders) == (2 if method == "join" else 3)
    topology = build(builder, "single.store.self.join")
    assert len(topology.store_builders) == 1
    assert isinstance(operation(topology, "j-merge"), ops.StreamSelfJoin)


def test_streams_of_one_topic_are_the_same_stream_to_a_join() -> None:
    builder = StreamsBuilder()
    builder.stream("in").join(builder.stream("in"), pair, windows=WITHIN)
    assert len(build(builder, "single.store.self.join").store_builders) == 1


def test_repartition_topic_drops_records_without_a_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(second, Grouped("g")).count()
    assert operation(build(builder), "g-repartition-filter") == ops.NullKeyFilter()


@pytest.mark.parametrize(("method", "guard"), [("join", ops.NullKeyFilter()), ("left_join", ops.PassThrough())])
def test_repartition_topic_before_a_left_join_keeps_records_without_a_key(method: str, guard: ops.Operation) -> None:
    builder = StreamsBuilder()
    getattr(builder.stream("in").select_key(second), method)(builder.table("t"), pair, name="j")
    assert operation(build(builder), "j-repartition-filter") == guard


def test_left_join_further_down_counts() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("g")
    stream = builder.stream("in").select_key(second).repartition().filter(lambda _k, _v: True)
    stream.left_join(table, pair, key_selector=second)
    guards = [node.operation for node in build(builder).processor_nodes if "FILTER" in node.name]
    assert ops.PassThrough() in guards


def test_group_with_a_name_uses_its_repartition_topic_again() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(second, Grouped("g"))
    grouped.count()
    grouped.reduce(second)
    assert topics(build(builder)) == ["app-g-repartition"]


def test_unnamed_joins_of_one_stream_share_its_repartition_topic() -> None:
    builder = StreamsBuilder()
    keyed = builder.stream("in").select_key(second)
    keyed.join(builder.table("t"), pair)
    keyed.join(builder.table("u"), pair)
    assert len(topics(build(builder))) == 1
