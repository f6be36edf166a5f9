"""The tasks of an application: levels, inputs, changelogs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headrace import Consumed, Grouped, KTable, Materialized, Serdes, StreamsBuilder
from headrace.topics.log import TopicPartition
from tests.batches.kit import Bench


def counted(builder: StreamsBuilder) -> None:
    """Counts by value, and keeps what only a process knows."""
    stream = builder.stream("in")
    stream.group_by(lambda key, value: value, Grouped("by-value")).count(materialized=Materialized("counts"))
    stream.group_by_key().count(materialized=Materialized("quiet", logging=False))


def test_a_repartition_makes_a_level_whose_tasks_read_no_topic(tmp_path: Path) -> None:
    layout = Bench(tmp_path, counted, {"in": 3}).layout
    assert [(place.name, place.level) for place in layout.tasks] == [
        ("0_0", 0),
        ("0_1", 0),
        ("0_2", 0),
        ("1_0", 1),
        ("1_1", 1),
        ("1_2", 1),
    ]
    assert layout.depth == 2
    assert layout.edges == {"app-by-value-repartition": 1}
    assert [list(layout.log_inputs(place)) for place in layout.tasks] == [
        [("in", 0)],
        [("in", 1)],
        [("in", 2)],
        [],
        [],
        [],
    ]
    assert layout.by_name["1_2"].inputs[0][1:] == ("app-by-value-repartition", 2)


def test_stores_with_a_changelog_are_those_that_are_logged(tmp_path: Path) -> None:
    layout = Bench(tmp_path, counted, {"in": 1}).layout
    assert layout.changelogs == {"counts": "app-counts-changelog"}
    assert layout.by_name["0_0"].changelogs == {}
    assert layout.by_name["1_0"].changelogs == {"counts": "app-counts-changelog"}


def test_a_table_may_be_restored_from_the_topic_that_it_reads(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.table("in", Consumed(Serdes.string(), Serdes.json()), materialized=Materialized("rows"))

    plain = Bench(tmp_path / "plain", build, {"in": 2}).layout
    assert plain.by_name["0_1"].changelogs == plain.changelogs == {"rows": "app-rows-changelog"}
    reused = Bench(tmp_path / "reused", build, {"in": 2}, topology_optimization="all").layout
    assert (reused.by_name["0_1"].changelogs, reused.changelogs) == ({"rows": "in"}, {})


def test_what_closes_a_cycle_is_read_from_the_log(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        orders: KTable[str, Any] = builder.table("orders")
        users: KTable[str, Any] = builder.table("users")
        orders.join(users, lambda order, user: order, foreign_key=lambda order: order["user"]).to_stream().to("out")

    layout = Bench(tmp_path, build, {"orders": 2, "users": 3, "out": 1}).layout
    read: set[TopicPartition] = {target for place in layout.tasks for target in layout.log_inputs(place)}
    (back,) = {topic for topic, _ in read} - {"orders", "users"}
    assert "SUBSCRIPTION-RESPONSE" in back
    (forward,) = layout.edges
    assert "SUBSCRIPTION-REGISTRATION" in forward
    assert {place.level for place in layout.tasks} == {0, 1}


def test_a_task_reads_as_many_partitions_as_each_topic_has(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream(["narrow", "wide"]).to("out")

    layout = Bench(tmp_path, build, {"narrow": 1, "wide": 2, "out": 1}).layout
    assert [list(layout.log_inputs(place)) for place in layout.tasks] == [[("narrow", 0), ("wide", 0)], [("wide", 1)]]


def test_a_pattern_does_not_mean_the_applications_own_topics(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream(re.compile(".*")).group_by_key().count(materialized=Materialized("counts"))

    bench = Bench(tmp_path, build, {"in": 1, "other": 1})
    assert "app-counts-changelog" in bench.log.topics()
    (place,) = bench.layout.tasks
    assert sorted(bench.layout.log_inputs(place)) == [("in", 0), ("other", 0)]


def test_global_tables_are_no_tasks(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.global_table("rates", materialized=Materialized("rates-store"))
        builder.stream("in").to("out")

    layout = Bench(tmp_path, build, {"in": 1, "rates": 2, "out": 1}).layout
    assert [place.inputs[0][1] for place in layout.tasks] == ["in"]
    assert layout.global_partitions() == [("rates", 0), ("rates", 1)]
