from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.config import StreamsConfig
from headrace.errors import ConfigError, TopologyError
from headrace.processor import FixedKeyProcessor, Processor
from headrace.topology import AutoOffsetReset, ProcessorNode, Topology
from headrace.topology.operations import PassThrough, UserProcessor

Store = Callable[..., Any]


class Idle(Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


class IdleValues(FixedKeyProcessor[Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


def processor(topology: Topology, name: str) -> ProcessorNode:
    node = topology.nodes[name]
    assert isinstance(node, ProcessorNode)
    return node


def test_children_are_in_the_order_of_their_addition() -> None:
    topology = Topology().add_source("source", "in")
    topology.add_processor("z", Idle, "source").add_sink("sink", "out", "source", "z").add_processor(
        "a", Idle, "source"
    )
    assert topology.children["source"] == ("z", "sink", "a")
    assert topology.children["z"] == ("sink",)
    assert topology.children["sink"] == ()
    assert topology.nodes["sink"].parents == ("source", "z")


def test_child_that_names_a_parent_twice_is_there_twice() -> None:
    topology = Topology().add_source("source", "in").add_processor("twice", Idle, "source", "source")
    assert topology.children["source"] == ("twice", "twice")


def test_supplier_brings_its_stores(store: Store) -> None:
    class Counting(Idle):
        stores = (store("counts"), store("totals"))

    topology = Topology().add_source("source", "in").add_processor("count", Counting, "source")
    assert processor(topology, "count").stores == ("counts", "totals")
    assert list(topology.store_builders) == ["counts", "totals"]


def test_processors_share_a_store_that_both_bring(store: Store) -> None:
    class Counting(Idle):
        @classmethod
        def stores(cls) -> list[Any]:
            return [store("counts")]

    topology = Topology().add_source("a", "in-a").add_source("b", "in-b")
    topology.add_processor("count-a", Counting, "a").add_processor("count-b", Counting, "b")
    assert [each.nodes for each in topology.subtopologies()] == [("a", "b", "count-a", "count-b")]


def test_fixed_key_processor_is_recognised() -> None:
    topology = Topology().add_source("source", "in").add_processor("values", IdleValues, "source")
    assert processor(topology, "values").operation == UserProcessor(IdleValues, fixed_key=True)


def test_operation_takes_stores_by_name_and_by_builder(store: Store) -> None:
    topology = Topology().add_source("source", "in").add_state_store(store("old"))
    topology.add_operation("op", PassThrough(), ["source"], ["old", store("new")])
    assert set(processor(topology, "op").stores) == {"old", "new"}


def test_stores_are_opened_in_the_order_of_their_processors(store: Store) -> None:
    topology = Topology().add_source("source", "in").add_state_store(store("unused"))
    topology.add_processor("first", Idle, "source").add_processor("second", Idle, "first")
    topology.add_state_store(store("b"), "second").add_state_store(store("c"), "first", "second")
    topology.add_state_store(store("a"), "second")
    assert topology.state_stores == ("c", "a", "b")


def test_source_is_found_by_topic_and_by_pattern(store: Store) -> None:
    topology = Topology().add_source("one", "in").add_source("many", pattern=re.compile("in-.*"))
    topology.add_global_store(store("rates"), "rates-source", "rates", "rates-update", Idle)
    topology.add_internal_topic("in-internal")
    assert topology.source_for("in") == topology.nodes["one"]
    assert topology.source_for("in-eu") == topology.nodes["many"]
    assert topology.source_for("in-internal") is None
    assert topology.source_for("rates") is None
    assert topology.source_for("other") is None
    assert topology.global_store_for("rates") == topology.global_stores["rates"]


def test_global_store_is_kept_apart(store: Store) -> None:
    topology = Topology().add_source("source", "in").add_processor("p", Idle, "source")
    topology.add_global_store(store("rates"), "rates-source", "rates-topic", "rates-update", Idle)
    found = topology.global_stores["rates"]
    assert (found.source, found.processor, found.topic) == ("rates-source", "rates-update", "rates-topic")
    assert found.reprocess_on_restore
    assert not found.builder.logging
    assert [node.name for node in topology.source_nodes] == ["source"]
    assert [node.name for node in topology.processor_nodes] == ["p"]
    assert topology.state_stores == ()
    assert [each.is_global for each in topology.subtopologies()] == [False, True]


def test_read_only_store_has_its_topic_as_changelog(store: Store) -> None:
    topology = Topology().add_read_only_state_store(store("prices"), "source", "prices-topic", "update", Idle)
    assert topology.changelog_topics("app") == {"prices": "prices-topic"}
    assert not topology.store_builders["prices"].logging
    (source,) = topology.source_nodes
    assert source.offset_reset == AutoOffsetReset.earliest()


def test_changelogs_are_named_after_application_and_store(store: Store) -> None:
    topology = Topology().add_source("source", "in").add_processor("p", Idle, "source")
    topology.add_state_store(store("logged"), "p").add_state_store(store("quiet", logging=False), "p")
    topology.add_state_store(store("unused")).add_state_store(store("table"), "p")
    topology.connect_source_store_and_topic("table", "in")
    topology.add_global_store(store("rates"), "rates-source", "rates-topic", "rates-update", Idle)
    assert topology.changelog_topics("app") == {
        "logged": "app-logged-changelog",
        "table": "in",
        "rates": "rates-topic",
    }


def test_internal_topics_get_the_applications_id() -> None:
    topology = Topology().add_source("source", "in")
    topology.add_internal_topic("by-user-repartition", 3)
    (name, topic), *_ = topology.internal_topics("app").items()
    assert (name, topic.partitions, topic.enforced) == ("app-by-user-repartition", 3, True)
    assert topology.is_internal("by-user-repartition")
    assert not topology.is_internal("in")
    assert topology.full_topic_name("by-user-repartition", "app") == "app-by-user-repartition"
    assert topology.full_topic_name("in", "app") == "in"


@pytest.mark.parametrize(
    ("given", "reset"),
    [
        ("earliest", AutoOffsetReset.earliest()),
        ("LATEST", AutoOffsetReset.latest()),
        (AutoOffsetReset.none(), AutoOffsetReset.none()),
        (timedelta(hours=1), AutoOffsetReset.by_duration(timedelta(hours=1))),
    ],
)
def test_offset_reset_is_read(given: AutoOffsetReset | str | timedelta, reset: AutoOffsetReset) -> None:
    (source,) = Topology().add_source("source", "in", offset_reset=given).source_nodes
    assert source.offset_reset == reset


def test_topology_pickles(store: Store) -> None:
    topology = Topology().add_source("source", pattern=re.compile("in-.*")).add_processor("p", Idle, "source")
    topology.add_state_store(store("counts"), "p").add_sink("sink", "out", "p")
    topology.add_internal_topic("x-repartition")
    topology.copartition(["source"])
    twin = pickle.loads(pickle.dumps(topology))
    assert str(twin.describe()) == str(topology.describe())
    assert twin.nodes == topology.nodes
    assert twin.store_builders == topology.store_builders


def test_copy_can_be_changed_apart() -> None:
    topology = Topology().add_source("source", "in")
    twin = copy.copy(topology).add_processor("p", Idle, "source")
    assert topology.children["source"] == ()
    assert twin.children["source"] == ("p",)


class Tracing:
    def __init__(self) -> None:
        self.names: list[tuple[str, bool]] = []

    def wrap_processor_supplier(self, name: str, supplier: Any) -> Any:
        self.names.append((name, False))
        return lambda: supplier()

    def wrap_fixed_key_processor_supplier(self, name: str, supplier: Any) -> Any:
        self.names.append((name, True))
        return lambda: supplier()


def test_wrapper_sees_every_user_processor(store: Store) -> None:
    class Counting(Idle):
        stores = (store("counts"),)

    wrapper = Tracing()
    topology = Topology(StreamsConfig(application_id="app", processor_wrapper=wrapper)).add_source("source", "in")
    topology.add_processor("count", Counting, "source").add_processor("values", IdleValues, "source")
    topology.add_operation("pass", PassThrough(), ["source"])
    assert wrapper.names == [("count", False), ("values", True)]
    operation = processor(topology, "count").operation
    assert isinstance(operation, UserProcessor)
    assert operation.supplier is not Counting
    assert processor(topology, "count").stores == ("counts",)


def test_wrapper_does_not_travel() -> None:
    class Local(Tracing):
        pass

    topology = Topology(StreamsConfig(application_id="app", processor_wrapper=Local())).add_source("source", "in")
    assert pickle.loads(pickle.dumps(topology)).nodes == topology.nodes
    topology.copy().add_processor("p", Idle, "source")
    assert "p" not in topology.nodes


def test_wrapper_that_returns_one_object_is_refused() -> None:
    class Sharing(Tracing):
        def wrap_processor_supplier(self, name: str, supplier: Any) -> Any:
            shared = supplier()
            return lambda: shared

    topology = Topology(StreamsConfig(application_id="app", processor_wrapper=Sharing())).add_source("source", "in")
    with pytest.raises(TopologyError, match=r"processor 'p', wrapped by Sharing.*the same object twice"):
        topology.add_processor("p", Idle, "source")


def test_wrapper_without_its_methods_is_refused() -> None:
    with pytest.raises(ConfigError, match="processor_wrapper"):
        Topology(StreamsConfig(application_id="app", processor_wrapper=5))


def test_generated_names_are_refused_on_demand() -> None:
    topology = Topology(StreamsConfig(application_id="app", ensure_explicit_internal_resource_naming=True))
    topology.check_explicit_names()
    topology.add_implicit_names(changelog_topic="s1-changelog", state_store="s1")
    topology.add_implicit_names(state_store="s2")
    topology.add_implicit_names(repartition_topic="r-repartition")
    with pytest.raises(TopologyError) as raised:
        topology.check_explicit_names()
    assert str(raised.value).splitlines()[:3] == [
        "Following changelog topic(s) has not been named: s1-changelog",
        "Following state store(s) has not been named: s1, s2",
        "Following repartition topic(s) has not been named: r-repartition",
    ]


def test_generated_names_are_accepted_by_default() -> None:
    topology = Topology()
    topology.add_implicit_names(state_store="s1")
    topology.check_explicit_names()
