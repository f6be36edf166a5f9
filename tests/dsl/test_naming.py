"""Names that are generated, given, and derived from given ones, as Kafka Streams makes them."""

import re
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    Branched,
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    Materialized,
    Named,
    Processor,
    Produced,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TopologyError,
)
from headrace.dsl.naming import NameCounter

WITHIN = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=5))


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


def nodes(builder: StreamsBuilder) -> list[str]:
    return list(builder.build().nodes)


def stores(builder: StreamsBuilder) -> list[str]:
    return list(builder.build().store_builders)


@pytest.mark.parametrize("name", ["a", "A-b.c_9", "x" * 249])
def test_legal_names_are_accepted(name: str) -> None:
    assert Named(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(TopologyError, match="name"):
        Named(name)


def test_counter_counts_generated_and_given_names() -> None:
    names = NameCounter()
    assert names.named("mine", "KSTREAM-FILTER-") == "mine"
    assert names.suffixed("mine", "-sink", "KSTREAM-SINK-") == "mine-sink"
    assert names.node("KSTREAM-MAP-") == "KSTREAM-MAP-0000000002"
    assert names.store("KTABLE-") == "KTABLE-STATE-STORE-0000000003"


def test_naming_one_node_leaves_the_names_of_the_others_alone() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda _k, _v: True, name="mine").to("out")
    assert nodes(builder) == ["KSTREAM-SOURCE-0000000000", "mine", "KSTREAM-SINK-0000000002"]


def test_suffixed_name_that_becomes_too_long_is_refused() -> None:
    with pytest.raises(TopologyError, match="at most 249"):
        StreamsBuilder().table("in", Consumed(name="x" * 245))


def test_table_takes_an_index_for_its_store_first() -> None:
    builder = StreamsBuilder()
    builder.table("in").filter(lambda _k, _v: True).join(builder.table("other"), lambda a, b: (a, b))
    names = nodes(builder)
    assert names[:2] == ["KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-0000000002"]
    assert stores(builder) == ["in-STATE-STORE-0000000000", "other-STATE-STORE-0000000004"]


@pytest.mark.parametrize(
    ("materialized", "expected"),
    [
        (None, "KSTREAM-AGGREGATE-0000000002"),
        (Materialized(), "KSTREAM-AGGREGATE-0000000003"),
        (Materialized("counts"), "KSTREAM-AGGREGATE-0000000001"),
    ],
)
def test_count_takes_one_index_more_for_an_option_without_a_name(
    materialized: Materialized[object, int] | None, expected: str
) -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=materialized)
    assert nodes(builder)[-1] == expected


def test_repartition_topic_of_an_aggregation_is_named_after_its_store() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda _k, v: v).count()
    assert nodes(builder) == [
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-KEY-SELECT-0000000001",
        "KSTREAM-FILTER-0000000005",
        "KSTREAM-SINK-0000000004",
        "KSTREAM-SOURCE-0000000006",
        "KSTREAM-AGGREGATE-0000000003",
    ]
    (topic,) = builder.build().internal_topics("app")
    assert topic == "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition"


def test_named_repartition_topic_names_its_nodes() -> None:
    builder = StreamsBuilder()
    builder.stream("in").repartition(Repartitioned("by-user")).to("out")
    assert nodes(builder)[1:4] == [
        "by-user-repartition-filter",
        "by-user-repartition-sink",
        "by-user-repartition-source",
    ]


def test_stream_join_takes_five_indices() -> None:
    builder = StreamsBuilder()
    builder.stream("a").left_join(builder.stream("b"), lambda a, b: (a, b), windows=WITHIN).to("out")
    assert nodes(builder)[2:] == [
        "KSTREAM-WINDOWED-0000000002",
        "KSTREAM-WINDOWED-0000000003",
        "KSTREAM-JOINTHIS-0000000004",
        "KSTREAM-OUTEROTHER-0000000005",
        "KSTREAM-MERGE-0000000006",
        "KSTREAM-SINK-0000000007",
    ]
    assert stores(builder) == [
        "KSTREAM-JOINTHIS-0000000004-store",
        "KSTREAM-OUTEROTHER-0000000005-store",
        "KSTREAM-OUTERSHARED-0000000004-store",
    ]


def test_stream_join_derives_all_names_from_the_given_ones() -> None:
    builder = StreamsBuilder()
    left = builder.stream("a").select_key(lambda _k, v: v)
    joined: StreamJoined[Any, Any, Any] = StreamJoined(name="j", store_name="s")
    left.outer_join(builder.stream("b"), lambda a, b: (a, b), windows=WITHIN, joined=joined)
    assert nodes(builder)[3:] == [
        "j-left-repartition-filter",
        "j-left-repartition-sink",
        "j-left-repartition-source",
        "j-this-windowed",
        "j-other-windowed",
        "j-outer-this-join",
        "j-outer-other-join",
        "j-merge",
    ]
    assert stores(builder) == [
        "s-outer-this-join-store",
        "s-outer-other-join-store",
        "s-outer-shared-join-store",
    ]


def test_join_takes_its_name_as_an_argument_of_its_own() -> None:
    builder = StreamsBuilder()
    builder.stream("a").join(builder.stream("b"), lambda a, b: (a, b), windows=WITHIN, name="j")
    assert nodes(builder)[-1] == "j-merge"


def test_grace_buffer_is_named_after_the_join() -> None:
    builder = StreamsBuilder()
    supplier = Stores.persistent_versioned_key_value_store("versions", timedelta(minutes=1))
    table = builder.table("t", materialized=Materialized(supplier))
    builder.stream("s").join(table, lambda a, b: (a, b), joined=Joined(name="j", grace_period=timedelta(seconds=1)))
    assert stores(builder) == ["versions", "j-Buffer"]


def test_both_global_joins_are_called_left_join() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("g")
    builder.stream("s").join(table, lambda a, b: (a, b), key_selector=lambda k, _v: k)
    assert nodes(builder)[-1] == "KSTREAM-LEFTJOIN-0000000004"


def test_table_join_names_the_merge_first() -> None:
    builder = StreamsBuilder()
    builder.table("a").join(builder.table("b"), lambda a, b: (a, b))
    assert nodes(builder)[-3:] == [
        "KTABLE-JOINTHIS-0000000007",
        "KTABLE-JOINOTHER-0000000008",
        "KTABLE-MERGE-0000000006",
    ]


def test_named_table_join_names_both_sides() -> None:
    builder = StreamsBuilder()
    builder.table("a").join(builder.table("b"), lambda a, b: (a, b), name="j")
    assert nodes(builder)[-3:] == ["j-join-this", "j-join-other", "j"]


def test_foreign_key_join_derives_all_names_from_the_given_one() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("a"), builder.table("b")
    left.join(right, lambda a, b: (a, b), foreign_key=lambda v: v, table_joined=TableJoined(name="fk"))
    topology = builder.build()
    assert [name for name in topology.nodes if name.startswith("fk")] == [
        "fk-subscription-registration-processor",
        "fk-subscription-registration-sink",
        "fk-subscription-registration-source",
        "fk-subscription-receive",
        "fk-subscription-join-foreign",
        "fk-foreign-join-subscription",
        "fk-subscription-response-sink",
        "fk-subscription-response-source",
        "fk-subscription-response-resolver",
        "fk-result",
    ]
    assert sorted(topology.internal_topics("app")) == [
        "app-fk-subscription-registration-topic",
        "app-fk-subscription-response-topic",
    ]
    assert "fk-subscription-store" in topology.store_builders


def test_cogroup_numbers_its_aggregations() -> None:
    builder = StreamsBuilder()
    first, second = builder.stream("a").group_by_key(), builder.stream("b").group_by_key()
    add = lambda _k, _v, total: total + 1  # noqa: E731
    first.cogroup(add).cogroup(second, add).aggregate(lambda: 0, name="c")
    assert nodes(builder)[2:] == ["c-cogroup-agg-0", "c-cogroup-agg-1", "c-cogroup-merge"]


def test_suppress_store_is_named_after_the_node() -> None:
    builder = StreamsBuilder()
    wait = Suppressed.until_time_limit(timedelta(1), BufferConfig.unbounded(), name="wait")
    builder.table("in").suppress(wait)
    assert stores(builder)[-1] == "wait-store"


def test_branches_are_numbered_or_named_after_the_split() -> None:
    split = StreamsBuilder().stream("in").split(name="s-")
    split = split.branch(lambda _k, _v: True).branch(lambda _k, _v: True, Branched("b"))
    assert list(split.default_branch()) == ["s-1", "s-b", "s-0"]


def test_branches_take_an_index_each() -> None:
    builder = StreamsBuilder()
    builder.stream("in").split().branch(lambda _k, _v: True).no_default_branch()
    builder.stream("other")
    assert nodes(builder) == [
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-BRANCH-0000000001",
        "KSTREAM-BRANCH-00000000011",
        "KSTREAM-SOURCE-0000000003",
    ]


def test_process_with_a_name_takes_no_index() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Idle, name="p").process(Idle)
    assert nodes(builder)[1:] == ["p", "KSTREAM-PROCESSOR-0000000001"]


def test_names_given_in_options_are_used() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in", Consumed(Serdes.string(), Serdes.string(), name="source"))
    stream.group_by(lambda _k, v: v, Grouped("grouped")).count(name="counted").to_stream(name="changes").to(
        "out", Produced(name="sink")
    )
    given = {"source", "grouped", "counted", "changes", "sink"}
    assert given <= set(nodes(builder))


def test_names_count_on_between_builds() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    builder.build()
    builder.stream("other")
    assert re.fullmatch(r"KSTREAM-SOURCE-0000000002", nodes(builder)[-1])
