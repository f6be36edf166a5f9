from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import MissingSourceTopicError, TopologyError
from headrace.topology import Topology
from headrace.topology.operations import PassThrough

Store = Callable[..., Any]


def join(topology: Topology, name: str, *sources: str) -> None:
    topology.add_operation(name, PassThrough(), sources)
    topology.copartition(sources)


def repartition(topology: Topology, base: str, parent: str, partitions: int | None = None) -> None:
    """As the DSL does it: a sink to an internal topic, and a source that reads it."""
    topic = f"{base}-repartition"
    topology.add_internal_topic(topic, partitions)
    topology.add_sink(f"{base}-sink", topic, parent)
    topology.add_source(f"{base}-source", topic)


def test_subtopologies_are_split_at_internal_topics() -> None:
    topology = Topology().add_source("in", "in").add_source("other", "other")
    repartition(topology, "by-user", "in")
    join(topology, "join", "by-user-source", "other")
    first, second = topology.subtopologies()
    assert (first.id, first.nodes) == (0, ("in", "by-user-sink"))
    assert (first.source_topics, first.sink_topics) == (("in",), ("by-user-repartition",))
    assert (second.id, second.nodes) == (1, ("other", "by-user-source", "join"))
    assert second.source_topics == ("other", "by-user-repartition")
    assert second.repartition_topics == ("by-user-repartition",)


def test_shared_store_joins_subtopologies(store: Store) -> None:
    topology = Topology().add_source("a", "a").add_source("b", "b").add_source("c", "c")
    for name in "abc":
        topology.add_operation(f"{name}-op", PassThrough(), [name])
    topology.add_state_store(store("shared"), "a-op", "c-op")
    assert [each.nodes for each in topology.subtopologies()] == [("a", "c", "a-op", "c-op"), ("b", "b-op")]
    assert [each.state_stores for each in topology.subtopologies()] == [("shared",), ()]


def test_internal_topic_is_as_wide_as_the_widest_input_of_its_writer() -> None:
    topology = Topology().add_source("in", "narrow", "wide")
    repartition(topology, "once", "in")
    repartition(topology, "twice", "once-source")
    counts = topology.partition_counts({"narrow": 2, "wide": 5, "unrelated": 9})
    assert counts == {"narrow": 2, "wide": 5, "once-repartition": 5, "twice-repartition": 5}
    assert topology.task_counts({"narrow": 2, "wide": 5}) == {0: 5, 1: 5, 2: 5}


def test_number_that_was_asked_for_is_kept() -> None:
    topology = Topology().add_source("in", "in")
    repartition(topology, "fixed", "in", 3)
    assert topology.partition_counts({"in": 7})["fixed-repartition"] == 3


def test_external_topic_decides_for_its_group() -> None:
    topology = Topology().add_source("in", "in").add_source("users", "users")
    repartition(topology, "by-user", "in")
    join(topology, "join", "by-user-source", "users")
    assert topology.partition_counts({"in": 8, "users": 4})["by-user-repartition"] == 4


def test_fixed_number_decides_among_internal_topics() -> None:
    topology = Topology().add_source("left", "left").add_source("right", "right")
    repartition(topology, "l", "left", 3)
    repartition(topology, "r", "right")
    join(topology, "join", "l-source", "r-source")
    topology.validate()
    assert topology.partition_counts({"left": 8, "right": 4})["r-repartition"] == 3


def test_largest_number_decides_among_free_internal_topics() -> None:
    topology = Topology().add_source("left", "left").add_source("right", "right")
    repartition(topology, "l", "left")
    repartition(topology, "r", "right")
    join(topology, "join", "l-source", "r-source")
    counts = topology.partition_counts({"left": 8, "right": 4})
    assert counts["l-repartition"] == counts["r-repartition"] == 8


def test_mismatch_of_inputs_names_the_join_and_the_remedy() -> None:
    topology = Topology().add_source("orders", "orders").add_source("users", "users")
    join(topology, "orders-users", "orders", "users")
    message = (
        r"join 'orders-users': inputs must be co-partitioned; 'orders' has 4 partitions and 'users' has 6 partitions; "
        r"call `\.repartition\(Repartitioned\(partitions=6\)\)` on one side"
    )
    with pytest.raises(TopologyError, match=message):
        topology.partition_counts({"orders": 4, "users": 6})


def test_mismatch_is_found_across_joins() -> None:
    topology = Topology().add_source("a", "a").add_source("b", "b").add_source("c", "c")
    join(topology, "first", "a", "b")
    join(topology, "second", "b", "c")
    assert topology.copartition_groups() == (("a", "b", "c"),)
    with pytest.raises(TopologyError, match=r"join 'second': .*'b' has 2 partitions and 'c' has 1 partition;"):
        topology.partition_counts({"a": 2, "b": 2, "c": 1})


def test_fixed_number_against_an_external_topic() -> None:
    topology = Topology().add_source("in", "in").add_source("users", "users")
    repartition(topology, "by-user", "in", 3)
    join(topology, "join", "by-user-source", "users")
    topology.validate()
    with pytest.raises(TopologyError, match=r"join 'join': .*'by-user-repartition' has 3 partitions and 'users' has 6"):
        topology.partition_counts({"in": 1, "users": 6})


def test_fixed_numbers_that_differ_are_found_while_building() -> None:
    topology = Topology().add_source("left", "left").add_source("right", "right")
    repartition(topology, "l", "left", 3)
    repartition(topology, "r", "right", 4)
    join(topology, "join", "l-source", "r-source")
    with pytest.raises(TopologyError, match=r"join 'join': .*'l-repartition' has 3 .*'r-repartition' has 4"):
        topology.validate()


def test_cycle_of_internal_topics_settles() -> None:
    """A foreign-key join: the left asks the right, and the right answers."""
    topology = Topology().add_source("left", "left").add_source("right", "right")
    topology.add_internal_topic("ask-topic")
    topology.add_internal_topic("answer-topic")
    topology.add_source("ask", "ask-topic").add_source("answer", "answer-topic")
    topology.add_operation("asker", PassThrough(), ["left"])
    topology.add_operation("result", PassThrough(), ["asker", "answer"])
    topology.add_operation("answerer", PassThrough(), ["ask", "right"])
    topology.add_sink("ask-sink", "ask-topic", "asker").add_sink("answer-sink", "answer-topic", "answerer")
    topology.copartition(["ask", "right"])
    topology.copartition(["answer", "left"])
    counts = topology.partition_counts({"left": 4, "right": 2})
    assert (counts["ask-topic"], counts["answer-topic"]) == (2, 4)
    assert topology.task_counts({"left": 4, "right": 2}) == {0: 4, 1: 2}


def test_pattern_reads_what_matches_but_no_internal_or_global_topic(store: Store) -> None:
    topology = Topology().add_source("all", pattern=re.compile("in-.*")).add_source("users", "users")
    topology.add_internal_topic("in-internal")
    join(topology, "join", "all", "users")
    external = {"in-a": 2, "in-b": 2, "users": 2, "in-internal": 7}
    assert topology.partition_counts(external) == {"in-a": 2, "in-b": 2, "users": 2}
    assert topology.copartition_groups(external) == (("in-a", "in-b", "users"),)
    with pytest.raises(TopologyError, match=r"'in-b' has 3 partitions"):
        topology.partition_counts(external | {"in-b": 3})


def test_global_topic_has_no_tasks(store: Store) -> None:
    class Update:
        def process(self, record: object) -> None: ...

    supplier: Any = Update
    topology = Topology().add_source("in", "in")
    topology.add_global_store(store("rates"), "rates-source", "rates", "rates-update", supplier)
    assert topology.task_counts({"in": 2}) == {0: 2}


def test_missing_topic_is_named() -> None:
    topology = Topology().add_source("orders", "orders")
    with pytest.raises(MissingSourceTopicError, match=r"'orders' does not; did you mean 'order'"):
        topology.partition_counts({"order": 1})


def test_internal_topic_that_nobody_feeds_is_named() -> None:
    topology = Topology().add_source("in", pattern=re.compile("in-.*"))
    repartition(topology, "by-user", "in")
    with pytest.raises(TopologyError, match=r"internal topics 'by-user-repartition'"):
        topology.partition_counts({})


@pytest.mark.parametrize("number", [0, -1, True, "2"])
def test_partition_count_must_be_positive(number: Any) -> None:
    with pytest.raises(TopologyError, match=r"topic 'in': a topic has at least one partition"):
        Topology().add_source("in", "in").partition_counts({"in": number})
